// yoke lab up, down, status, exec, shell: a cluster of virtual nodes on this machine. Faults are in lab_fault.cc.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "yoke/base/clock.h"
#include "yoke/base/error.h"
#include "yoke/base/files.h"
#include "yoke/cli/commands.h"
#include "yoke/cli/lab_head.h"
#include "yoke/lab/enter.h"
#include "yoke/lab/lab.h"
#include "yoke/lab/slurm.h"
#include "yoke/lab/state.h"
#include "yoke/spec/cluster.h"

namespace yoke::cli {
namespace fs = std::filesystem;
namespace {

struct UpOptions {
  lab::LabOptions lab;
  std::optional<std::string> name;
  std::string topology;
  std::string with;  // "slurm" or nothing
  std::optional<std::string> cluster_file;
  bool force = false;
};

// cluster.yaml of this folder, unless that describes something else: nobody's file is overwritten unasked.
fs::path choose_cluster_file(const UpOptions& options) {
  const fs::path file = options.cluster_file.value_or("cluster.yaml");
  const fs::path folder = fs::absolute(file).parent_path();
  if (access(folder.c_str(), W_OK) != 0) {
    throw system_error(errno, fmt::format("cannot write {}", file.native()),
                       "name another file with --cluster-file FILE");
  }
  if (options.cluster_file || !fs::exists(file)) return file;
  const Result<spec::Cluster> there = try_to([&] { return spec::load_cluster(file); });
  if (there && there->lab == options.lab.name) return file;
  if (there && there->lab && !lab::lab_exists(*there->lab)) {
    if (options.force) return file;
    throw Error(ErrorCode::kConflict,
                fmt::format("cluster.yaml here is of lab '{}', which is not running", *there->lab),
                fmt::format("to replace it: --force; to start that lab: yoke lab up --name {}", *there->lab));
  }
  const std::string whose = !there       ? "cannot be read"
                            : there->lab ? fmt::format("is of lab '{}', which is running", *there->lab)
                                         : fmt::format("is of cluster '{}'", there->name);
  throw Error(ErrorCode::kConflict, fmt::format("cluster.yaml here {}", whose),
              "a lab needs a file of its own: --cluster-file FILE");
}

// As a shell's redirection would make it: a user with umask 077 wants no file that others read.
mode_t mode_by_umask() {
  const mode_t mask = umask(0);
  umask(mask);
  return 0666 & ~mask;
}

// --lab names for all other commands the lab that this one starts.
std::string name_of_new_lab(const Session& session, const UpOptions& options) {
  if (options.name && session.lab && *options.name != *session.lab) {
    throw Error(ErrorCode::kUsage, "--name and --lab name different labs", "give one of them");
  }
  return options.name ? *options.name : session.lab.value_or(options.lab.name);
}

int run_up(Session& session, UpOptions& options) {
  options.lab.name = name_of_new_lab(session, options);
  for (const auto& [name, value] : spec::enum_names(spec::Topology{})) {
    if (options.topology == name) options.lab.topology = value;
  }
  if (!options.lab.plain)
    lab::lay_out_lab(options.lab);  // what is wrong with the options comes before what is in the way
  const fs::path file = choose_cluster_file(options);
  if (options.with == "slurm") lab::require_slurm();
  const Instant start = real_clock().now();
  const lab::LabStarted started = lab::start_lab(options.lab);
  try {
    if (options.with == "slurm") lab::start_slurm(started.layout);
    write_file_atomically(file, spec::print_cluster(lab::lab_cluster(started.layout)), {.mode = mode_by_umask()});
    lab::save_cluster_file(options.lab.name, file);
  } catch (...) {
    lab::stop_lab(options.lab.name);
    throw;
  }
  const Seconds took = to_seconds(real_clock().now() - start);
  if (session.json) {
    Document missing = Document::list();
    for (const std::string& what : started.missing) missing.items.push_back(Document::string(what));
    session.print_json(Document::map({{"name", Document::string(options.lab.name)},
                                      {"nodes", Document::number(std::int64_t{options.lab.nodes})},
                                      {"seconds", Document::number(took.value)},
                                      {"cluster_file", Document::string(file.native())},
                                      {"missing", std::move(missing)}}));
    return kExitOk;
  }
  std::string text =
      fmt::format("Lab '{}' is up: {} nodes in {}.\n", options.lab.name, options.lab.nodes, yoke::to_string(took));
  for (const std::string& what : started.missing) text += fmt::format("Missing here: {}\n", what);
  const bool usual = file == "cluster.yaml";
  text += fmt::format("Its cluster file is {}.\nNext: yoke {}{}\n", file.native(),
                      options.lab.bare ? "link discover -o cluster.yaml --force" : "check",
                      usual ? "" : " --cluster " + file.native());
  session.print(text);
  return kExitOk;
}

CommandRow up_command() {
  return {
      .name = "up",
      .summary = "start a lab",
      .description =
          "Starts virtual nodes with their own network, files, processes and sshd, cabled by shaped links and showing "
          "the hardware of the chosen machine, and writes a cluster file. Any yoke command that is given that file "
          "runs on the lab's head node. Without root it needs user namespaces and the ids of /etc/subuid. Nothing of "
          "this machine is changed, and 'yoke lab down' leaves "
          "nothing behind.",
      .examples = {{"yoke lab up", "two Sparks and a cable"},
                   {"yoke lab up --nodes 3 --topology ring --memory 1GiB", "three in a ring"},
                   {"yoke lab up --nodes 4 --topology mesh", "four, each pair with a link of its own"},
                   {"yoke lab up --with slurm", "with a Slurm that runs over them: srun -N2 hostname on node 1"},
                   {"yoke lab up --name rack --hardware b300 --cluster-file rack.yaml", "two servers beside it"}},
      .prepare = [](OptionTable& table) -> Action {
        auto options = std::make_shared<UpOptions>();
        table.value("--name", "NAME", "the lab's name ('lab' unless given)", options->name);
        table.value("--nodes", "N", "2 to 8 nodes (2 unless given)", options->lab.nodes);
        table.choice("--topology", "KIND",
                     "direct, ring, mesh (four nodes, a link between each two) or switch (direct for two "
                     "nodes, else switch)",
                     {"direct", "ring", "mesh", "switch"}, options->topology);
        table.choice("--hardware", "NAME", "spark, b300 or none (spark unless given)", {"spark", "b300", "none"},
                     options->lab.hardware);
        table.value("--cables", "N", "cables of each Spark: 1 or 2 (1 unless given)", options->lab.cables);
        table.value("--rail-rate", "RATE", "what each rail carries (2Gb/s unless given); none: what this machine can",
                    options->lab.rail_rate);
        table.value("--management-rate", "RATE", "what the management port carries (1Gb/s unless given)",
                    options->lab.management_rate);
        table.value("--memory", "SIZE", "memory of a node (512MiB unless given)", options->lab.memory);
        table.flag("--unconfigured", "leave the fast interfaces as from the factory: no addresses, MTU 1500, IPv6 on",
                   options->lab.bare);
        table.choice("--with", "SOFTWARE", "software to start on the nodes: slurm", {"slurm"}, options->with);
        table.flag("--plain", "nodes as plain processes on loopback addresses, for a machine without namespaces",
                   options->lab.plain);
        table.value("--cluster-file", "FILE", "where to write the cluster file (cluster.yaml unless given)",
                    options->cluster_file);
        table.flag("--force", "replace cluster.yaml of a lab that is not running", options->force);
        return [options](Session& session) { return run_up(session, *options); };
      }};
}

CommandRow down_command() {
  return {.name = "down",
          .summary = "end a lab and all that belongs to it",
          .description =
              "Ends every process of the lab and removes its state. Works whatever state the lab is in. The "
              "cluster file stays.",
          .examples = {{"yoke lab down", "the lab of this folder's cluster.yaml"},
                       {"yoke lab down --name rack", "one of several"}},
          .prepare = [](OptionTable& table) -> Action {
            auto name = std::make_shared<std::optional<std::string>>();
            table.value("--name", "NAME", "which lab (that of the folder's cluster file)", *name);
            return [name](Session& session) {
              const std::string lab = lab_meant(session, *name);
              lab::stop_lab(lab);
              if (session.json) {
                session.print_json(Document::map({{"name", Document::string(lab)}, {"down", Document::boolean(true)}}));
              } else {
                session.print(fmt::format("Lab '{}' is down.\n", lab));
              }
              return kExitOk;
            };
          }};
}

struct ExecOptions {
  std::optional<std::string> name;
  std::string node;
  std::vector<std::string> argv;
};

CommandRow exec_command() {
  return {.name = "exec",
          .summary = "run a program in a node",
          .description = "Runs a program in a node of the lab, with this terminal; its exit status is ours.",
          .examples = {{"yoke lab exec spark-1 -- ip addr", "by name"},
                       {"yoke lab exec 2 -- ping -c1 spark-1", "by number"}},
          .prepare = [](OptionTable& table) -> Action {
            auto options = std::make_shared<ExecOptions>();
            table.value("--name", "NAME", "which lab (that of the folder's cluster file)", options->name);
            table.positional("NODE", "a node's name or number", options->node, Presence::kRequired);
            table.rest("PROGRAM", "what to run, with its arguments", options->argv);
            return [options](Session& session) {
              if (options->argv.empty())
                throw Error(ErrorCode::kUsage, "there is no program to run", "yoke lab exec 1 -- hostname");
              const std::string lab = lab_meant(session, options->name);
              const lab::LabLayout layout = lab::load_layout(lab);
              return lab::run_in_node(lab, lab::find_lab_node(layout, options->node), options->argv);
            };
          }};
}

CommandRow shell_command() {
  return {.name = "shell",
          .summary = "open a shell in a node",
          .description = "Opens a shell in a node of the lab.",
          .examples = {{"yoke lab shell 1", "look around on the head node"}},
          .prepare = [](OptionTable& table) -> Action {
            auto options = std::make_shared<ExecOptions>();
            table.value("--name", "NAME", "which lab (that of the folder's cluster file)", options->name);
            table.positional("NODE", "a node's name or number", options->node, Presence::kRequired);
            return [options](Session& session) {
              const std::string lab = lab_meant(session, options->name);
              const lab::LabLayout layout = lab::load_layout(lab);
              // A login shell would set a PATH without a plain node's own ssh.
              const std::vector<std::string> shell =
                  layout.plain ? std::vector<std::string>{"bash"} : std::vector<std::string>{"bash", "--login"};
              return lab::run_in_node(lab, lab::find_lab_node(layout, options->node), shell);
            };
          }};
}

}  // namespace

CommandRow lab_command() {
  return {.name = "lab",
          .summary = "a cluster of virtual nodes on this machine",
          .description = "A lab is a cluster of virtual nodes on this machine: the whole story without hardware.",
          .examples = {{"yoke lab up", "two Sparks and a cable"},
                       {"yoke lab status", "what there is"},
                       {"yoke lab down", "and gone"}},
          .prepare = {},
          .subcommands = {up_command(), lab_status_command(), exec_command(), shell_command(), lab_fault_command(),
                          down_command()}};
}

}  // namespace yoke::cli

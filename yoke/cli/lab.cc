// yoke lab up, down, status, exec, shell: a cluster of virtual nodes on this machine. Faults are in lab_fault.cc.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <cerrno>

#include "yoke/base/clock.h"
#include "yoke/base/error.h"
#include "yoke/base/files.h"
#include "yoke/cli/commands.h"
#include "yoke/cli/lab_head.h"
#include "yoke/cli/lab_status.h"
#include "yoke/lab/enter.h"
#include "yoke/lab/lab.h"
#include "yoke/lab/slurm.h"
#include "yoke/lab/state.h"
#include "yoke/spec/cluster.h"

namespace yoke {
namespace fs = std::filesystem;
namespace {

struct UpOptions {
  LabOptions lab;
  std::string topology;
  std::string with;  // "slurm" or nothing
  std::optional<std::string> cluster_file;
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
  const Result<Cluster> there = try_to([&] { return load_cluster(file); });
  if (there && there->lab == options.lab.name) return file;
  throw Error(ErrorCode::kConflict, "cluster.yaml of this folder describes another cluster",
              "name another file with --cluster-file FILE");
}

int run_up(Session& session, UpOptions& options) {
  for (const auto& [name, value] : enum_names(Topology{})) {
    if (options.topology == name) options.lab.topology = value;
  }
  const fs::path file = choose_cluster_file(options);
  if (options.with == "slurm") require_slurm();
  const Instant start = real_clock().now();
  const LabStarted started = start_lab(options.lab);
  try {
    if (options.with == "slurm") start_slurm(started.layout);
    write_file_atomically(file, print_cluster(lab_cluster(started.layout)));
  } catch (...) {
    stop_lab(options.lab.name);
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
      fmt::format("Lab '{}' is up: {} nodes in {}.\n", options.lab.name, options.lab.nodes, to_string(took));
  for (const std::string& what : started.missing) text += fmt::format("Missing here: {}\n", what);
  text +=
      fmt::format("Its cluster file is {}. Next: yoke lab exec 1 -- ssh {} hostname, yoke lab status, yoke lab down\n",
                  file.native(), started.layout.nodes[1].name);
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
                   {"yoke lab up --with slurm", "with a Slurm that runs over them: srun -N2 hostname on node 1"},
                   {"yoke lab up --name rack --hardware b300 --cluster-file rack.yaml", "two servers beside it"}},
      .prepare = [](OptionTable& table) -> Action {
        auto options = std::make_shared<UpOptions>();
        table.value("--name", "NAME", "the lab's name ('lab' unless given)", options->lab.name);
        table.value("--nodes", "N", "2 to 8 nodes (2 unless given)", options->lab.nodes);
        table.choice("--topology", "KIND", "direct, ring or switch (direct for two nodes, else switch)",
                     {"direct", "ring", "switch"}, options->topology);
        table.choice("--hardware", "NAME", "spark, b300 or none (spark unless given)", {"spark", "b300", "none"},
                     options->lab.hardware);
        table.value("--half-rate", "RATE", "what each half carries (2Gb/s unless given)", options->lab.half_rate);
        table.flag("--unshaped", "let the halves carry what this machine can", options->lab.unshaped);
        table.value("--management-rate", "RATE", "what the management port carries (1Gb/s unless given)",
                    options->lab.management_rate);
        table.value("--memory", "SIZE", "memory of a node (512MiB unless given)", options->lab.memory);
        table.flag("--bare", "leave the fast interfaces as from the factory: no addresses, MTU 1500, IPv6 on",
                   options->lab.bare);
        table.choice("--with", "SOFTWARE", "software to start on the nodes: slurm", {"slurm"}, options->with);
        table.flag("--plain", "nodes as plain processes on loopback addresses, for a machine without namespaces",
                   options->lab.plain);
        table.value("--cluster-file", "FILE", "where to write the cluster file (cluster.yaml unless given)",
                    options->cluster_file);
        return [options](Session& session) { return run_up(session, *options); };
      }};
}

CommandRow down_command() {
  return {.name = "down",
          .summary = "end a lab and all that belongs to it",
          .description =
              "Ends every process of the lab and removes its state. Works whatever state the lab is in. The "
              "cluster file stays.",
          .examples = {{"yoke lab down", "this folder's lab, or the only one"},
                       {"yoke lab down --name rack", "one of several"}},
          .prepare = [](OptionTable& table) -> Action {
            auto name = std::make_shared<std::optional<std::string>>();
            table.value("--name", "NAME", "which lab (this folder's, or the only one)", *name);
            return [name](Session& session) {
              const std::string lab = lab_meant(session, *name);
              stop_lab(lab);
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
            table.value("--name", "NAME", "which lab (this folder's, or the only one)", options->name);
            table.positional("NODE", "a node's name or number", options->node, Presence::kRequired);
            table.rest("PROGRAM", "what to run, with its arguments", options->argv);
            return [options](Session& session) {
              if (options->argv.empty())
                throw Error(ErrorCode::kUsage, "there is no program to run", "yoke lab exec 1 -- hostname");
              const std::string lab = lab_meant(session, options->name);
              const LabLayout layout = load_layout(lab);
              return run_in_node(lab, find_lab_node(layout, options->node), options->argv);
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
            table.value("--name", "NAME", "which lab (this folder's, or the only one)", options->name);
            table.positional("NODE", "a node's name or number", options->node, Presence::kRequired);
            return [options](Session& session) {
              const std::string lab = lab_meant(session, options->name);
              const LabLayout layout = load_layout(lab);
              // A login shell would set a PATH without a plain node's own ssh.
              const std::vector<std::string> shell =
                  layout.plain ? std::vector<std::string>{"bash"} : std::vector<std::string>{"bash", "--login"};
              return run_in_node(lab, find_lab_node(layout, options->node), shell);
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

}  // namespace yoke

// yoke probe: the facts of this machine, of every node of the cluster file, or of a capture.
#include <fmt/format.h>

#include <future>

#include "yoke/base/error.h"
#include "yoke/base/interrupt.h"
#include "yoke/base/progress.h"
#include "yoke/base/text.h"
#include "yoke/check/differences.h"
#include "yoke/cli/cluster_file.h"
#include "yoke/cli/commands.h"
#include "yoke/cli/lab_head.h"
#include "yoke/fleet/fleet.h"
#include "yoke/probe/probe.h"
#include "yoke/probe/probe_text.h"
#include "yoke/report/table.h"

namespace yoke::cli {
namespace {

struct ProbeOptions {
  bool here = false;
  std::optional<std::string> node;
  std::optional<std::string> root;
  std::optional<std::string> capture;
  Seconds timeout{20};

  bool is_one_machine() const { return here || root || capture; }
};

void refuse_contradictions(const Session& session, const ProbeOptions& options) {
  const bool about_cluster = session.cluster_file || session.lab || options.node;
  if (options.is_one_machine() && about_cluster) {
    const char* const one = options.root ? "--root" : options.capture ? "--capture" : "--here";
    const char* const other = options.node ? "--node" : session.lab ? "--lab" : "--cluster";
    throw Error(ErrorCode::kUsage, fmt::format("{} is about one machine, {} about a cluster", one, other),
                "give one of them");
  }
  if (options.here && options.root) {
    throw Error(ErrorCode::kUsage, "--here is this machine, --root another", "give one of them");
  }
  if (options.timeout.value <= 0) throw Error(ErrorCode::kUsage, "--timeout must be above zero", "20s is usual");
}

// NVML takes seconds to wake GPUs that nothing keeps awake.
probe::Sources sources_with_progress() {
  auto answer = std::async(std::launch::async, probe::sources_here);
  Progress progress("looking at this machine", 0);
  while (answer.wait_for(std::chrono::milliseconds(200)) != std::future_status::ready) progress.update(0);
  return answer.get();
}

// {"schema": 1, "machine": {…}}
Document machine_document(const spec::Machine& machine) {
  return Document::map(
      {{"schema", Document::number(std::int64_t{spec::kMachineSchema})}, {"machine", spec::to_json(machine)}});
}

int probe_one(Session& session, const ProbeOptions& options) {
  const probe::Sources sources = options.root ? probe::load_capture(*options.root) : sources_with_progress();
  if (options.capture) {
    probe::write_capture(sources, *options.capture);
    if (session.json) {
      session.print_json(Document::map({{"capture", Document::string(*options.capture)}}));
    } else {
      session.print(
          fmt::format("This machine is written to {}. It holds MAC and IP addresses, host names and the user's home "
                      "folder; no serial "
                      "numbers.\n"
                      "See it again with: yoke probe --root {}\n",
                      *options.capture, *options.capture));
    }
    return kExitOk;
  }
  const spec::Machine machine = probe::probe_machine(sources);
  if (session.json) {
    session.print_json(machine_document(machine));
  } else {
    session.print(probe::machine_text(machine));
  }
  return kExitOk;
}

// Their places in the cluster file.
std::vector<int> chosen_nodes(const spec::Cluster& cluster, const ProbeOptions& options) {
  std::vector<int> all;
  std::vector<std::string> names;
  for (const spec::ClusterNode& node : cluster.nodes) {
    all.push_back(static_cast<int>(names.size()));
    if (node.name == options.node) return {all.back()};
    names.push_back(node.name);
  }
  if (!options.node) return all;
  throw Error(ErrorCode::kNotFound,
              fmt::format("the cluster '{}' has no node '{}'", cluster.name, printable(*options.node, 60)),
              suggest(*options.node, names, "nodes"));
}

using Results = std::vector<Result<spec::Machine>>;

std::vector<check::Difference> differences_of(const std::vector<spec::ClusterNode>& nodes, const Results& results) {
  std::vector<std::pair<std::string, spec::Machine>> machines;
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (results[i]) machines.emplace_back(nodes[i].name, *results[i]);
  }
  return check::find_differences(machines);
}

Document as_json(const std::vector<spec::ClusterNode>& nodes, const Results& results) {
  Document list = Document::list();
  for (std::size_t i = 0; i < results.size(); ++i) {
    Document node =
        Document::map({{"name", Document::string(nodes[i].name)}, {"address", Document::string(nodes[i].address)}});
    if (results[i]) {
      node.add("machine", spec::to_json(*results[i]));
    } else {
      const Error& error = results[i].error();
      node.add("error", Document::map({{"code", Document::string(std::string(info(error.code()).name))},
                                       {"message", Document::string(error.message())},
                                       {"hint", Document::string(error.hint())}}));
    }
    list.items.push_back(std::move(node));
  }
  return Document::map({{"schema", Document::number(std::int64_t{spec::kMachineSchema})},
                        {"nodes", std::move(list)},
                        {"differences", check::to_json(differences_of(nodes, results))}});
}

std::string as_text(const std::vector<spec::ClusterNode>& nodes, const Results& results) {
  report::Table table{.columns = {{.header = "node"},
                                  {.header = "machine", .fit = report::ColumnFit::kShrinks},
                                  {.header = "GPUs", .fit = report::ColumnFit::kShrinks},
                                  {.header = "memory", .fit = report::ColumnFit::kShrinks},
                                  {.header = "fast links", .fit = report::ColumnFit::kShrinks}}};
  std::size_t answered = 0;
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (results[i]) {
      const spec::Machine& machine = *results[i];
      ++answered;
      table.rows.push_back({nodes[i].name, machine.product.value_or(machine.cpu.model), probe::gpus_text(machine),
                            probe::memory_text(machine.memory), probe::links_text(machine)});
    } else {
      const Error& error = results[i].error();
      table.rows.push_back(
          {nodes[i].name, fmt::format("{}{}{}", error.message(), error.hint().empty() ? "" : "; hint: ", error.hint()),
           "-", "-", "-"});
    }
  }
  std::string text = report::render_text(table);
  if (answered > 1) text += "\n" + check::differences_text(differences_of(nodes, results));
  return text + "\nAll facts of one node: yoke probe --node NAME; of all, for a script: yoke probe --json\n";
}

int probe_cluster(Session& session, const ProbeOptions& options) {
  const spec::Cluster cluster = load_session_cluster(session);
  fleet::Fleet fleet(cluster.nodes, chosen_nodes(cluster, options),
                     {.ssh = {.connect_timeout = options.timeout, .login_timeout = options.timeout}});
  const Results results = fleet.each("probing the nodes", [&](fleet::Node& node) {
    return from_json<spec::Machine>(node.ask("probe", Document::null(), options.timeout));
  });
  throw_if_interrupted();
  std::vector<spec::ClusterNode> nodes;
  for (std::size_t i = 0; i < fleet.size(); ++i) nodes.push_back(fleet[i].place());
  if (options.node && !results.front()) throw results.front().error();
  if (session.json) {
    session.print_json(options.node ? machine_document(*results.front()) : as_json(nodes, results));
  } else {
    session.print(options.node ? probe::machine_text(*results.front()) : as_text(nodes, results));
  }
  for (const Result<spec::Machine>& result : results) {
    if (!result) return result.error().exit_status();
  }
  return kExitOk;
}

// On a lab's head where the cluster is a lab's. Not by CommandPlace::kHead: --root and --capture name folders of the
// machine where they were typed.
std::optional<int> probe_in_lab(const Session& session, const ProbeOptions& options) {
  std::vector<std::string> arguments = {"probe", "--timeout", exact(options.timeout)};
  if (session.json) arguments.emplace_back("--json");
  if (session.quiet) arguments.emplace_back("--quiet");
  if (session.verbose) arguments.emplace_back(session.protocol ? "-vv" : "-v");
  if (options.node) arguments.insert(arguments.end(), {"--node", *options.node});
  return run_on_lab_head(session, arguments);
}

int run_probe(Session& session, const ProbeOptions& options) {
  refuse_contradictions(session, options);
  if (options.is_one_machine()) return probe_one(session, options);
  if (const auto status = probe_in_lab(session, options)) return *status;
  const bool has_cluster = options.node || find_cluster_file(session);
  return has_cluster ? probe_cluster(session, options) : probe_one(session, options);
}

}  // namespace

CommandRow probe_command() {
  return {.name = "probe",
          .summary = "the facts of this machine, or of every node of the cluster",
          .description =
              "Prints what this machine is: processor, memory (what is really available), GPUs, fast network "
              "interfaces with their rails, RDMA devices, PCIe links, driver, NCCL. With a cluster file it asks every "
              "node at once and says what differs between them. Nothing is changed; the program is copied to nodes "
              "that lack it, under ~/.cache/yoke.\n\n"
              "--capture writes down what was looked at, without serial numbers, so that --root can show it "
              "elsewhere. docs/probe.md explains the fields of --json.",
          .examples = {{"yoke probe", "every node of cluster.yaml; this machine where there is none"},
                       {"yoke probe --here --json", "this machine, for a script"},
                       {"yoke probe --node spark-2", "all facts of one node"},
                       {"yoke probe --capture desk-1", "write this machine down, to send it to somebody"},
                       {"yoke probe --root desk-1", "look at a machine that was written down"}},
          .prepare = [](OptionTable& table) -> Action {
            auto options = std::make_shared<ProbeOptions>();
            table.flag("--here", "this machine only, also where there is a cluster file", options->here);
            table.value("--node", "NAME", "one node of the cluster, with all its facts", options->node);
            table.value("--capture", "DIR", "write this machine down in a new folder", options->capture);
            table.value("--root", "DIR", "look at a machine that was written down", options->root);
            table.value("--timeout", "TIME", "how long to wait for a node (20s unless given)", options->timeout);
            return [options](Session& session) { return run_probe(session, *options); };
          }};
}

}  // namespace yoke::cli

#include "yoke/launch/preflight.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>

#include "yoke/base/text.h"

namespace yoke::launch {
namespace {

constexpr Seconds kLookLimit{60};

bool in_container(Through through) { return through == Through::kDocker || through == Through::kApptainer; }
bool is_local_path(const std::string& model) { return model.starts_with('/') || model.starts_with("./"); }

void find_missing_programs(const LaunchPlan& plan, std::size_t node, const NodeLookAnswer& answer,
                           std::vector<spec::Finding>& findings) {
  const auto processes = plan.of_node(node);
  if (processes.empty() || !answer.program.empty()) return;
  const std::string program = processes.back()->argv.front();
  if (program == plan.options.yoke) return;  // carried to the node
  findings.push_back(
      {.rule = "launch-engine-missing",
       .severity = spec::Severity::kError,
       .node = plan.nodes[node].name,
       .subject = program,
       .what = fmt::format("{} is not installed on {}.", program, plan.nodes[node].name),
       .evidence = fmt::format("'{}' is in no folder of PATH there.", program),
       .consequence = "The engine does not start, and the other nodes wait for it.",
       .fix = fmt::format("Install it on {}, or start it in a container: --through docker", plan.nodes[node].name)});
}

void find_taken_ports(const LaunchPlan& plan, std::size_t node, const NodeLookAnswer& answer,
                      std::vector<spec::Finding>& findings) {
  for (const int port : answer.taken) {
    const auto used = std::find_if(plan.engine.ports.begin(), plan.engine.ports.end(),
                                   [&](const EnginePort& one) { return plan.port(one.name) == port; });
    findings.push_back(
        {.rule = "launch-port-taken",
         .severity = spec::Severity::kError,
         .node = plan.nodes[node].name,
         .subject = std::to_string(port),
         .what = fmt::format("Port {} is in use on {}.", port, plan.nodes[node].name),
         .evidence = fmt::format("{} needs it for: {}.", plan.engine.name,
                                 used == plan.engine.ports.end() ? "its start" : used->use),
         .consequence = "The engine ends at its start.",
         .fix = fmt::format("See who has it: ss -ltnp 'sport = :{}'. For the API another one: --port N", port)});
  }
}

// The node that has it sends it, over the rails.
std::string copy_line(const LaunchPlan& plan, const std::vector<NodeLookAnswer>& answers) {
  const auto has = std::find_if(answers.begin(), answers.end(), [](const auto& answer) { return answer.model_exists; });
  if (has == answers.end()) {
    return fmt::format("yoke prep model ORG/NAME {}, then: yoke model sync {}", plan.options.model, plan.options.model);
  }
  return fmt::format("yoke model sync {} --from {}", plan.options.model,
                     plan.nodes[static_cast<std::size_t>(has - answers.begin())].name);
}

void find_models(const LaunchPlan& plan, std::size_t node, const std::vector<NodeLookAnswer>& answers,
                 std::vector<spec::Finding>& findings) {
  const NodeLookAnswer& answer = answers[node];
  const std::string& model = plan.options.model;
  if (!answer.model_exists) {
    findings.push_back({.rule = "launch-model-missing",
                        .severity = spec::Severity::kError,
                        .node = plan.nodes[node].name,
                        .subject = model,
                        .what = fmt::format("The model is not on {}.", plan.nodes[node].name),
                        .evidence = fmt::format("There is no {} there.", model),
                        .consequence = "The engine does not start on that node.",
                        .fix = copy_line(plan, answers)});
  } else if (answers.front().model_exists && answer.model_hash != answers.front().model_hash) {
    findings.push_back(
        {.rule = "launch-model-differs",
         .severity = spec::Severity::kError,
         .node = plan.nodes[node].name,
         .subject = model,
         .what = fmt::format("The model on {} is not the one on {}.", plan.nodes[node].name, plan.nodes.front().name),
         .evidence = fmt::format("{} files of {} there, {} files of {} on {}; names, sizes or small files differ.",
                                 answer.model_files, to_string(answer.model_bytes), answers.front().model_files,
                                 to_string(answers.front().model_bytes), plan.nodes.front().name),
         .consequence = "Ranks with different weights give wrong answers without an error.",
         .fix = copy_line(plan, answers)});
  }
}

void find_images(const LaunchPlan& plan, std::size_t node, const std::vector<NodeLookAnswer>& answers,
                 std::vector<spec::Finding>& findings) {
  const NodeLookAnswer& answer = answers[node];
  const std::string& name = plan.nodes[node].name;
  if (!answer.image_problem.empty()) {
    findings.push_back(
        {.rule = "launch-docker-silent",
         .severity = spec::Severity::kError,
         .node = name,
         .subject = plan.image,
         .what = fmt::format("Docker cannot be used on {}.", name),
         .evidence = printable(answer.image_problem, 200),
         .consequence = "No container can start there.",
         .fix = fmt::format("On {}: sudo systemctl start docker; sudo usermod -aG docker $USER, then log in "
                            "again",
                            name)});
  } else if (answer.image.empty()) {
    findings.push_back({.rule = "launch-image-missing",
                        .severity = spec::Severity::kError,
                        .node = name,
                        .subject = plan.image,
                        .what = fmt::format("The image {} is not on {}.", plan.image, name),
                        .evidence = "Docker has no image of that name.",
                        .consequence = "The start would download it first, or fail.",
                        .fix = fmt::format("yoke prep image {}", plan.image)});
  } else if (!answers.front().image.empty() && answer.image != answers.front().image) {
    findings.push_back({.rule = "launch-image-differs",
                        .severity = spec::Severity::kError,
                        .node = plan.nodes[node].name,
                        .subject = plan.image,
                        .what = fmt::format("{} is another image on {} than on {}.", plan.image, plan.nodes[node].name,
                                            plan.nodes.front().name),
                        .evidence = fmt::format("{} there, {} on {}.", answer.image.substr(0, 19),
                                                answers.front().image.substr(0, 19), plan.nodes.front().name),
                        .consequence = "Different versions of an engine hang or refuse each other.",
                        .fix = fmt::format("Pull it again on all nodes, or name a digest: --image {}@sha256:…",
                                           plan.image.substr(0, plan.image.rfind(':')))});
  }
}

// earlyoom's victim is the process with the most host memory, which need not be the engine: the guard should come
// first.
spec::Finding earlyoom_finding(const LaunchPlan& plan, const LaunchNode& here, Bytes floor,
                               const NodeLookAnswer& answer) {
  const Bytes its = earlyoom_floor(*answer.earlyoom, answer.memory);
  const bool comes_first = floor.value > 0 && its >= floor;
  const double left = (1 - plan.options.utilization) * static_cast<double>(answer.memory.value);
  const bool is_reached =
      here.unified && plan.engine.memory && plan.options.utilization > 0 && static_cast<double>(its.value) > left;
  std::string evidence = fmt::format("It runs as: {}.", printable(*answer.earlyoom, 120));
  if (is_reached) {
    evidence += fmt::format(" A memory share of {:.2f} leaves {} of {}.", plan.options.utilization,
                            to_string(Bytes{static_cast<std::int64_t>(left)}), to_string(answer.memory));
  }
  return {
      .rule = "launch-earlyoom",
      .severity = comes_first || is_reached ? spec::Severity::kWarning : spec::Severity::kInfo,
      .node = here.name,
      .subject = "earlyoom",
      .what = comes_first ? fmt::format("earlyoom on {} ends a process below {} of memory, before yoke's guard ({}).",
                                        here.name, to_string(its), to_string(floor))
                          : fmt::format("earlyoom on {} ends a process below {} of memory.", here.name, to_string(its)),
      .evidence = evidence,
      .consequence = "An engine that it kills ends with signal 15 and no traceback, and it may kill another process.",
      .fix = comes_first || is_reached
                 ? "a lower --utilization leaves more; or set its '-m' to 2 percent: /etc/default/earlyoom"
                 : "journalctl -u earlyoom shows what it killed"};
}

void find_killers(const LaunchPlan& plan, std::size_t node, Bytes floor, const NodeLookAnswer& answer,
                  std::vector<spec::Finding>& findings) {
  const LaunchNode& here = plan.nodes[node];
  if (here.unified && answer.swap.value > 0) {
    findings.push_back({.rule = "launch-swap",
                        .severity = spec::Severity::kInfo,
                        .node = here.name,
                        .subject = "swap",
                        .what = fmt::format("{} has {} of swap.", here.name, to_string(answer.swap)),
                        .evidence = "SwapTotal of /proc/meminfo.",
                        .consequence = "Shortly before memory ends the machine swaps and stalls; yoke's guard acts on "
                                       "available memory and does not wait for swap.",
                        .fix = "sudo swapoff -a, for as long as the engine runs"});
  }
  if (answer.earlyoom) findings.push_back(earlyoom_finding(plan, here, floor, answer));
}

}  // namespace

Bytes earlyoom_floor(const std::string& command, Bytes memory) {
  const std::vector<std::string> words = split(command, ' ');
  std::optional<double> percent, kib;
  for (std::size_t i = 0; i + 1 < words.size(); ++i) {
    if (words[i] == "-m") percent = std::strtod(words[i + 1].c_str(), nullptr);  // "10,5": SIGTERM, SIGKILL
    if (words[i] == "-M") kib = std::strtod(words[i + 1].c_str(), nullptr);
  }
  const double share = percent.value_or(kib ? 100 : 10) / 100 * static_cast<double>(memory.value);
  return Bytes{static_cast<std::int64_t>(std::min(share, kib.value_or(1e15) * 1024))};
}

LookQuestion question_for(const LaunchPlan& plan, std::size_t node, Through through) {
  LookQuestion question;
  const auto processes = plan.of_node(node);
  if (!processes.empty()) {
    question.program = through == Through::kDocker      ? "docker"
                       : through == Through::kApptainer ? "apptainer"
                                                        : processes.back()->argv.front();
  }
  for (const EnginePort& port : plan.engine.ports) {
    const bool here = port.on == RunsOn::kAll || (port.on == RunsOn::kHead) == (node == 0);
    if (here) question.ports.push_back(plan.port(port.name));
  }
  if (is_local_path(plan.options.model)) question.model = plan.options.model;
  if (through == Through::kDocker) question.image = plan.image;
  return question;
}

std::vector<spec::Finding> evaluate_launch(const LaunchPlan& plan, Through through, Bytes floor,
                                           const std::vector<NodeLookAnswer>& answers) {
  std::vector<spec::Finding> findings;
  for (std::size_t node = 0; node < answers.size(); ++node) {
    find_missing_programs(plan, node, answers[node], findings);
    find_taken_ports(plan, node, answers[node], findings);
    if (is_local_path(plan.options.model)) find_models(plan, node, answers, findings);
    if (through == Through::kDocker && in_container(through)) find_images(plan, node, answers, findings);
    find_killers(plan, node, floor, answers[node], findings);
  }
  std::stable_sort(findings.begin(), findings.end(),
                   [](const spec::Finding& a, const spec::Finding& b) { return a.severity > b.severity; });
  return findings;
}

std::vector<spec::Finding> preflight(const LaunchPlan& plan, Through through, Bytes floor, fleet::Fleet& fleet) {
  const auto answers =
      fleet::all_or_throw(fleet.each("looking at engine, model and ports", [&](fleet::Node& node, std::size_t i) {
        return from_json<NodeLookAnswer>(node.ask("launch-look", to_json(question_for(plan, i, through)), kLookLimit));
      }));
  return evaluate_launch(plan, through, floor, answers);
}

}  // namespace yoke::launch

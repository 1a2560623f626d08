// The phases about the nodes themselves: lab, reach, clean-up.
#include <fmt/format.h>

#include <algorithm>

#include "yoke/base/json.h"
#include "yoke/base/result.h"
#include "yoke/gameday/answers.h"
#include "yoke/gameday/phases.h"

namespace yoke::gameday {
namespace fs = std::filesystem;
namespace {

// So little that the model of phase `model` does not fit one node, and fits two: see phase_model.cc.
constexpr const char* kNodeMemory = "176MiB";
// The cores of this machine carry the traffic of all nodes: what two of them reach with ease, so that the cable is the
// limit, and not the machine.
constexpr const char* kRailRate = "1Gb/s";
constexpr const char* kServersRailRate = "200Mb/s";  // of eight rails

// What 'lab up' advises is about labs. Who plays a day begins the day again.
Error for_a_day(const Error& error) {
  constexpr std::string_view kOfLabs = "yoke lab up --plain";
  std::string message = error.message();
  if (const std::size_t at = message.find(kOfLabs); at != std::string::npos) {
    message.replace(at, kOfLabs.size(), "yoke gameday --plain");
  }
  return {error.code(), std::move(message), error.hint()};
}

bool is_listed(const std::string& name, PhaseRun& phase_run) {
  const Document status = phase_run.run_json({"lab", "status"});
  const Document& labs = list_at(status, "labs");
  return std::any_of(labs.items.begin(), labs.items.end(),
                     [&](const Document& lab) { return text_at(lab, "name") == name; });
}

void start_own_lab(Environment& environment, PhaseRun& phase_run) {
  std::vector<std::string> up = {"lab", "up", "--name", *environment.lab()};
  if (environment.options().lab_kind == LabKind::kPlain) {
    up.insert(up.end(), {"--plain", "--cluster-file", environment.cluster_word()});
  } else {  // as from the factory: phase `handshake` makes a cluster of them
    const bool has_servers = environment.gpus_of_node() > 1;
    up.insert(up.end(), {"--unconfigured", "--cluster-file", Environment::kFactoryFile, "--memory", kNodeMemory,
                         "--rail-rate", has_servers ? kServersRailRate : kRailRate});
    if (has_servers) up.insert(up.end(), {"--hardware", environment.options().hardware});
  }
  environment.lab_begins();
  const auto answer = try_to([&] { return phase_run.run_json(up); });
  if (!answer) throw for_a_day(answer.error());
  const Document& started = *answer;
  phase_run.figure({.name = "lab up", .value = number_at(started, "seconds"), .unit = "s"});
}

void inspect_lab(Environment& environment, PhaseRun& phase_run) {
  const std::vector<std::string> status = {"lab", "status", "--name", *environment.lab()};
  const Document answer = phase_run.run_json(status);
  std::vector<std::string> missing;
  for (const Document& what : list_at(answer, "labs.0.missing").items) missing.push_back(what.text);
  for (const std::string& what : missing) phase_run.print("missing here: " + what);
  environment.lab_lacks(std::move(missing));
  const Document& nodes = list_at(answer, "labs.0.nodes");
  const auto on = std::count_if(nodes.items.begin(), nodes.items.end(), [](const Document& node) {
    const Document* const power = node.find("on");
    return power && power->text == "true";
  });
  const Outcome shown = phase_run.run(status);
  phase_run.print(shown.out);
  phase_run.block(report::HtmlPreformatted{shown.out});
  phase_run.expect(on == std::ssize(nodes.items), "every node is on");
  phase_run.expect(list_at(answer, "labs.0.faults").items.empty(), "no fault is in force");
}

}  // namespace

void run_lab_phase(Environment& environment, PhaseRun& phase_run) {
  if (environment.has_own_lab()) start_own_lab(environment, phase_run);
  if (environment.lab()) return inspect_lab(environment, phase_run);
  const Outcome shown = phase_run.run({"cluster", "show", "--cluster", environment.cluster_word()});
  phase_run.print(shown.out);
  phase_run.block(report::HtmlPreformatted{shown.out});
  phase_run.expect(shown.ok(), "the cluster file is sound");
}

void run_reach_phase(Environment& environment, PhaseRun& phase_run) {
  const Outcome outcome = phase_run.run({"cluster", "reach", "--cluster", environment.cluster_word(), "--json"});
  const Document answer = parse_json(outcome.out, "the answer of cluster reach");
  report::Table table{
      .columns = {{.header = "node"}, {.header = "login", .align = report::TextAlign::kRight}, {.header = "answer"}}};
  double slowest = 0;
  for (const Document& node : list_at(answer, "nodes").items) {
    const std::string name = text_at(node, "name");
    const bool reached = find_at(node, "login") != nullptr;
    if (reached) slowest = std::max(slowest, number_at(node, "login"));
    table.rows.push_back({name, reached ? yoke::to_string(Seconds{number_at(node, "login")}) : "-",
                          reached ? "reached: " + text_at(node, "processor") : text_at(node, "message")});
    if (!reached) phase_run.expect(false, fmt::format("{} is reached ({})", name, text_at(node, "message")));
  }
  phase_run.show(table);
  phase_run.figure({.name = "slowest login", .value = slowest, .unit = "s"});
  phase_run.expect(outcome.ok(), "every node is reached");
}

void run_clean_up_phase(Environment& environment, PhaseRun& phase_run) {
  if (!environment.has_own_lab()) return phase_run.print("what was given stays as it was");
  if (environment.options().after == CleanUp::kKeep) {
    phase_run.print(
        fmt::format("kept: lab '{}', its cluster file {}", *environment.lab(), environment.cluster_file().native()));
    phase_run.print(fmt::format("end it with: yoke lab down --name {}; rm -r {}", *environment.lab(),
                                environment.folder().native()));
    return;
  }
  const Outcome down = phase_run.run({"lab", "down", "--name", *environment.lab()});
  const bool never_up = !down.ok() && !is_listed(*environment.lab(), phase_run);
  if (never_up) phase_run.print("the lab never came up: there is nothing to take down");
  phase_run.expect(down.ok() || never_up, "the lab is down");
  if (down.ok()) environment.lab_ended();
  if (!never_up) phase_run.expect(!is_listed(*environment.lab(), phase_run), "no lab of this name is left");
  if (!environment.model_played.empty()) {
    std::error_code failure;
    fs::remove_all(environment.model_played, failure);
    phase_run.expect(!failure, "the model's files are removed");
  }
}

}  // namespace yoke::gameday

// The phases about the nodes themselves: lab, reach, clean-up.
#include <fmt/format.h>

#include <algorithm>

#include "yoke/base/json.h"
#include "yoke/base/result.h"
#include "yoke/gameday/answers.h"
#include "yoke/gameday/phases.h"

namespace yoke {
namespace fs = std::filesystem;
namespace {

// So little that the model of phase `model` does not fit one node, and fits two: see phase_model.cc.
constexpr const char* kNodeMemory = "140MiB";
// The cores of this machine carry the traffic of all nodes: what two of them reach with ease, so that the cable is the
// limit, and not the machine.
constexpr const char* kHalfRate = "1Gb/s";

// What 'lab up' advises is about labs. Who plays a day begins the day again.
Error for_a_day(const Error& error) {
  constexpr std::string_view kOfLabs = "yoke lab up --plain";
  std::string message = error.message();
  if (const std::size_t at = message.find(kOfLabs); at != std::string::npos) {
    message.replace(at, kOfLabs.size(), "yoke gameday --plain");
  }
  return {error.code(), std::move(message), error.hint()};
}

bool is_listed(const std::string& name, Scene& scene) {
  const Document status = scene.run_json({"lab", "status"});
  const Document& labs = list_at(status, "labs");
  return std::any_of(labs.items.begin(), labs.items.end(),
                     [&](const Document& lab) { return text_at(lab, "name") == name; });
}

void start_own_lab(Venue& venue, Scene& scene) {
  std::vector<std::string> up = {"lab", "up", "--name", *venue.lab()};
  if (venue.options().lab_kind == LabKind::kPlain) {
    up.insert(up.end(), {"--plain", "--cluster-file", venue.cluster_word()});
  } else {  // as from the factory: phase `handshake` makes a cluster of them
    up.insert(up.end(),
              {"--bare", "--cluster-file", Venue::kFactoryFile, "--memory", kNodeMemory, "--half-rate", kHalfRate});
  }
  venue.lab_begins();
  const auto answer = try_to([&] { return scene.run_json(up); });
  if (!answer) throw for_a_day(answer.error());
  const Document& started = *answer;
  scene.figure({.name = "lab up", .value = number_at(started, "seconds"), .unit = "s"});
}

void look_at_lab(Venue& venue, Scene& scene) {
  const std::vector<std::string> status = {"lab", "status", "--name", *venue.lab()};
  const Document answer = scene.run_json(status);
  std::vector<std::string> missing;
  for (const Document& what : list_at(answer, "labs.0.missing").items) missing.push_back(what.text);
  for (const std::string& what : missing) scene.say("missing here: " + what);
  venue.lab_lacks(std::move(missing));
  const Document& nodes = list_at(answer, "labs.0.nodes");
  const auto on = std::count_if(nodes.items.begin(), nodes.items.end(), [](const Document& node) {
    const Document* const power = node.find("on");
    return power && power->text == "true";
  });
  const Outcome told = scene.run(status);
  scene.say(told.out);
  scene.block(HtmlPreformatted{told.out});
  scene.expect(on == std::ssize(nodes.items), "every node is on");
  scene.expect(list_at(answer, "labs.0.faults").items.empty(), "no fault is in force");
}

}  // namespace

void play_lab(Venue& venue, Scene& scene) {
  if (venue.has_own_lab()) start_own_lab(venue, scene);
  if (venue.lab()) return look_at_lab(venue, scene);
  const Outcome told = scene.run({"cluster", "show", "--cluster", venue.cluster_word()});
  scene.say(told.out);
  scene.block(HtmlPreformatted{told.out});
  scene.expect(told.ok(), "the cluster file is sound");
}

void play_reach(Venue& venue, Scene& scene) {
  const Outcome outcome = scene.run({"cluster", "reach", "--cluster", venue.cluster_word(), "--json"});
  const Document answer = parse_json(outcome.out, "the answer of cluster reach");
  Table table{.columns = {{.header = "node"}, {.header = "login", .align = TextAlign::kRight}, {.header = "answer"}}};
  double slowest = 0;
  for (const Document& node : list_at(answer, "nodes").items) {
    const std::string name = text_at(node, "name");
    const bool reached = find_at(node, "login") != nullptr;
    if (reached) slowest = std::max(slowest, number_at(node, "login"));
    table.rows.push_back({name, reached ? to_string(Seconds{number_at(node, "login")}) : "-",
                          reached ? "reached: " + text_at(node, "processor") : text_at(node, "message")});
    if (!reached) scene.expect(false, fmt::format("{} is reached ({})", name, text_at(node, "message")));
  }
  scene.show(table);
  scene.figure({.name = "slowest login", .value = slowest, .unit = "s"});
  scene.expect(outcome.ok(), "every node is reached");
}

void play_clean_up(Venue& venue, Scene& scene) {
  if (!venue.has_own_lab()) return scene.say("what was given stays as it was");
  if (venue.options().after == AfterPlay::kKeep) {
    scene.say(fmt::format("kept: lab '{}', its cluster file {}", *venue.lab(), venue.cluster_file().native()));
    scene.say(fmt::format("end it with: yoke lab down --name {}; rm -r {}", *venue.lab(), venue.folder().native()));
    return;
  }
  const Outcome down = scene.run({"lab", "down", "--name", *venue.lab()});
  const bool never_up = !down.ok() && !is_listed(*venue.lab(), scene);
  if (never_up) scene.say("the lab never came up: there is nothing to take down");
  scene.expect(down.ok() || never_up, "the lab is down");
  if (down.ok()) venue.lab_ended();
  if (!never_up) scene.expect(!is_listed(*venue.lab(), scene), "no lab of this name is left");
  if (!venue.model_played.empty()) {
    std::error_code failure;
    fs::remove_all(venue.model_played, failure);
    scene.expect(!failure, "the model's files are removed");
  }
}

}  // namespace yoke

// The phase about machines as they come from the factory: who is cabled to whom is found, a cluster file is written,
// and what setup does to the nodes is shown before it is done. All later phases use that file.
#include <fmt/format.h>

#include <algorithm>

#include "yoke/gameday/answers.h"
#include "yoke/gameday/findings.h"
#include "yoke/gameday/phases.h"

namespace yoke {
namespace {

Seconds since(Instant start) { return to_seconds(real_clock().now() - start); }

void discover(Venue& venue, Scene& scene) {
  const Instant start = real_clock().now();
  const Document found =
      look(scene, {"link", "discover", "--cluster", Venue::kFactoryFile, "-o", venue.cluster_word()});
  scene.figure({.name = "discover", .value = since(start).value, .unit = "s"});
  const Cluster cluster = venue.cluster();
  Table table{
      .columns = {{.header = "half"}, {.header = "node"}, {.header = "interface"}, {.header = "address to be"}}};
  for (std::size_t half = 0; half < cluster.nodes.front().halves.size(); ++half) {
    for (const ClusterNode& node : cluster.nodes) {
      const auto& place = node.halves.at(half);
      table.rows.push_back(
          {std::string(1, static_cast<char>('A' + half)), node.name, place.interface, to_string(place.address)});
    }
  }
  scene.show(table);
  scene.expect(text_at(found, "source") == "beacons", "beacons show who is cabled to whom, without any address");
  scene.expect(list_at(found, "segments").items.size() == 2, "both halves of the cable are found");
  scene.expect(is_clean(found), "nothing is wrong with them");
}

// The steps of an answer of setup that are in this state, each as "spark-1: what it does".
std::vector<std::string> steps_in(const Document& answer, std::string_view state) {
  std::vector<std::string> steps;
  for (const Document& step : list_at(answer, "steps").items) {
    if (text_at(step, "state") == state)
      steps.push_back(fmt::format("{}: {}", text_at(step, "node"), text_at(step, "says")));
  }
  return steps;
}

// What would be done to the letter is much: it is for the page, and the terminal gets a line for each step.
void show_plan(Scene& scene, const Document& plan) {
  std::string letter;
  for (const Document& step : list_at(plan, "steps").items) {
    const std::string line = fmt::format("{}: {}{}", text_at(step, "node"), text_at(step, "says"),
                                         text_at(step, "state") == "already" ? " (already done)" : "");
    scene.say(line);
    letter += line + "\n";
    for (const Document& command : list_at(step, "commands").items) letter += "    " + command.text + "\n";
  }
  scene.block(HtmlPreformatted{std::move(letter)});
}

}  // namespace

void play_handshake(Venue& venue, Scene& scene) {
  discover(venue, scene);
  const Document plan = scene.run_json({"link", "setup", "--dry-run", "--cluster", venue.cluster_word()});
  show_plan(scene, plan);
  const std::vector<std::string> planned = steps_in(plan, "to-do");
  const std::vector<std::string> setup = {"link", "setup", "--yes", "--cluster", venue.cluster_word()};
  const Instant start = real_clock().now();
  const std::vector<std::string> done = steps_in(scene.run_json(setup), "done");
  scene.figure({.name = "setup", .value = since(start).value, .unit = "s"});
  scene.figure({.name = "steps", .value = static_cast<double>(done.size())});
  scene.expect(!done.empty() && done == planned, "setup does exactly the steps that the dry run showed");
  scene.expect(steps_in(scene.run_json(setup), "done").empty(), "a second setup changes nothing");
}

}  // namespace yoke

// The phase about machines as they come from the factory: who is cabled to whom is found, a cluster file is written,
// and what setup does to the nodes is shown before it is done. All later phases use that file.
#include <fmt/format.h>

#include <algorithm>

#include "yoke/gameday/answers.h"
#include "yoke/gameday/findings.h"
#include "yoke/gameday/phases.h"
#include "yoke/gameday/pictures.h"

namespace yoke::gameday {
namespace {

Seconds since(Instant start) { return to_seconds(real_clock().now() - start); }

void discover(Environment& environment, PhaseRun& phase_run) {
  const Instant start = real_clock().now();
  const Document found =
      look(phase_run, {"link", "discover", "--cluster", Environment::kFactoryFile, "-o", environment.cluster_word()});
  phase_run.figure({.name = "discover", .value = since(start).value, .unit = "s"});
  const spec::Cluster cluster = environment.cluster();
  report::Table table{
      .columns = {{.header = "rail"}, {.header = "node"}, {.header = "interface"}, {.header = "address to be"}}};
  for (std::size_t rail = 0; rail < cluster.nodes.front().rails.size(); ++rail) {
    for (const spec::ClusterNode& node : cluster.nodes) {
      const auto& place = node.rails.at(rail);
      table.rows.push_back(
          {std::string(1, static_cast<char>('A' + rail)), node.name, place.interface, yoke::to_string(place.address)});
    }
  }
  phase_run.show(table);
  phase_run.block(report::HtmlPreformatted{draw_rails(cluster)});
  phase_run.expect(text_at(found, "source") == "beacons",
                   "beacons show which ports are cabled to each other, without any address");
  const std::size_t rails = cluster.nodes.front().rails.size();
  const bool all_found = rails >= 2 && list_at(found, "segments").items.size() == rails;
  phase_run.expect(all_found,
                   rails == 2 ? "both rails of the cable are found" : fmt::format("all {} rails are found", rails));
  phase_run.expect(is_clean(found), "nothing is wrong with them");
}

// The steps of an answer of setup that are in this state, each as "spark-1: what it does".
std::vector<std::string> steps_in(const Document& answer, std::string_view state) {
  std::vector<std::string> steps;
  for (const Document& step : list_at(answer, "steps").items) {
    if (text_at(step, "state") == state)
      steps.push_back(fmt::format("{}: {}", text_at(step, "node"), text_at(step, "description")));
  }
  return steps;
}

// What would be done to the letter is much: it is for the page, and the terminal gets a line for each step.
void show_plan(PhaseRun& phase_run, const Document& plan) {
  std::string letter;
  for (const Document& step : list_at(plan, "steps").items) {
    const std::string line = fmt::format("{}: {}{}", text_at(step, "node"), text_at(step, "description"),
                                         text_at(step, "state") == "already" ? " (already done)" : "");
    phase_run.print(line);
    letter += line + "\n";
    for (const Document& command : list_at(step, "commands").items) letter += "    " + command.text + "\n";
  }
  phase_run.block(report::HtmlPreformatted{std::move(letter), "What link setup shows before it asks"});
}

}  // namespace

void run_handshake_phase(Environment& environment, PhaseRun& phase_run) {
  discover(environment, phase_run);
  const Document plan = phase_run.run_json({"link", "setup", "--dry-run", "--cluster", environment.cluster_word()});
  show_plan(phase_run, plan);
  const std::vector<std::string> planned = steps_in(plan, "to-do");
  const std::vector<std::string> setup = {"link", "setup", "--yes", "--cluster", environment.cluster_word()};
  const Instant start = real_clock().now();
  const std::vector<std::string> done = steps_in(phase_run.run_json(setup), "done");
  phase_run.figure({.name = "setup", .value = since(start).value, .unit = "s"});
  phase_run.figure({.name = "steps", .value = static_cast<double>(done.size())});
  phase_run.expect(!done.empty() && done == planned, "setup does exactly the steps that the dry run showed");
  phase_run.expect(steps_in(phase_run.run_json(setup), "done").empty(), "a second setup changes nothing");
}

}  // namespace yoke::gameday

// `yoke link setup` from the head: asks the nodes, plans, shows, does step by step, and takes all of this run back
// where a step fails.
//
//   LinkSetup setup(cluster);
//   for (const PlannedStep& step : setup.steps()) …
//   setup.perform([](const PlannedStep& step, std::size_t number) { … });
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "yoke/fleet/fleet.h"
#include "yoke/link/environment_file.h"
#include "yoke/link/setup_actions.h"
#include "yoke/link/setup_facts.h"
#include "yoke/link/step.h"
#include "yoke/spec/cluster.h"

namespace yoke::link {

struct PlannedStep {
  std::size_t node = 0;
  std::string node_name;
  Step step;
  bool satisfied = false;             // nothing to do
  std::vector<std::string> commands;  // what will be run or written
};

class LinkSetup {
 public:
  // Reads only; throws what keeps it from being done.
  explicit LinkSetup(const spec::Cluster& cluster, fleet::SudoPassword* password = nullptr,
                     ShellPins shell = ShellPins::kNone);

  const std::vector<PlannedStep>& steps() const { return steps_; }
  std::size_t to_do() const;  // steps that are not so already
  // What people should know beforehand: "netplan is not installed on spark-1: …".
  const std::vector<std::string>& notices() const { return notices_; }

  // Told after each step. An Error has undone what this run did, on all nodes, and says so.
  void perform(const std::function<void(const PlannedStep&, std::size_t number)>& on_done);

 private:
  std::vector<PlannedStep> plan_ssh();
  void ask_facts();
  void look(PlannedStep& step);
  void perform_steps(const std::function<void(const PlannedStep&, std::size_t number)>& on_done);
  std::string undo_steps_since(const std::vector<std::size_t>& marks) noexcept;

  spec::Cluster cluster_;
  fleet::Fleet fleet_;
  std::vector<SetupFacts> facts_;
  std::vector<PlannedStep> steps_;
  std::size_t first_ssh_step_ = 0;
  std::vector<std::string> notices_;
};

std::vector<UndoRecord> undo_records(fleet::Node& node);  // the newest first
enum class UndoConflicts { kRefuse, kOverwrite };
void undo_all(fleet::Node& node, UndoConflicts conflicts);

}  // namespace yoke::link

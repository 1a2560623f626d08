#include "yoke/link/setup.h"

#include <fmt/format.h>

#include <algorithm>

#include "yoke/base/error.h"
#include "yoke/base/fields.h"
#include "yoke/base/result.h"
#include "yoke/link/node_answers.h"
#include "yoke/link/pairs.h"
#include "yoke/link/setup_plan.h"

namespace yoke::link {
namespace {

using namespace literals;

constexpr Seconds kLookLimit{60};
// Beyond the slowest step, `netplan apply`.
constexpr Seconds kStepLimit{180};

void undo(fleet::Node& node, const UndoRequest& request) { node.ask("undo", to_json(request), kStepLimit); }

}  // namespace

LinkSetup::LinkSetup(const spec::Cluster& cluster, fleet::SudoPassword* password, ShellPins shell)
    : cluster_(cluster), fleet_(cluster.nodes, {.rights = agent::AgentRights::kRoot, .password = password}) {
  pairs_of(cluster, {});  // throws where the file does not tell the rails
  fleet_.reach_all();
  ask_facts();
  for (std::size_t node = 0; node < fleet_.size(); ++node) {
    const std::string& name = fleet_[node].name();
    if (!facts_[node].netplan) {
      notices_.push_back(fmt::format("netplan is not installed on {}: addresses there last until it reboots", name));
    }
    if (facts_[node].host_keys.empty()) {
      notices_.push_back(fmt::format("{} has no host keys in /etc/ssh: they cannot be made known to the others", name));
    }
    for (Step& step : node_steps(cluster_, node, facts_[node], shell)) steps_.push_back({node, name, std::move(step)});
  }
  first_ssh_step_ = steps_.size();
  for (PlannedStep& step : plan_ssh()) steps_.push_back(std::move(step));
  for (PlannedStep& step : steps_) look(step);
}

void LinkSetup::ask_facts() {
  facts_ = fleet::all_or_throw(fleet::at_once(fleet_.size(), {}, [&](std::size_t node) {
    SetupQuestion question{
        .address = cluster_.nodes[node].address, .ssh_address = fleet_[node].look().reached_at, .interfaces = {}};
    for (const spec::Rail& rail : cluster_.nodes[node].rails) question.interfaces.push_back(rail.interface);
    const Document answer = fleet_[node].ask("setup-facts", to_json(question), kLookLimit);
    return checked_facts(from_json<SetupFacts>(answer), fleet_[node].name());
  }));
}

std::vector<PlannedStep> LinkSetup::plan_ssh() {
  std::vector<PlannedStep> steps;
  for (std::size_t node = 0; node < fleet_.size(); ++node) {
    for (Step& step : ssh_steps(cluster_, node, facts_)) {
      if (!step.lines.empty()) steps.push_back({node, fleet_[node].name(), std::move(step)});
    }
  }
  return steps;
}

void LinkSetup::look(PlannedStep& step) {
  StepLook look = from_json<StepLook>(fleet_[step.node].ask("look-at-step", to_json(step.step), kLookLimit));
  step.satisfied = look.satisfied;
  step.commands = std::move(look.commands);
}

std::size_t LinkSetup::to_do() const {
  return static_cast<std::size_t>(
      std::count_if(steps_.begin(), steps_.end(), [](const PlannedStep& step) { return !step.satisfied; }));
}

void LinkSetup::perform_steps(const std::function<void(const PlannedStep&, std::size_t)>& on_done) {
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    if (i == first_ssh_step_) {
      // Now every node has its key.
      ask_facts();
      std::vector<PlannedStep> known = plan_ssh();
      for (std::size_t j = 0; j < known.size(); ++j) steps_[first_ssh_step_ + j].step = std::move(known[j].step);
    }
    const PlannedStep& step = steps_[i];
    fleet_[step.node].ask("do-step", to_json(step.step), kStepLimit);
    on_done(step, i + 1);
  }
}

std::string LinkSetup::undo_steps_since(const std::vector<std::size_t>& marks) noexcept {
  std::string failures;
  for (std::size_t node = fleet_.size(); node-- > 0;) {
    const auto undone = try_to([&] { undo(fleet_[node], {.mark = marks[node]}); });
    if (!undone) failures += fmt::format("; {}: {}", fleet_[node].name(), undone.error().message());
  }
  return failures;
}

void LinkSetup::perform(const std::function<void(const PlannedStep&, std::size_t)>& on_done) {
  std::vector<std::size_t> marks;
  for (std::size_t node = 0; node < fleet_.size(); ++node) marks.push_back(undo_records(fleet_[node]).size());
  try {
    perform_steps(on_done);
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kInterrupted) {
      throw Error(error.code(), error.message(), "'yoke link undo' takes back what was done");
    }
    const std::string failures = undo_steps_since(marks);
    std::string message = error.message();
    for (const std::string& where : error.context()) message += ", " + where;
    message += failures.empty() ? "; all that was done is undone" : "; not all could be undone" + failures;
    throw Error(error.code(), message, failures.empty() ? error.hint() : "'yoke link undo' once the nodes answer");
  }
}

std::vector<UndoRecord> undo_records(fleet::Node& node) {
  return from_json<std::vector<UndoRecord>>(node.ask("records", Document::null(), kLookLimit));
}

void undo_all(fleet::Node& node, UndoConflicts conflicts) {
  undo(node, {.force = conflicts == UndoConflicts::kOverwrite});
}

}  // namespace yoke::link

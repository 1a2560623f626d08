#include "yoke/link/setup.h"

#include <fmt/format.h>

#include <algorithm>

#include "yoke/base/error.h"
#include "yoke/base/fields.h"
#include "yoke/base/result.h"
#include "yoke/link/pairs.h"
#include "yoke/link/setup_plan.h"

namespace yoke {
namespace {

using namespace literals;

constexpr Seconds kLookLimit{60};
// Beyond the slowest step, `netplan apply`.
constexpr Seconds kStepLimit{180};

Document undo_request(std::size_t mark, UndoConflicts conflicts) {
  return Document::map({{"mark", Document::number(static_cast<std::int64_t>(mark))},
                        {"force", Document::boolean(conflicts == UndoConflicts::kTakeBack)}});
}

}  // namespace

LinkSetup::LinkSetup(const Cluster& cluster, SudoPassword* password) : cluster_(cluster) {
  pairs_of(cluster, {});  // throws where the file does not tell the halves
  std::vector<int> indices;
  for (int i = 0; i < static_cast<int>(cluster.nodes.size()); ++i) indices.push_back(i);
  agents_ = start_agents(cluster.nodes, indices, AgentRights::kRoot, password);
  ask_facts();
  for (std::size_t node = 0; node < agents_.size(); ++node) {
    const std::string& name = agents_[node]->name();
    if (!facts_[node].netplan) {
      notices_.push_back(fmt::format("netplan is not installed on {}: addresses there last until it reboots", name));
    }
    if (facts_[node].host_keys.empty()) {
      notices_.push_back(fmt::format("{} has no host keys in /etc/ssh: they cannot be made known to the others", name));
    }
    for (Step& step : node_steps(cluster_, node, facts_[node])) steps_.push_back({node, name, std::move(step)});
  }
  first_ssh_step_ = steps_.size();
  for (PlannedStep& step : plan_ssh()) steps_.push_back(std::move(step));
  for (PlannedStep& step : steps_) look(step);
}

void LinkSetup::ask_facts() {
  for (std::size_t node = 0; node < agents_.size(); ++node) {
    SetupQuestion question{
        .address = cluster_.nodes[node].address, .ssh_address = agents_[node]->reached_at(), .interfaces = {}};
    for (const Half& half : cluster_.nodes[node].halves) question.interfaces.push_back(half.interface);
    agents_[node]->ask("setup-facts", to_json(question));
  }
  facts_.clear();
  for (const auto& agent : agents_) facts_.push_back(setup_facts_from_json(agent->answer(Deadline::after(kLookLimit))));
}

std::vector<PlannedStep> LinkSetup::plan_ssh() {
  std::vector<PlannedStep> steps;
  for (std::size_t node = 0; node < agents_.size(); ++node) {
    for (Step& step : ssh_steps(cluster_, node, facts_)) {
      if (!step.lines.empty()) steps.push_back({node, agents_[node]->name(), std::move(step)});
    }
  }
  return steps;
}

void LinkSetup::look(PlannedStep& step) {
  const Document answer = agents_[step.node]->call("look-at-step", to_json(step.step), kLookLimit);
  step.satisfied = from_document<bool>(*answer.find("satisfied"));
  step.commands = from_document<std::vector<std::string>>(*answer.find("commands"));
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
    agents_[step.node]->call("do-step", to_json(step.step), kStepLimit);
    on_done(step, i + 1);
  }
}

std::string LinkSetup::take_back(const std::vector<std::size_t>& marks) noexcept {
  std::string failures;
  for (std::size_t node = agents_.size(); node-- > 0;) {
    const auto undone =
        try_to([&] { agents_[node]->call("undo", undo_request(marks[node], UndoConflicts::kRefuse), kStepLimit); });
    if (!undone) failures += fmt::format("; {}: {}", agents_[node]->name(), undone.error().message());
  }
  return failures;
}

void LinkSetup::perform(const std::function<void(const PlannedStep&, std::size_t)>& on_done) {
  std::vector<std::size_t> marks;
  for (const auto& agent : agents_) marks.push_back(undo_records(*agent).size());
  try {
    perform_steps(on_done);
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kInterrupted) {
      throw Error(error.code(), error.message(), "'yoke link undo' takes back what was done");
    }
    const std::string failures = take_back(marks);
    std::string message = error.message();
    for (const std::string& where : error.context()) message += ", " + where;
    message += failures.empty() ? "; all that was done is undone" : "; not all could be undone" + failures;
    throw Error(error.code(), message, failures.empty() ? error.hint() : "'yoke link undo' once the nodes answer");
  }
}

std::vector<UndoRecord> undo_records(NodeAgent& agent) {
  std::vector<UndoRecord> records;
  for (const Document& item : agent.call("records", Document::null(), kLookLimit).items) {
    records.push_back({item.find("says")->text, item.find("time")->text, from_document<bool>(*item.find("done"))});
  }
  return records;
}

void undo_all(NodeAgent& agent, UndoConflicts conflicts) { agent.call("undo", undo_request(0, conflicts), kStepLimit); }

}  // namespace yoke

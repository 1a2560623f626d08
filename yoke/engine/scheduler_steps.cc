// What a step is made of, and what comes of it.
#include <fmt/format.h>

#include <algorithm>

#include "yoke/base/check.h"
#include "yoke/base/error.h"
#include "yoke/engine/scheduler.h"

namespace yoke::engine {

bool Scheduler::add_row(Place place, std::int64_t fresh, StepPlan& plan) {
  Running& running = place->second;
  if (!grow(place, running.cached + fresh, plan)) return false;
  plan.rows.push_back({.slot = running.slot,
                       .fresh = static_cast<std::int32_t>(fresh),
                       .made = std::exchange(running.made, std::nullopt)});
  running.cached += fresh;
  running.last = steps_;
  ++running.rows_under_way;
  return true;
}

// Those that make a token in the next step: with several stages, every stage's share of them, who waits longest first.
std::vector<Scheduler::Arrival> Scheduler::next_to_decode() const {
  std::vector<std::pair<std::uint64_t, Arrival>> waiting;
  for (const auto& [arrival, running] : running_) {
    if (running.decodes()) waiting.emplace_back(limits_.stages > 1 ? running.last : 0, arrival);
  }
  std::sort(waiting.begin(), waiting.end());
  const auto share =
      (running_.size() + static_cast<std::size_t>(limits_.stages) - 1) / static_cast<std::size_t>(limits_.stages);
  if (waiting.size() > share) waiting.resize(share);
  std::vector<Arrival> chosen;
  for (const auto& [last, arrival] : waiting) chosen.push_back(arrival);
  std::sort(chosen.begin(), chosen.end());
  return chosen;
}

// In the order in which they came: those that came last are the first to be put off.
void Scheduler::add_decoding(StepPlan& plan) {
  for (const Arrival arrival : next_to_decode()) {
    const auto place = running_.find(arrival);
    if (place != running_.end()) add_row(place, 1, plan);  // growing may have put off what follows
  }
}

// A token of an answer is made in this step, or in one under way.
bool Scheduler::somebody_answers(const StepPlan& plan) const {
  if (!plan.rows.empty()) return true;
  return std::any_of(running_.begin(), running_.end(), [](const auto& one) {
    const Running& running = one.second;
    return running.decodes() || (running.rows_under_way > 0 && running.cached == running.length());
  });
}

// By age and by what is left of them in turns: neither does a short prompt wait for a long one to end, nor does a long
// one wait for ever.
void Scheduler::add_prompts(StepPlan& plan) {
  std::vector<std::pair<std::int64_t, Arrival>> order;
  for (const auto& [arrival, running] : running_) {
    if (running.decodes()) continue;  // in one of the next steps
    const std::int64_t left = running.length() - running.cached;
    order.emplace_back(steps_ % 2 == 0 ? 0 : left, arrival);
  }
  std::sort(order.begin(), order.end());
  std::int64_t budget = somebody_answers(plan) ? limits_.budget.with_others : limits_.budget.alone;
  std::int64_t logit_rows = logit_rows_max(limits_.vocabulary);
  for (const auto& [left, arrival] : order) {
    const auto place = running_.find(arrival);
    if (place == running_.end()) continue;
    Running& running = place->second;
    std::int64_t fresh = std::min(running.length() - running.cached, budget);
    if (running.request.logits == LogitsWanted::kAll) {
      fresh = std::min(fresh, logit_rows);
      logit_rows -= fresh;
    }
    if (fresh <= 0) continue;
    budget -= fresh;
    add_row(place, fresh, plan);
  }
}

StepPlan Scheduler::next() {
  StepPlan plan;
  plan.released = std::exchange(released_, {});
  for (const std::int32_t slot : plan.released) free_slots_.push_back(slot);
  admit(plan);
  add_decoding(plan);
  add_prompts(plan);
  // What was admitted and put off in one plan was never there for the others.
  std::erase_if(plan.admitted, [&](const Admission& one) {
    const auto slot = std::find(plan.released.begin(), plan.released.end(), one.slot);
    const bool runs =
        std::any_of(running_.begin(), running_.end(), [&](const auto& other) { return other.second.slot == one.slot; });
    if (runs || slot == plan.released.end()) return false;
    plan.released.erase(slot);
    return true;
  });
  begin_step(plan);
  return plan;
}

StepPlan Scheduler::pause() {
  begin_step({});
  return {};
}

void Scheduler::begin_step(const StepPlan& plan) {
  YOKE_CHECK(std::ssize(under_way_) < limits_.stages, "{} steps are under way", under_way_.size());
  under_way_.push_back({.number = steps_++, .rows = plan.rows});
  rows_under_way_ += plan.rows.size();
}

// Pages that are full now, and whose step has ended well.
void Scheduler::publish(Running& running) {
  std::array<text::TokenId, kPageTokens> tokens;
  while ((running.published + 1) * kPageTokens <= running.computed) {
    for (std::int64_t i = 0; i < kPageTokens; ++i) {
      tokens[static_cast<std::size_t>(i)] = running.token(running.published * kPageTokens + i);
    }
    running.link = book_.publish(running.pages[static_cast<std::size_t>(running.published)], running.link, tokens);
    ++running.published;
  }
}

std::vector<EngineEvent> Scheduler::take(const std::vector<RowResult>& results) {
  std::vector<EngineEvent> events;
  if (std::ssize(under_way_) < limits_.stages) return events;
  const StepUnderWay step = std::move(under_way_.front());
  under_way_.pop_front();
  rows_under_way_ -= step.rows.size();
  for (const RowResult& result : results) {
    const auto row =
        std::find_if(step.rows.begin(), step.rows.end(), [&](const PlanRow& one) { return one.slot == result.slot; });
    // The slot may be somebody else's by now: what was cancelled or put off has no use for the result.
    const auto place = std::find_if(running_.begin(), running_.end(), [&](const auto& one) {
      return one.second.slot == result.slot && one.second.since <= step.number;
    });
    if (row == step.rows.end() || place == running_.end()) continue;
    Running& running = place->second;
    --running.rows_under_way;
    running.computed += row->fresh;
    const auto ended = take_row(running, result, events);
    if (!ended) continue;
    events.emplace_back(*ended);
    release(place);
  }
  if (!step.rows.empty()) {
    StepDone done{.preemptions = preemptions_ - std::exchange(preemptions_reported_, preemptions_)};
    for (const PlanRow& row : step.rows) done.tokens += row.fresh;
    events.emplace_back(done);
  }
  return events;
}

std::optional<RequestEnded> Scheduler::take_row(Running& running, const RowResult& result,
                                                std::vector<EngineEvent>& events) {
  Request& request = running.request;
  publish(running);
  if (running.computed > request.furthest) request.recoveries = 0;  // no longer suspected
  if (result.logits) {
    events.emplace_back(*result.logits);
    const std::int64_t end = result.logits->position + result.logits->rows.extent(0);
    if (end == std::ssize(request.prompt)) request.logits = LogitsWanted::kNone;  // all are given
  }
  if (result.error) return RequestEnded{.id = request.id, .error = result.error};
  const std::int64_t reused = std::exchange(running.reused, 0);
  if (!result.made || reused > 0) {
    events.emplace_back(
        PromptProgress{.id = request.id, .done = running.computed, .total = running.length(), .cached = reused});
  }
  if (!result.made) return std::nullopt;
  if (request.answer_max == 0) {  // only its logits were wanted
    return RequestEnded{.id = request.id, .reason = FinishReason::kLength};
  }
  request.answer.push_back(result.made->id);
  running.made = result.made->id;
  events.emplace_back(TokenEvent{.id = request.id, .token = *result.made});
  const auto reason = finished(request);
  return reason ? std::optional(RequestEnded{.id = request.id, .reason = *reason}) : std::nullopt;
}

}  // namespace yoke::engine

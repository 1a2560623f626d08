#include "yoke/engine/scheduler.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "yoke/base/error.h"

namespace yoke {
namespace {

// Logits that are all asked for take V floats a token: a step holds at most so many.
constexpr std::int64_t kLogitsMost = 1 << 24;

std::int64_t most_tokens(const Request& request) { return std::ssize(request.prompt) + request.answer_most; }

}  // namespace

void check_request(const Request& request, const SchedulerLimits& limits) {
  if (request.prompt.empty()) {
    throw Error(ErrorCode::kInvalid, "the prompt has no tokens", "give a text; a model continues what it is given");
  }
  for (const TokenId id : request.prompt) {
    if (id >= 0 && id < limits.vocabulary) continue;
    throw Error(ErrorCode::kInvalid,
                fmt::format("the prompt has the token {}, but the vocabulary has {} ids", id, limits.vocabulary));
  }
  if (request.answer_most < 0) throw Error(ErrorCode::kInvalid, "an answer cannot have less than 0 tokens");
  check_sampling(request.sampling, static_cast<TokenId>(limits.vocabulary));
  const std::int64_t room = request.answer_most > 0 ? 1 : 0;
  if (std::ssize(request.prompt) + room > limits.context_most) {
    throw Error(ErrorCode::kInvalid,
                fmt::format("the prompt has {} tokens, but a sequence has room for {} here", request.prompt.size(),
                            limits.context_most),
                "shorten it, or raise --context as far as the model and the memory allow");
  }
}

std::optional<RequestEnded> Scheduler::submit(Request request) {
  try {
    check_request(request, limits_);
    if (running_.contains(request.id) ||
        std::any_of(waiting_.begin(), waiting_.end(), [&](const Request& other) { return other.id == request.id; })) {
      throw Error(ErrorCode::kConflict, fmt::format("a request with the number {} is there already", request.id));
    }
  } catch (const Error& error) {
    return RequestEnded{.id = request.id, .error = error};
  }
  request.answer_most = std::min(request.answer_most, limits_.context_most - std::ssize(request.prompt));
  if (const auto reason = finished(request)) return RequestEnded{.id = request.id, .reason = *reason};
  if (request.answer_most == 0 && request.logits == LogitsWanted::kNone) {
    return RequestEnded{.id = request.id, .reason = FinishReason::kLength};
  }
  waiting_.push_back(std::move(request));
  return std::nullopt;
}

std::optional<RequestEnded> Scheduler::cancel(std::uint64_t id) {
  const auto waiting = std::find_if(waiting_.begin(), waiting_.end(), [&](const Request& r) { return r.id == id; });
  const auto running = running_.find(id);
  if (waiting != waiting_.end()) {
    waiting_.erase(waiting);
  } else if (running != running_.end()) {
    release(running);
  } else {
    return std::nullopt;  // it has ended meanwhile
  }
  return RequestEnded{.id = id, .reason = FinishReason::kCancelled};
}

void Scheduler::release(std::map<std::uint64_t, Running>::iterator running) {
  free_pages_ += running->second.pages;
  released_.push_back(running->first);
  running_.erase(running);
}

void Scheduler::admit(StepPlan& plan) {
  while (!waiting_.empty() && std::ssize(running_) < limits_.sequences_most) {
    const std::int64_t pages = pages_for(most_tokens(waiting_.front()));
    if (pages > free_pages_) return;
    Request& request = waiting_.front();
    const std::uint64_t id = request.id;
    free_pages_ -= pages;
    plan.admitted.push_back(request);
    running_.emplace(id, Running{.request = std::move(request), .pages = pages, .cached = 0, .made = std::nullopt});
    waiting_.pop_front();
  }
}

void Scheduler::add_row(std::uint64_t id, Running& running, std::int64_t& budget, StepPlan& plan) {
  std::int64_t fresh = running.length() - running.cached;
  const bool decodes = fresh == 1 && running.cached > 0;
  if (!decodes) {
    fresh = std::min(fresh, budget);
    if (running.request.logits == LogitsWanted::kAll) {
      fresh = std::min(fresh, std::max<std::int64_t>(1, kLogitsMost / limits_.vocabulary));
    }
    if (fresh <= 0) return;
    budget -= fresh;
  }
  plan.rows.push_back({.id = id, .fresh = fresh, .made = std::exchange(running.made, std::nullopt)});
  running.cached += fresh;
}

StepPlan Scheduler::next() {
  StepPlan plan;
  plan.released = std::exchange(released_, {});
  admit(plan);
  std::int64_t budget = limits_.chunk_tokens;
  for (auto& [id, running] : running_) add_row(id, running, budget, plan);
  return plan;
}

std::vector<EngineEvent> Scheduler::take(const std::vector<RowResult>& results) {
  std::vector<EngineEvent> events;
  for (const RowResult& result : results) {
    const auto found = running_.find(result.id);
    if (found == running_.end()) continue;
    Running& running = found->second;
    if (result.logits) {
      events.emplace_back(*result.logits);
      const std::int64_t end = result.logits->position + result.logits->rows.extent(0);
      if (end == std::ssize(running.request.prompt)) running.request.logits = LogitsWanted::kNone;  // all are given
    }
    std::optional<RequestEnded> ended;
    if (result.error) {
      ended = RequestEnded{.id = result.id, .error = result.error};
    } else if (result.made && running.request.answer_most == 0) {
      ended = RequestEnded{.id = result.id, .reason = FinishReason::kLength};  // only its logits were wanted
    } else if (result.made) {
      running.request.answer.push_back(result.made->id);
      running.made = result.made->id;
      events.emplace_back(TokenMade{.id = result.id, .token = *result.made});
      if (const auto reason = finished(running.request)) {
        ended = RequestEnded{.id = result.id, .reason = *reason};
      }
    } else {
      events.emplace_back(PromptRead{.id = result.id, .done = running.cached, .total = running.length()});
    }
    if (!ended) continue;
    events.emplace_back(*ended);
    release(found);
  }
  return events;
}

void Scheduler::restart() {
  for (auto running = running_.rbegin(); running != running_.rend(); ++running) {
    waiting_.push_front(std::move(running->second.request));
  }
  running_.clear();
  released_.clear();
  free_pages_ = limits_.pages;
}

}  // namespace yoke

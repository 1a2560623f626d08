#include "yoke/engine/scheduler.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "yoke/base/check.h"
#include "yoke/base/error.h"

namespace yoke::engine {
namespace {

// New tokens that one plan carries to all ranks: more wait for the next, so that no step stands still for their sake.
constexpr std::int64_t kMaxAdmittedTokens = 1 << 16;
constexpr int kAloneAfter = 2;  // recoveries
constexpr int kEndedAfter = 3;

void check_ids(const std::vector<text::TokenId>& ids, std::int64_t vocabulary, std::string_view what) {
  for (const text::TokenId id : ids) {
    if (id >= 0 && id < vocabulary) continue;
    throw Error(ErrorCode::kInvalid,
                fmt::format("the {} has the token {}, but the vocabulary has {} ids", what, id, vocabulary));
  }
}

Error too_many_recoveries(const Request& request, const std::string& cause) {
  return Error(ErrorCode::kInternal,
               fmt::format("the engine failed {} times while it worked on this request: {}", request.recoveries, cause),
               "other requests go on; please report this one");
}

// Tokens that need not be computed where others have: the last one is always computed, as are those whose logits are
// wanted.
std::int64_t shareable_tokens(const Request& request) {
  if (request.logits == LogitsWanted::kAll || request.logits == LogitsWanted::kStates) return 0;
  const std::int64_t prompt = std::ssize(request.prompt);
  const bool wants_last = request.logits == LogitsWanted::kLast || request.logits == LogitsWanted::kLastState;
  return wants_last ? prompt - 1 : prompt + std::ssize(request.answer) - 1;
}

}  // namespace

void check_request(const Request& request, const SchedulerLimits& limits) {
  if (request.prompt.empty()) {
    throw Error(ErrorCode::kInvalid, "the prompt has no tokens", "give a text; a model continues what it is given");
  }
  check_ids(request.prompt, limits.vocabulary, "prompt");
  check_ids(request.answer, limits.vocabulary, "answer so far");
  if (request.answer_max < 0) throw Error(ErrorCode::kInvalid, "an answer cannot have less than 0 tokens");
  text::check_sampling(request.sampling, static_cast<text::TokenId>(limits.vocabulary));
  const std::int64_t room = request.answer_max > 0 ? 1 : 0;
  const std::int64_t fits =
      limits.pages > 0 ? std::min(limits.context_max, limits.pages * kPageTokens) : limits.context_max;
  if (std::ssize(request.prompt) + room > fits) {
    throw Error(
        ErrorCode::kInvalid,
        fmt::format("the prompt has {} tokens, but a sequence has room for {} here", request.prompt.size(), fits),
        "shorten it, or raise --context as far as the model and the memory allow");
  }
}

text::TokenId Scheduler::Running::token(std::int64_t index) const {
  const std::int64_t in_answer = index - std::ssize(request.prompt);
  return in_answer < 0 ? request.prompt[static_cast<std::size_t>(index)]
                       : request.answer[static_cast<std::size_t>(in_answer)];
}

Scheduler::Place Scheduler::find(std::uint64_t id) {
  return std::find_if(running_.begin(), running_.end(), [&](const auto& one) { return one.second.request.id == id; });
}

std::optional<RequestEnded> Scheduler::submit(Request request) {
  const auto has_id = [&](const auto& one) { return one.second.id == request.id; };
  try {
    check_request(request, limits_);
    if (find(request.id) != running_.end() || std::any_of(waiting_.begin(), waiting_.end(), has_id)) {
      throw Error(ErrorCode::kConflict, fmt::format("a request with the number {} is there already", request.id));
    }
    if (request.recoveries >= kEndedAfter) throw too_many_recoveries(request, "rank 0 was lost");
  } catch (const Error& error) {
    return RequestEnded{.id = request.id, .error = error};
  }
  const std::int64_t fits =
      limits_.pages > 0 ? std::min(limits_.context_max, limits_.pages * kPageTokens) : limits_.context_max;
  request.answer_max = std::min(request.answer_max, fits - std::ssize(request.prompt));
  if (const auto reason = finished(request)) return RequestEnded{.id = request.id, .reason = *reason};
  if (request.answer_max == 0 && request.logits == LogitsWanted::kNone) {
    return RequestEnded{.id = request.id, .reason = FinishReason::kLength};
  }
  waiting_.emplace(arrivals_++, std::move(request));
  return std::nullopt;
}

std::optional<RequestEnded> Scheduler::cancel(std::uint64_t id) {
  const auto waiting =
      std::find_if(waiting_.begin(), waiting_.end(), [&](const auto& one) { return one.second.id == id; });
  const auto running = find(id);
  if (waiting != waiting_.end()) {
    waiting_.erase(waiting);
  } else if (running != running_.end()) {
    release(running);
  } else {
    return std::nullopt;  // it has ended meanwhile
  }
  if (suspect_ == id) suspect_.reset();
  return RequestEnded{.id = id, .reason = FinishReason::kCancelled};
}

// ---- pages

// The last page first: of what is kept, the beginning of a prompt is worth most.
void Scheduler::give_back(Running& running) {
  for (auto page = running.pages.rbegin(); page != running.pages.rend(); ++page) book_.drop(*page);
  running.pages.clear();
}

void Scheduler::release(Place place) {
  give_back(place->second);
  released_.push_back(place->second.slot);
  if (suspect_ == place->second.request.id) suspect_.reset();
  running_.erase(place);
}

std::int32_t Scheduler::new_slot() {
  if (free_slots_.empty()) return slots_++;
  const std::int32_t slot = free_slots_.back();
  free_slots_.pop_back();
  return slot;
}

// The pages that others have filled with the same beginning.
void Scheduler::share_prefix(Running& running) {
  const std::int64_t most = shareable_tokens(running.request);
  running.link = PageBook::first_link(running.request.cache_salt);
  std::array<text::TokenId, kPageTokens> tokens;
  while ((running.published + 1) * kPageTokens <= most) {
    for (std::int64_t i = 0; i < kPageTokens; ++i) {
      tokens[static_cast<std::size_t>(i)] = running.token(running.published * kPageTokens + i);
    }
    const auto found = book_.find(running.link, tokens);
    if (!found) break;
    book_.hold(found->page);
    running.pages.push_back(found->page);
    running.link = found->link;
    ++running.published;
  }
  running.cached = running.published * kPageTokens;
}

bool Scheduler::admit_one(Arrival arrival, Request& request, StepPlan& plan) {
  Running running{.request = request};
  share_prefix(running);
  const std::int64_t needed = pages_for(running.length() + 1) - std::ssize(running.pages);
  // A page for each that runs is left, so that what is admitted now is not put off at once.
  const std::int64_t kept_free = std::ssize(running_);
  if (!running_.empty() && needed + kept_free > book_.available()) {
    give_back(running);
    return false;
  }
  for (std::int64_t i = std::ssize(running.pages); i < pages_for(running.length()); ++i) {
    const auto page = book_.take();
    YOKE_CHECK(page.has_value(), "{} pages are needed, {} there", needed, book_.available());
    running.pages.push_back(*page);
  }
  running.slot = new_slot();
  running.since = steps_;
  running.computed = running.cached;
  if (request.answer.empty()) running.reused = running.cached;
  tokens_reused_ += running.cached;
  plan.admitted.push_back({.slot = running.slot, .cached = running.cached, .request = request});
  plan.grants.push_back({.slot = running.slot, .pages = running.pages});
  running_.emplace(arrival, std::move(running));
  return true;
}

// Whether a sequence at work is about to fill pages with the beginning of this prompt. Waiting for them costs less than
// computing them twice: so several answers to one prompt share its pages.
bool Scheduler::is_being_read(const Request& request) const {
  const std::int64_t most = shareable_tokens(request);
  return std::any_of(running_.begin(), running_.end(), [&](const auto& one) {
    const Running& running = one.second;
    if (running.computed >= std::ssize(running.request.prompt)) return false;
    if (running.request.cache_salt != request.cache_salt) return false;
    const auto& [theirs, ours] = std::tie(running.request.prompt, request.prompt);
    const auto differs = std::mismatch(theirs.begin(), theirs.end(), ours.begin(), ours.end()).first;
    const std::int64_t same = std::min<std::int64_t>(most, differs - theirs.begin());
    return same / kPageTokens > running.computed / kPageTokens;
  });
}

void Scheduler::admit(StepPlan& plan) {
  std::int64_t tokens = 0;
  auto next = waiting_.begin();
  while (next != waiting_.end() && std::ssize(running_) < limits_.sequences_max) {
    // A suspect waits until all others have ended or are put off, and then has the engine for itself.
    if (suspect_ && !running_.empty()) return;
    if (suspect_) {
      next =
          std::find_if(waiting_.begin(), waiting_.end(), [&](const auto& one) { return one.second.id == *suspect_; });
      YOKE_CHECK(next != waiting_.end(), "the suspect {} is not there", *suspect_);
    } else if (next->second.recoveries >= kAloneAfter) {
      if (!running_.empty()) return;
      suspect_ = next->second.id;
    }
    if (is_being_read(next->second)) {
      ++next;
      continue;
    }
    tokens += std::ssize(next->second.prompt) + std::ssize(next->second.answer);
    if (tokens > kMaxAdmittedTokens && !plan.admitted.empty()) return;
    if (!admit_one(next->first, next->second, plan)) return;
    next = waiting_.erase(next);
  }
}

void Scheduler::preempt(Place place, StepPlan& plan) {
  ++preemptions_;
  Running& running = place->second;
  give_back(running);
  plan.released.push_back(running.slot);
  free_slots_.push_back(running.slot);
  const auto of_it = [&](const auto& one) { return one.slot == running.slot; };
  std::erase_if(plan.rows, of_it);
  std::erase_if(plan.grants, of_it);
  waiting_.emplace(place->first, std::move(running.request));
  running_.erase(place);
}

// Pages for so many tokens of a sequence, taken from the one that came last where none is left. False where that is
// itself.
bool Scheduler::grow(Place place, std::int64_t tokens, StepPlan& plan) {
  Running& running = place->second;
  std::vector<std::int32_t> fresh;
  while (std::ssize(running.pages) < pages_for(tokens)) {
    if (const auto page = book_.take()) {
      running.pages.push_back(*page);
      fresh.push_back(*page);
      continue;
    }
    const auto youngest = std::prev(running_.end());
    const bool is_itself = youngest == place;
    preempt(youngest, plan);
    if (is_itself) return false;
  }
  if (!fresh.empty()) plan.grants.push_back({.slot = running.slot, .pages = std::move(fresh)});
  return true;
}

std::vector<EngineEvent> Scheduler::restart(const std::string& cause) {
  std::vector<EngineEvent> events;
  for (auto& [arrival, running] : running_) {
    Request& request = running.request;
    if (running.rows_under_way > 0) {
      ++request.recoveries;
      request.furthest = std::max(request.furthest, running.computed);
    }
    if (request.recoveries >= kEndedAfter) {
      events.emplace_back(RequestEnded{.id = request.id, .error = too_many_recoveries(request, cause)});
      continue;
    }
    waiting_.emplace(arrival, std::move(request));
  }
  running_.clear();
  released_.clear();
  free_slots_.clear();
  slots_ = 0;
  suspect_.reset();
  under_way_.clear();
  rows_under_way_ = 0;
  book_ = PageBook(limits_.pages);
  return events;
}

}  // namespace yoke::engine

// Rank 0's queue: which requests are in the cache, which wait, and what the next step computes. Sequences that answer
// go on in every step; what is left of a step's budget goes to prompts, in the order they came. A request is admitted
// when the cache has pages for all of it, so that nothing that was begun must be put off. Pure: no clock, no sockets.
#pragma once
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <vector>

#include "yoke/engine/executor.h"
#include "yoke/engine/plan.h"
#include "yoke/engine/request.h"

namespace yoke {

struct SchedulerLimits {
  std::int64_t vocabulary = 0;
  std::int64_t context_most = 0;  // tokens of one sequence
  std::int64_t pages = 0;         // of the cache
  std::int64_t chunk_tokens = 512;
  int sequences_most = 64;
};

// Error(kInvalid) where a request can never run within these limits.
void check_request(const Request& request, const SchedulerLimits& limits);

class Scheduler {
 public:
  explicit Scheduler(const SchedulerLimits& limits) : limits_(limits), free_pages_(limits.pages) {}

  // What comes of it at once: refused where it can never run.
  std::optional<RequestEnded> submit(Request request);
  std::optional<RequestEnded> cancel(std::uint64_t id);

  // How many tokens of prompts a step takes from now on.
  void set_chunk(std::int64_t tokens) { limits_.chunk_tokens = tokens; }

  bool has_work() const { return !waiting_.empty() || !running_.empty() || !released_.empty(); }
  StepPlan next();
  // The results of the step that next() planned.
  std::vector<EngineEvent> take(const std::vector<RowResult>& results);

  // The caches are lost: what runs goes back to the queue with the answer that it has.
  void restart();

 private:
  struct Running {
    Request request;  // with all of the answer
    std::int64_t pages = 0;
    std::int64_t cached = 0;
    std::optional<TokenId> made;  // to be told to the others
    std::int64_t length() const { return std::ssize(request.prompt) + std::ssize(request.answer); }
  };
  void admit(StepPlan& plan);
  void add_row(std::uint64_t id, Running& running, std::int64_t& budget, StepPlan& plan);
  void release(std::map<std::uint64_t, Running>::iterator running);

  SchedulerLimits limits_;
  std::int64_t free_pages_;
  std::deque<Request> waiting_;
  std::map<std::uint64_t, Running> running_;  // by id, which grow: the order in which they came
  std::vector<std::uint64_t> released_;
};

}  // namespace yoke

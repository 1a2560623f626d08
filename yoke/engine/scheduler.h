// Rank 0's queue: which requests are in the cache, which wait, and what the next step computes. Sequences that answer
// go on in every step; what is left of a step's budget goes to prompts. Pages are given as sequences grow. Where they
// run out, the sequence that came last gives its pages back and is computed again later: the same bits, so nobody sees
// it. What a prompt shares with an earlier one is not computed again (page_book.h). Pure: no clock, no sockets.
//
// With several stages as many steps are under way as there are stages: while the second stage computes its layers of
// one step, the first begins the next. Answers are spread over these steps, so that no stage waits for another. Every
// stage carries out the steps in the order in which they were planned, so a page may be given to somebody else while an
// earlier step that uses it is under way.
#pragma once
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "yoke/engine/executor.h"
#include "yoke/engine/page_book.h"
#include "yoke/engine/plan.h"
#include "yoke/engine/request.h"
#include "yoke/engine/step_pace.h"

namespace yoke::engine {

struct SchedulerLimits {
  std::int64_t vocabulary = 0;
  std::int64_t context_max = 0;  // tokens of one sequence
  std::int64_t pages = 0;        // of the cache; 0: not known yet
  PromptBudget budget = {};      // tokens of prompts that a step takes
  int sequences_max = 64;
  int stages = 1;  // steps under way at once
};

// Rows of logits that one step may hold where requests ask for all of them: V floats each.
constexpr std::int64_t logit_rows_max(std::int64_t vocabulary) {
  constexpr std::int64_t kMaxLogits = 1 << 22;
  return std::max<std::int64_t>(1, kMaxLogits / std::max<std::int64_t>(1, vocabulary));
}

// Error(kInvalid) where a request can never run within these limits.
void check_request(const Request& request, const SchedulerLimits& limits);

class Scheduler {
 public:
  explicit Scheduler(const SchedulerLimits& limits) : limits_(limits), book_(limits.pages) {}

  // What comes of it at once: refused where it can never run.
  std::optional<RequestEnded> submit(Request request);
  std::optional<RequestEnded> cancel(std::uint64_t id);

  // How many tokens of prompts a step takes from now on.
  void set_budget(const PromptBudget& budget) { limits_.budget = budget; }

  bool has_work() const { return !waiting_.empty() || !running_.empty() || !released_.empty() || rows_under_way_ > 0; }
  // The request that runs alone since the engine failed while it ran.
  std::optional<std::uint64_t> suspect() const { return suspect_; }
  StepPlan next();
  StepPlan pause();  // a step of nothing instead
  // After each step: the results of the one that was planned `stages` - 1 steps before; none while there is no such.
  std::vector<EngineEvent> take(const std::vector<RowResult>& results);

  // The step failed and the caches are lost: what runs goes back to the queue with the answer that it has. What was in
  // the failed step is suspected of it: the second time it then runs alone, the third time it ends with an error.
  std::vector<EngineEvent> restart(const std::string& cause);

  const PageBook& pages() const { return book_; }
  std::int64_t tokens_reused() const { return tokens_reused_; }  // that were not computed, as their pages were known
  std::int64_t preemptions() const { return preemptions_; }

 private:
  using Arrival = std::uint64_t;  // the order in which requests came; ids are the client's own
  struct Running {
    Request request;  // with all of the answer
    std::int32_t slot = 0;
    std::vector<std::int32_t> pages;
    std::int64_t cached = 0;            // tokens, when all steps under way have ended
    std::int64_t computed = 0;          // of those, by steps that have ended well
    std::optional<text::TokenId> made;  // to be told to the others
    std::int64_t published = 0;         // of its pages, from the first on
    PageBook::Link link = 0;            // what the page after those follows
    std::uint64_t since = 0;            // the step in which it was admitted
    std::uint64_t last = 0;             // the step that it was in last
    int rows_under_way = 0;
    std::int64_t reused = 0;  // tokens that it found in the cache, to be told to its client

    std::int64_t length() const { return std::ssize(request.prompt) + std::ssize(request.answer); }
    text::TokenId token(std::int64_t index) const;
    bool decodes() const { return length() - cached == 1 && cached > 0; }
  };
  using Place = std::map<Arrival, Running>::iterator;
  struct StepUnderWay {
    std::uint64_t number = 0;
    std::vector<PlanRow> rows;
  };

  Place find(std::uint64_t id);
  void admit(StepPlan& plan);
  bool is_being_read(const Request& request) const;
  bool admit_one(Arrival arrival, Request& request, StepPlan& plan);
  void share_prefix(Running& running);
  bool grow(Place place, std::int64_t tokens, StepPlan& plan);
  void preempt(Place place, StepPlan& plan);
  std::vector<Arrival> next_to_decode() const;
  void add_decoding(StepPlan& plan);
  bool somebody_answers(const StepPlan& plan) const;
  void add_prompts(StepPlan& plan);
  bool add_row(Place place, std::int64_t fresh, StepPlan& plan);
  void begin_step(const StepPlan& plan);
  std::optional<RequestEnded> take_row(Running& running, const RowResult& result, std::vector<EngineEvent>& events);
  void publish(Running& running);
  void give_back(Running& running);
  void release(Place place);
  std::int32_t new_slot();

  SchedulerLimits limits_;
  PageBook book_;
  std::map<Arrival, Request> waiting_;
  std::map<Arrival, Running> running_;
  std::vector<std::int32_t> released_;
  std::vector<std::int32_t> free_slots_;
  std::int32_t slots_ = 0;
  Arrival arrivals_ = 0;
  std::uint64_t steps_ = 0;
  std::deque<StepUnderWay> under_way_;  // the oldest first
  std::size_t rows_under_way_ = 0;
  std::optional<std::uint64_t> suspect_;
  std::int64_t tokens_reused_ = 0;
  std::int64_t preemptions_ = 0;
  std::int64_t preemptions_reported_ = 0;
};

}  // namespace yoke::engine

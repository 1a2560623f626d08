// What the steps of one rank were made of: computing by kind, exchanging, and what the kernel says of this process.
// Rank 0 joins the books of all ranks into one account (spec/step_account.h).
//
//   book.add(tokens, took);                                  // after each step, on every rank
//   join_books(gather_texts(control, book.page(facts)));     // between two steps, on all ranks
//
// One thread owns it. A step costs it two reads of the clock for each operation and no allocation.
#pragma once
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "yoke/base/file_tree.h"
#include "yoke/base/units.h"
#include "yoke/comm/timed.h"
#include "yoke/ops/timed_backend.h"
#include "yoke/spec/step_account.h"

namespace yoke::engine {

struct StepTokens {
  std::int64_t prompt = 0, answers = 0;
};
struct StepPlan;
StepTokens count_tokens(const StepPlan& plan);
// Of the plans that all stages are at: the longest prompt, and all answers.
StepTokens sum_of_stages(const std::deque<StepTokens>& under_way);

// Of this process, by the kernel's counts.
struct ProcessTimes {
  double run = 0;        // seconds on a processor, of all threads
  double wait = 0;       // ready to run without one
  double throttled = 0;  // of its control groups
  double stolen = 0;     // of each processor, by the machine's host
  double busy = 0;       // of all processors of the machine together, no matter who used them
};
ProcessTimes read_process_times(const FileTree& tree);

struct BookFacts {
  int rank = 0;
  std::string node, machine;
  int threads = 1;
  double weights = 0;  // bytes held
};

class StepBook {
 public:
  // What is timed from now on; null: there is none. Both must outlive the next call.
  void watch(ops::TimedBackend* ops, comm::TimedCommunicator* exchange, bool is_aligned);
  void before_step(const StepTokens& tokens);
  void add(const StepTokens& tokens, Seconds took);
  void skip();  // a step in which this rank computed nothing: what it exchanged belongs to no other
  // This rank's account so far and the times of its exchanges, as one text.
  std::string page(const BookFacts& facts, std::vector<spec::RailUse> rails);

 private:
  static constexpr std::size_t kMaxExchanges = 8192;  // of each kind whose times are kept
  static constexpr double kLongExchange = 16 << 10;   // bytes, on average

  spec::StepSums& sums_of(const StepTokens& tokens);
  void count_long_step();

  ops::TimedBackend* ops_ = nullptr;
  comm::TimedCommunicator* exchange_ = nullptr;
  bool is_aligned_ = true;  // all ranks do the same exchanges in the same order
  spec::StepSums decode_, prefill_, mixed_;
  std::vector<float> decode_exchanges_, prefill_exchanges_;
  std::vector<spec::RailUse> rails_before_;  // a step that reads a prompt
  std::vector<spec::RailUse> long_uses_;     // sums of long_bytes and long_busy
  ProcessTimes first_;
  Instant start_{};
  Instant end_{};
  bool has_begun_ = false;
};

// Pages of all ranks, by rank. Ranks of one machine also wait for each other's threads: of the time without a
// processor, the part that other programs had of the machine's busy time counts. An exchange is over when the last rank
// has come: the shortest of all ranks' times is its own, and what others took longer they waited.
spec::StepAccount join_books(const std::vector<std::string>& pages, std::string transport);

// Fills the interfaces and routes of rails, as this machine has them now.
void look_up_routes(std::vector<spec::RailUse>& rails);

}  // namespace yoke::engine

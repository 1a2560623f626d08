// Measures one collective inside every rank of a group: the same call on all ranks, each on its own thread or process.
//
//   const CollectiveRun run = run_collective_bench(*comm, options, facts_of_this_process(0), {.sink = &table});
//
// All ranks take the same path through sizes, types and operations, and exchange their times over the communicator
// itself; so each holds the same result at the end, and rank 0's sink is told of each row as it comes. What is timed is
// checked. An Error ends the measurement on every rank: rank 0 keeps the rows before it, with the Error's text, and
// the others throw it.
#pragma once
#include <functional>
#include <string>

#include "yoke/bench/bench_context.h"
#include "yoke/bench/collective_run.h"
#include "yoke/comm/communicator.h"

namespace yoke::bench {

// Told on rank 0, from its thread.
class CollectiveSink {
 public:
  virtual ~CollectiveSink() = default;
  virtual void begin(const CollectiveRun& run) = 0;  // rows are still empty
  virtual void row(const CollectiveRun& run, const CollectiveRow& row) = 0;
  virtual void end(const CollectiveRun& run) = 0;  // also after an error
};

// The plain library to compare with: does the operation at once and blocks until it is done. The same on all ranks.
struct BaselineLibrary {
  std::string name;  // "mpi"
  std::function<void(const comm::Collective&)> run;
  bool checked = true;  // false: it only moves the bytes, and its results mean nothing
};

struct CollectiveHooks {
  CollectiveSink* sink = nullptr;  // of rank 0 only
  const BaselineLibrary* baseline = nullptr;
};

CollectiveRun run_collective_bench(const BenchContext& context, const CollectiveOptions& options,
                                   const RankFacts& facts, const CollectiveHooks& hooks = {});
// On processors, where one communicator does all.
CollectiveRun run_collective_bench(comm::Communicator& comm, const CollectiveOptions& options, const RankFacts& facts,
                                   const CollectiveHooks& hooks = {});

}  // namespace yoke::bench

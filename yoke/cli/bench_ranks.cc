#include "yoke/cli/bench_ranks.h"

#include <exception>
#include <thread>

#include "yoke/base/error.h"
#include "yoke/comm/local/local.h"

namespace yoke {

// Ranks as threads of this process: rank 0 in the caller's, so that what the sink throws ends here.
CollectiveRun run_ranks(const RankRequest& request, const CollectiveOptions& options, CollectiveSink* sink) {
  auto ranks = make_local(request.ranks, {.operation_timeout = options.timeout});
  std::vector<std::jthread> others;
  std::vector<std::exception_ptr> unexpected(ranks.size());
  for (std::size_t rank = 1; rank < ranks.size(); ++rank) {
    others.emplace_back([&, rank] {
      try {
        run_collective_bench(*ranks[rank], options, facts_of_this_process(static_cast<int>(rank)));
      } catch (const Error&) {
        // Rank 0 has it: an Error of one rank reaches all.
      } catch (...) {
        unexpected[rank] = std::current_exception();
      }
    });
  }
  CollectiveRun run = run_collective_bench(*ranks[0], options, facts_of_this_process(0), {.sink = sink});
  others.clear();  // joins
  for (const std::exception_ptr& exception : unexpected) {
    if (exception) std::rethrow_exception(exception);
  }
  return run;
}

}  // namespace yoke

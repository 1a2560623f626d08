// yoke bench scaling: all-reduce with more and more ranks.
#include <fmt/format.h>

#include "yoke/base/error.h"
#include "yoke/base/interrupt.h"
#include "yoke/bench/collective_ranks.h"
#include "yoke/bench/history.h"
#include "yoke/bench/scaling.h"
#include "yoke/cli/bench_options.h"
#include "yoke/cli/commands.h"

namespace yoke {
namespace {

struct ScalingArguments {
  BenchArguments bench;
  std::string ranks = "1,2,4";
};

int measure(Session& session, const ScalingArguments& arguments) {
  const std::vector<int> counts = parse_rank_counts(arguments.ranks);
  CollectiveOptions options = made_of(arguments.bench, CollectiveKind::kAllReduce);
  std::vector<RankRequest> requests;
  for (const int ranks : counts) requests.push_back(request_of(session, arguments.bench, ranks, options));
  std::vector<CollectiveRun> runs;
  bool passed = true;
  for (const RankRequest& request : requests) {
    const CollectiveRun& run = runs.emplace_back(run_ranks(request, options, nullptr));
    throw_if_interrupted();
    if (run.failure) throw to_error(*run.failure).in(fmt::format("measuring {} ranks", request.ranks));
    passed = passed && run.passed();
  }
  if (session.json) {
    session.print_json(scaling_json(runs));
  } else {
    session.print(scaling_text(runs));
    if (!passed) session.print("Some results were wrong.\n");
  }
  if (!arguments.bench.no_history) session.warn(keep_record(scaling_record(runs)));
  return passed ? kExitOk : kExitFindings;
}

}  // namespace

CommandRow bench_scaling_command() {
  return {.name = "scaling",
          .summary = "all-reduce with 1, 2, 4 ranks: how much of the bandwidth remains",
          .description =
              "Times all-reduce with more and more ranks and compares the bus bandwidth with that of the "
              "fewest ranks above one: a table of efficiency and a plot.",
          .examples = {{"yoke bench scaling", "1, 2 and 4 ranks, 32 MiB"},
                       {"yoke bench scaling --ranks 2,4,8 -b 64K -e 16M -f 16", "more ranks, three sizes"}},
          .prepare = [](OptionTable& table) -> Action {
            auto arguments = std::make_shared<ScalingArguments>();
            table.value("--ranks", "LIST", "numbers of ranks, rising (1,2,4)", arguments->ranks);
            declare_sizes(table, arguments->bench);
            return [arguments](Session& session) { return measure(session, *arguments); };
          },
          .place = CommandPlace::kHead};
}

}  // namespace yoke

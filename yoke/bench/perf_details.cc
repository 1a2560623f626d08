// What yoke says below the rows: comment lines to the readers of nccl-tests' table. The words "out-of-place" and
// "in-place" stand only in the head of the table: a reader such as SuperBench's finds the head by their last line.
#include <fmt/format.h>

#include <algorithm>

#include "yoke/bench/perf_table.h"
#include "yoke/bench/verdict.h"

namespace yoke::bench {
namespace {

std::string percentile_lines(const CollectiveRun& run) {
  std::string text =
      "# Spread of iterations (us, the slowest rank of each), first of two buffers, then of one\n"
      "#         size     p50     p95     p99     max     p50     p95     p99     max\n";
  for (const CollectiveRow& row : run.rows) {
    text += fmt::format("# {:12}", row.size);
    for (const PlacementResult* result : {&row.out_of_place, &row.in_place}) {
      const SampleStats& stats = result->stats;
      for (const double value : {stats.p50, stats.p95, stats.p99, stats.max}) text += " " + fit_number(value, 7);
    }
    text += "\n";
  }
  return text;
}

// Ranks differ by what they wait, so a line for the fastest and the slowest is enough beyond a few ranks.
std::string rank_lines(const CollectiveRun& run) {
  constexpr std::size_t kRanksShown = 8;
  std::string text = "# Ranks (us, mean of each rank, of two buffers) and which rank is late\n";
  for (const CollectiveRow& row : run.rows) {
    const PlacementResult& result = row.out_of_place;
    text += fmt::format("# {:12}", row.size);
    if (result.rank_times.size() <= kRanksShown) {
      for (const double time : result.rank_times) text += "  " + fit_number(time, 7);
    } else {
      const auto [min, max] = std::minmax_element(result.rank_times.begin(), result.rank_times.end());
      text += fmt::format("  {} (rank {}) to {} (rank {})", fit_number(*min, 7), min - result.rank_times.begin(),
                          fit_number(*max, 7), max - result.rank_times.begin());
    }
    text += fmt::format("  {}\n", describe_straggler(run, result));
  }
  return text;
}

std::string baseline_lines(const CollectiveRun& run) {
  std::string text = fmt::format(
      "# Beside {} (us a call in a row, medians of the slowest rank, in turns; below 1 yoke is faster)\n"
      "#         size     yoke   theirs    ratio  #wrong\n",
      *run.baseline);
  for (const CollectiveRow& row : run.rows) {
    if (!row.baseline) continue;
    const double ratio = row.baseline->theirs > 0 ? row.baseline->ours / row.baseline->theirs : 0;
    text += fmt::format("# {:12}  {}  {}  {:7.2f}  {:>6}\n", row.size, fit_number(row.baseline->ours, 7),
                        fit_number(row.baseline->theirs, 7), ratio,
                        row.baseline->wrong ? fmt::format("{}", *row.baseline->wrong) : "N/A");
  }
  return text;
}

}  // namespace

std::string table_details(const CollectiveRun& run, const CoresInUse& in_use) {
  std::string text;
  if (!run.rows.empty()) {
    text += "#\n" + percentile_lines(run);
    if (run.ranks.size() > 1) text += "#\n" + rank_lines(run);
    if (run.baseline) text += "#\n" + baseline_lines(run);
    if (run.ranks.size() == 1) {
      text += "#\n# Verdict: none. One rank alone: nothing crossed a link (--ranks 2, or a cluster file).\n";
    } else if (const auto verdict = evaluate_link(run, in_use)) {
      text += fmt::format("#\n# Verdict: {}\n", verdict->text);
    }
  }
  return text + (text.empty() ? "" : "#\n");
}

}  // namespace yoke::bench

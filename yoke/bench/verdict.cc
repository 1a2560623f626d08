#include "yoke/bench/verdict.h"

#include <fmt/format.h>

#include <algorithm>

#include "yoke/base/text.h"

namespace yoke::bench {
namespace {

// Ethernet, IP and TCP headers take 0.4 % (MTU 9000) to 5 % (MTU 1500) of a link: what reaches nine tenths is whole.
constexpr double kGood = 0.9;
constexpr double kFair = 0.7;
constexpr double kAbove = 1.05;
constexpr double kCoresBusy = 0.93;  // of all cores: the rest is what the scheduler leaves idle between wake-ups
// Less than this may lie in the buffers of sockets and of a shaped link when the clock stops, or be mostly latency: it
// says little about the link either way.
constexpr std::int64_t kEvaluatedFrom = 4 << 20;

struct EvaluatedRow {
  double bandwidth = 0;
  std::int64_t size = 0;
};

// The best row of those that are long enough, else of the longest.
EvaluatedRow row_to_evaluate(const std::vector<CollectiveRow>& rows) {
  const std::int64_t longest = std::ranges::max(rows, {}, &CollectiveRow::size).size;
  EvaluatedRow best{.size = longest};
  for (const CollectiveRow& row : rows) {
    const double bandwidth = std::max(row.out_of_place.bus_bandwidth, row.in_place.bus_bandwidth);
    if (row.size >= std::min(kEvaluatedFrom, longest) && bandwidth > best.bandwidth) best = {bandwidth, row.size};
  }
  return best;
}

}  // namespace

std::optional<LinkVerdict> evaluate_link(const CollectiveRun& run, const CoresInUse& in_use) {
  if (!run.options.limit || run.rows.empty()) return std::nullopt;
  const LinkLimit& limit = *run.options.limit;
  const double whole = limit.whole().value / 1e9;
  if (whole <= 0) return std::nullopt;
  const auto [best, size] = row_to_evaluate(run.rows);
  LinkVerdict verdict{.grade = LinkVerdict::Grade::kGood, .best = best, .fraction = best / whole};
  std::string word = "good";
  if (verdict.fraction > kAbove && verdict.fraction <= kAbove * limit.excess) {
    word = limit.path.starts_with("NVLink") ? "good, and above it, as with switches that reduce (NVLS)"
                                            : "good, and above it, as NCCL's tree over two nodes may be";
  } else if (verdict.fraction > kAbove && size >= kEvaluatedFrom) {
    verdict.grade = LinkVerdict::Grade::kAboveLimit;
    word = "more than this link can carry: is fabric.rail_rate right, and did the data cross it?";
  } else if (verdict.fraction > kAbove) {
    word = "good, but small messages fit into buffers on the way: try -e 64M";
  } else if (verdict.fraction < kFair) {
    verdict.grade = LinkVerdict::Grade::kSlow;
    word = "slow";
    if (size < kEvaluatedFrom) word = "too small to evaluate the link: try -e 64M";
  } else if (verdict.fraction < kGood) {
    verdict.grade = LinkVerdict::Grade::kFair;
    word = "fair";
  }
  const bool falls_short = verdict.grade == LinkVerdict::Grade::kSlow || verdict.grade == LinkVerdict::Grade::kFair;
  if (falls_short && in_use.share >= kCoresBusy) {
    verdict.grade = LinkVerdict::Grade::kCores;
    word = fmt::format("not evaluated, as the {} cores of this machine were {:.0f}% busy", in_use.cores,
                       in_use.share * 100);
  }
  std::string rails = limit.rails == 1 ? yoke::to_string(limit.rail_rate)
                                       : fmt::format("{} x {}", limit.rails, yoke::to_string(limit.rail_rate));
  if (!limit.path.empty()) rails += ", " + limit.path;
  verdict.text = fmt::format("best bus bandwidth {:.3g} GB/s is {:.0f}% of the link's {:.3g} GB/s ({}, from {}): {}",
                             verdict.best, verdict.fraction * 100, whole, rails, limit.source, word);
  return verdict;
}

std::string describe_straggler(const CollectiveRun& run, const PlacementResult& result) {
  const auto [rank, late] = result.straggler;
  if (late < 5 || late < result.time / 10) return "together";
  const auto at = static_cast<std::size_t>(rank);
  const std::string host = at < run.ranks.size() ? " on " + printable(run.ranks[at].host, 60) : "";
  return fmt::format("rank {}{} comes {} late", rank, host, yoke::to_string(Seconds{late / 1e6}));
}

}  // namespace yoke::bench

#include "yoke/bench/verdict.h"

#include <fmt/format.h>

#include <algorithm>

#include "yoke/base/text.h"

namespace yoke {
namespace {

// Ethernet, IP and TCP headers take 0.4 % (MTU 9000) to 5 % (MTU 1500) of a link: what reaches nine tenths is whole.
constexpr double kGood = 0.9;
constexpr double kFair = 0.7;
constexpr double kAbove = 1.05;
// Less than this may lie in the buffers of sockets and of a shaped link when the clock stops, or be mostly latency: it
// says little about the link either way.
constexpr std::int64_t kJudgedFrom = 4 << 20;

struct JudgedRow {
  double bandwidth = 0;
  std::int64_t size = 0;
};

// The best row of those that are long enough, else of the longest.
JudgedRow row_to_judge(const std::vector<CollectiveRow>& rows) {
  const std::int64_t longest = std::ranges::max(rows, {}, &CollectiveRow::size).size;
  JudgedRow best{.size = longest};
  for (const CollectiveRow& row : rows) {
    const double bandwidth = std::max(row.out_of_place.bus_bandwidth, row.in_place.bus_bandwidth);
    if (row.size >= std::min(kJudgedFrom, longest) && bandwidth > best.bandwidth) best = {bandwidth, row.size};
  }
  return best;
}

}  // namespace

std::optional<LinkVerdict> judge_link(const CollectiveRun& run) {
  if (!run.options.limit || run.rows.empty()) return std::nullopt;
  const LinkLimit& limit = *run.options.limit;
  const double whole = limit.whole().value / 1e9;
  if (whole <= 0) return std::nullopt;
  const auto [best, size] = row_to_judge(run.rows);
  LinkVerdict verdict{.grade = LinkVerdict::Grade::kGood, .best = best, .fraction = best / whole};
  std::string_view word = "good";
  if (verdict.fraction > kAbove && size >= kJudgedFrom) {
    verdict.grade = LinkVerdict::Grade::kAboveLimit;
    word = "above the limit: did the data really cross this link?";
  } else if (verdict.fraction > kAbove) {
    word = "good, but small messages fit into buffers on the way: try -e 64M";
  } else if (verdict.fraction < kFair) {
    verdict.grade = LinkVerdict::Grade::kSlow;
    word = "slow";
    if (size < kJudgedFrom) word = "slow, but small messages measure latency: try -e 64M";
  } else if (verdict.fraction < kGood) {
    verdict.grade = LinkVerdict::Grade::kFair;
    word = "fair";
  }
  const std::string halves =
      limit.halves == 1 ? to_string(limit.half_rate) : fmt::format("{} x {}", limit.halves, to_string(limit.half_rate));
  verdict.text = fmt::format("best bus bandwidth {:.3g} GB/s is {:.0f}% of the link's {:.3g} GB/s ({}, from {}): {}",
                             verdict.best, verdict.fraction * 100, whole, halves, limit.source, word);
  return verdict;
}

std::string describe_straggler(const CollectiveRun& run, const PlacementResult& result) {
  const auto [rank, late] = result.straggler;
  if (late < 5 || late < result.time / 10) return "together";
  const auto at = static_cast<std::size_t>(rank);
  const std::string host = at < run.ranks.size() ? " on " + printable(run.ranks[at].host, 60) : "";
  return fmt::format("rank {}{} comes {} late", rank, host, to_string(Seconds{late / 1e6}));
}

}  // namespace yoke

// What the ranks say: who has no processor, who computes longer than the others for the same part.
#include <fmt/format.h>

#include <algorithm>

#include "yoke/why/evaluate_run.h"

namespace yoke::why {
namespace {

using spec::RankAccount;
using spec::StepSums;

constexpr double kThrottledShare = 0.05;  // of the run
constexpr double kWaitShare = 0.25;       // of the time in which a rank could have computed
constexpr double kDisturbedShare = 0.10;
constexpr double kStolenShare = 0.05;
constexpr double kSlowRank = 1.4;            // times as long as the others
constexpr double kSlowRankOneMachine = 2.0;  // nodes of one machine have the same processors: more is noise
constexpr double kMatters = 0.10;            // of a step
constexpr double kSameWeights = 0.1;
constexpr double kPagesBytes = 64 << 20;  // of weights, for pages to matter
constexpr double kHugeShare = 0.3;
constexpr double kStepsMin = 8;
constexpr double kSecondsMin = 0.1;  // the kernel counts a machine's time in hundredths

double computing_of_step(const StepSums& sums) { return sums.steps > 0 ? sums.computing() / sums.steps : 0; }

bool is_blamed(const Answer& answer, Cause cause, const std::string& node) {
  return std::ranges::any_of(answer.blames, [&](const Blame& blame) {
    return blame.cause == cause && std::ranges::find(blame.where, node) != blame.where.end();
  });
}

void find_quota(const RankAccount& rank, Answer& answer) {
  if (rank.wall <= 0 || rank.throttled < kThrottledShare * rank.wall) return;
  answer.blames.push_back({.cause = Cause::kQuota,
                           .term = "weights",
                           .what = fmt::format("A control group holds the processors of {} back.", rank.node),
                           .evidence = fmt::format("Rank {} was throttled for {} of the {} that the run took.",
                                                   rank.rank, time_text(rank.throttled), time_text(rank.wall)),
                           .next = "cat /proc/self/cgroup /sys/fs/cgroup/cpu.max",
                           .where = {rank.node}});
}

void find_load(const RunQuestion& q, const RankAccount& rank, Answer& answer) {
  const double share = processor_wait_share(rank);
  if (share < kWaitShare || rank.processor_wait + rank.processor_time < kSecondsMin) return;
  if (is_blamed(answer, Cause::kQuota, rank.node) || is_blamed(answer, Cause::kLoad, rank.node)) return;
  answer.blames.push_back(
      {.cause = Cause::kLoad,
       .term = "weights",
       .what = fmt::format("Other programs take the processors of {}.", rank.node),
       .evidence = fmt::format("Rank {} was ready to compute and had no processor for {:.0f}% of that time ({} of {}).",
                               rank.rank, 100 * share, time_text(rank.processor_wait),
                               time_text(rank.processor_wait + rank.processor_time)),
       .next = "yoke watch" + q.options,
       .where = {rank.node}});
}

// Ranks that hold the same amount of weights compute the same.
void find_slow_rank(const RunQuestion& q, Answer& answer) {
  const std::vector<RankAccount>& ranks = q.account.ranks;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    const RankAccount& rank = ranks[i];
    const double own = computing_of_step(rank.decode);
    double least = 0, waited = 0;
    const RankAccount* fastest = nullptr;
    bool is_one_machine = false;
    for (std::size_t j = 0; j < ranks.size(); ++j) {
      const RankAccount& other = ranks[j];
      if (j == i || std::abs(other.weights_held - rank.weights_held) > kSameWeights * rank.weights_held) continue;
      const double theirs = computing_of_step(other.decode);
      if (fastest == nullptr || theirs < least) {
        fastest = &other;
        least = theirs;
        is_one_machine = !rank.machine.empty() && other.machine == rank.machine;
      }
      if (j < q.account.decode.waiting.size()) waited = std::max(waited, q.account.decode.waiting[j]);
    }
    if (fastest == nullptr || rank.decode.steps < kStepsMin || least <= 0) continue;
    const double step = rank.decode.seconds / rank.decode.steps;
    const double factor = is_one_machine ? kSlowRankOneMachine : kSlowRank;
    if (own < factor * least || own - least < kMatters * step) continue;
    if (is_blamed(answer, Cause::kQuota, rank.node) || is_blamed(answer, Cause::kLoad, rank.node)) continue;
    // On one machine, a difference without waiting for a processor is what else runs on a core, not a node.
    if (is_one_machine && is_disturbed(q.account)) continue;
    answer.blames.push_back(
        {.cause = Cause::kSlowRank,
         .term = "waiting",
         .what = fmt::format("{} computes {:.1f} times as long as {} for the same part of the model.", rank.node,
                             own / least, fastest->node),
         .evidence = fmt::format("{} of a step against {}; the others wait up to {} of each step for it.",
                                 time_text(own), time_text(least), time_text(waited)),
         .next = "yoke bench memory",
         .where = {rank.node}});
  }
}

void find_small_pages(const RankAccount& rank, Answer& answer) {
  if (rank.weights_held < kPagesBytes || rank.memory_anonymous <= 0) return;
  if (rank.memory_huge >= kHugeShare * rank.weights_held) return;
  answer.blames.push_back(
      {.cause = Cause::kSmallPages,
       .term = "weights",
       .what = fmt::format("The weights of rank {} on {} lie in small pages.", rank.rank, rank.node),
       .evidence = fmt::format("{:.0f} of {:.0f} MB are in huge pages; transparent huge pages are '{}'.",
                               rank.memory_huge / 1e6, rank.weights_held / 1e6, rank.huge_pages),
       .next = "echo madvise | sudo tee /sys/kernel/mm/transparent_hugepage/enabled",
       .where = {rank.node}});
}

}  // namespace

double processor_wait_share(const RankAccount& rank) {
  const double all = rank.processor_wait + rank.processor_time;
  return all > 0 ? rank.processor_wait / all : 0;
}

bool is_disturbed(const spec::StepAccount& account) {
  return std::ranges::any_of(account.ranks, [](const RankAccount& rank) {
    return processor_wait_share(rank) > kDisturbedShare || rank.stolen > kStolenShare * rank.wall ||
           rank.throttled > kThrottledShare * rank.wall;
  });
}

void evaluate_ranks(const RunQuestion& question, Answer& answer) {
  for (const RankAccount& rank : question.account.ranks) {
    find_quota(rank, answer);
    find_load(question, rank, answer);
    find_small_pages(rank, answer);
  }
  find_slow_rank(question, answer);
}

}  // namespace yoke::why

// What the rails say: facts of connections and routes, then one rail against the others.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "yoke/why/evaluate_run.h"

namespace yoke::why {
namespace {

using spec::RailState;
using spec::RailUse;
using spec::RankAccount;

// A rate is judged by enough bytes, so that starts and ends of messages do not matter.
constexpr double kRateBytes = 2e6;
constexpr double kSlowShare = 0.4;        // of the best rail of the same peer,
constexpr double kSlowOfRate = 0.6;       // and of the rate that the cluster file gives
constexpr double kSlowShareAlone = 0.15;  // where the file gives no rate: short bursts make a rail look faster
constexpr double kSmallSegment = 0.5;     // of the MTU
constexpr double kFarBelow = 0.25;        // of the rate, where nothing is there to compare with,
constexpr double kRateOfOneCore = 10e9;   // and one core can send so much by TCP
constexpr double kLossShare = 0.02;       // of all segments
constexpr double kLossSegments = 100;     // sent again, at least

std::string rail_place(const RankAccount& rank, const RailUse& use) {
  return fmt::format("between {} and {}", rank.node, use.peer_node);
}

// Both ends report a connection: the lower rank speaks.
bool speaks_first(const RankAccount& rank, const RailUse& use) { return rank.rank < use.peer; }

void find_unused(const RunQuestion& q, const RankAccount& rank, Answer& answer) {
  for (const RailUse& use : rank.rails) {
    if (use.state == RailState::kUsed || !speaks_first(rank, use)) continue;
    const bool is_lost = use.state == RailState::kLost;
    answer.blames.push_back(
        {.cause = Cause::kRailUnused,
         .term = "all-reduce",
         .what = fmt::format("Rail {} carries nothing {}.", use.rail, rail_place(rank, use)),
         .evidence =
             is_lost
                 ? fmt::format("The connection from {} to {} was lost during the run.", use.local, use.remote)
                 : fmt::format("No connection from {} to {} could be made when the run began.", use.local, use.remote),
         .next = "yoke check" + q.options,
         .where = {rank.node, use.peer_node, "rail " + use.rail}});
  }
}

void find_other_networks(const RunQuestion& q, const RankAccount& rank, Answer& answer) {
  if (q.rails.rails.empty()) return;
  for (const RailUse& use : rank.rails) {
    if (std::ranges::find(q.rails.rails, use.rail) != q.rails.rails.end() || !speaks_first(rank, use)) continue;
    answer.blames.push_back(
        {.cause = Cause::kTransport,
         .term = "all-reduce",
         .what = fmt::format("The ranks exchange over {}, not over the cluster's rails.", use.local),
         .evidence = fmt::format("The cluster file has rails {}; the connection from {} to {} is '{}'.",
                                 fmt::join(q.rails.rails, ", "), use.local, use.remote, use.rail),
         .next = "yoke check" + q.options,
         .where = {rank.node, use.peer_node}});
    return;
  }
}

void find_routes(const RunQuestion& q, const RankAccount& rank, Answer& answer) {
  std::set<std::string> fast;
  for (const RailUse& use : rank.rails) fast.insert(use.interface);
  std::vector<std::string> rails, evidence;
  for (const RailUse& use : rank.rails) {
    // Around a ring packets may leave by another rail's interface.
    if (use.state != RailState::kUsed || use.interface.empty() || use.route.empty() || fast.contains(use.route))
      continue;
    rails.push_back(use.rail);
    evidence.push_back(
        fmt::format("{} is on {}, but packets to {} leave by {}", use.local, use.interface, use.remote, use.route));
  }
  if (rails.empty()) return;
  answer.blames.push_back(
      {.cause = Cause::kRailRoute,
       .term = "all-reduce",
       .what = fmt::format("{} sends the data of rail {} over another network.", rank.node, fmt::join(rails, " and ")),
       .evidence = fmt::format("{}.", fmt::join(evidence, "; ")),
       .next = "yoke check" + q.options,
       .where = {rank.node}});
}

void find_small_packets(const RunQuestion& q, const RankAccount& rank, Answer& answer) {
  for (const RailUse& use : rank.rails) {
    const bool is_rail = std::ranges::find(q.rails.rails, use.rail) != q.rails.rails.end();
    if (use.state != RailState::kUsed || !is_rail || q.rails.mtu == 0 || use.segment_bytes == 0) continue;
    if (use.segment_bytes >= kSmallSegment * q.rails.mtu || !speaks_first(rank, use)) continue;
    answer.blames.push_back(
        {.cause = Cause::kSmallPackets,
         .term = "all-reduce",
         .what = fmt::format("Rail {} sends small packets {}.", use.rail, rail_place(rank, use)),
         .evidence = fmt::format("The largest segment has {:.0f} bytes; an MTU of {:.0f} at both ends allows {:.0f}.",
                                 use.segment_bytes, q.rails.mtu, q.rails.mtu - 52),
         .next = "yoke check" + q.options,
         .where = {rank.node, use.peer_node, "rail " + use.rail}});
  }
}

const RailUse* best_rail(const RankAccount& rank, int peer) {
  const RailUse* best = nullptr;
  for (const RailUse& use : rank.rails) {
    if (use.peer != peer || use.state != RailState::kUsed || use.long_bytes < kRateBytes) continue;
    if (best == nullptr || use.long_rate() > best->long_rate()) best = &use;
  }
  return best;
}

// Whether a rail is slow, and what says so; empty where it is not.
std::string slow_because(const RunQuestion& q, const RankAccount& rank, const RailUse& use) {
  const double rate = q.rails.rate;
  const std::string carried = fmt::format("From {} it carried {}{} while it was busy", rank.node,
                                          rate_text(use.long_rate()), rate > 0 ? " of " + rate_text(rate) : "");
  const RailUse* const best = best_rail(rank, use.peer);
  const double share = rate > 0 ? kSlowShare : kSlowShareAlone;
  const bool is_behind =
      best != nullptr && use.long_bytes >= kRateBytes / 4 && use.long_rate() < share * best->long_rate();
  if (is_behind && (rate == 0 || use.long_rate() < kSlowOfRate * rate)) {
    return fmt::format("{}; rail {} carried {} in the same steps.", carried, best->rail, rate_text(best->long_rate()));
  }
  const bool is_far_below = rate > 0 && rate <= kRateOfOneCore && use.long_rate() < kFarBelow * rate;
  return is_far_below && use.long_bytes >= kRateBytes / 2 ? carried + "." : "";
}

// One direction of a cable may be slow: both ends are looked at, and one of them is enough.
void find_slow(const RunQuestion& q, Answer& answer) {
  std::set<std::string> reported;
  for (const RankAccount& rank : q.account.ranks) {
    for (const RailUse& use : rank.rails) {
      if (use.state != RailState::kUsed || use.long_busy <= 0) continue;
      const std::string evidence = slow_because(q, rank, use);
      const std::string key =
          fmt::format("{}/{}/{}", use.rail, std::min(rank.rank, use.peer), std::max(rank.rank, use.peer));
      if (evidence.empty() || !reported.insert(key).second) continue;
      answer.blames.push_back({.cause = Cause::kRailSlow,
                               .term = "all-reduce",
                               .what = fmt::format("Rail {} is slow {}.", use.rail, rail_place(rank, use)),
                               .evidence = evidence,
                               .next = "yoke link test" + q.options,
                               .where = {rank.node, use.peer_node, "rail " + use.rail}});
    }
  }
}

void find_loss(const RunQuestion& q, const RankAccount& rank, Answer& answer) {
  for (const RailUse& use : rank.rails) {
    if (use.segments_again < kLossSegments || use.segments_again < kLossShare * use.segments) continue;
    answer.blames.push_back({.cause = Cause::kPacketLoss,
                             .term = "all-reduce",
                             .what = fmt::format("Rail {} loses packets {}.", use.rail, rail_place(rank, use)),
                             .evidence = fmt::format("{} sent {:.0f} of {:.0f} segments again.", rank.node,
                                                     use.segments_again, use.segments),
                             .next = "yoke link test" + q.options,
                             .where = {rank.node, use.peer_node, "rail " + use.rail}});
  }
}

}  // namespace

void evaluate_rails(const RunQuestion& question, Answer& answer) {
  for (const RankAccount& rank : question.account.ranks) {
    find_unused(question, rank, answer);
    find_other_networks(question, rank, answer);
    find_routes(question, rank, answer);
  }
  // A rail that goes by another network is slow, and its packets are small, because of that.
  const bool is_rerouted =
      std::ranges::any_of(answer.blames, [](const Blame& blame) { return blame.cause == Cause::kRailRoute; });
  if (is_rerouted) return;
  for (const RankAccount& rank : question.account.ranks) find_small_packets(question, rank, answer);
  find_slow(question, answer);
  for (const RankAccount& rank : question.account.ranks) find_loss(question, rank, answer);
}

}  // namespace yoke::why

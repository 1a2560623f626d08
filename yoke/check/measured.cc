// What the rails really carry. A rate is held against what the rail can carry with the PCIe link and port speed that
// it has now; a rail that is known to be down has none.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "yoke/check/measured_ways.h"
#include "yoke/check/rules.h"

namespace yoke::check {
namespace {

using namespace literals;

constexpr double kMaxIdle = 0.15;  // of what it carries alone

constexpr const char* kUnstableCost =
    "jobs run at the lower rate now and then, and a measurement that meets the higher one shows nothing";
constexpr const char* kUnstableFix =
    "is something else using the link? 'yoke link test --seconds 10' averages over longer; else clean or replace the "
    "cable and look at the transceivers";

// By sockets a collective is as fast as the processors that it gets.
bool is_busy(const spec::AllReduceMeasurement& reduce) {
  return reduce.transport == "direct" && reduce.taken >= spec::kMaxTaken;
}

}  // namespace

AdviceList find_dead_rails(const ClusterView& view) {
  AdviceList list;
  std::set<const RailEnd*> reported;
  for (const Measured& measured : measured_ways(view)) {
    if (!measured.way->failure || reported.contains(measured.to)) continue;
    reported.insert(measured.from);
    list.push_back({.node = measured.from->node->name,
                    .subject = measured.from->name,
                    .what = fmt::format("{} between {} and {} carries nothing", measured.from->title(),
                                        measured.way->from, measured.way->to),
                    .evidence = *measured.way->failure,
                    .consequence = "everything that needs this rail fails, or uses the other alone at half the rate",
                    .fix = measured.way->transport == "rdma"
                               ? "'yoke link test --transport tcp' shows whether it is the rail or RDMA on it"
                               : "a firewall on the fast interfaces or a crossed cable are the usual causes",
                    .rails = {measured.from, measured.to}});
  }
  return list;
}

AdviceList find_lossy_rails(const ClusterView& view) {
  AdviceList list;
  for (const Measured& measured : measured_ways(view)) {
    const spec::RailMeasurement& way = *measured.way;
    if (!way.is_lossy()) continue;
    list.push_back({.node = way.from,
                    .subject = measured.from->name,
                    .what = fmt::format("{} loses packets from {} to {}", measured.from->title(), way.from, way.to),
                    .evidence = fmt::format("{} of {} messages had to be sent again, with nothing else on the rail",
                                            *way.resent, way.messages.value_or(0)),
                    .consequence = "each loss stalls a collective for a fifth of a second by TCP; RDMA repeats all "
                                   "that was under way, or gives up (IBV_WC_RETRY_EXC_ERR)",
                    .fix = "clean or replace the cable; look at the transceivers, the switch's port, and at 'tc qdisc' "
                           "and the packet filter on both ends",
                    .rails = {measured.from, measured.to}});
  }
  return list;
}

AdviceList find_late_rails(const ClusterView& view) {
  AdviceList list;
  std::set<const RailEnd*> reported;
  for (const Measured& measured : measured_ways(view)) {
    const spec::RailMeasurement& way = *measured.way;
    if (!way.is_late() || reported.contains(measured.to)) continue;
    reported.insert(measured.from);
    list.push_back(
        {.node = way.from,
         .subject = measured.from->name,
         .what = fmt::format("{} between {} and {} takes {} for the smallest message", measured.from->title(), way.from,
                             way.to, yoke::to_string(*way.latency)),
         .evidence =
             fmt::format("{} one way at best; a cable or a switch takes some 10 us", yoke::to_string(*way.latency)),
         .consequence = "tokens wait for it: tensor-parallel decoding has two all-reduces in each layer",
         .fix = "does the rail go by another network, a VPN or a software bridge? look at 'ip route get', at 'tc "
                "qdisc' on both ends, and at the NIC's interrupt moderation ('ethtool -c')",
         .rails = {measured.from, measured.to}});
  }
  return list;
}

AdviceList find_idle_rails(const ClusterView& view) {
  AdviceList list;
  std::set<const RailEnd*> reported;
  for (const Measured& measured : measured_ways(view)) {
    const spec::RailMeasurement& way = *measured.way;
    // Of two flows on a busy machine one may not come to its turn at all.
    if (!way.alone || !way.together || reported.contains(measured.to) || way.is_busy()) continue;
    const BitsPerSecond baseline = std::max(*way.together, way.together_again.value_or(*way.together));
    if (baseline / *way.alone >= kMaxIdle) continue;
    reported.insert(measured.from);
    list.push_back(
        {.node = way.from,
         .subject = measured.from->name,
         .what = fmt::format("{} on {} is idle while the other rail is busy", measured.from->title(), way.from),
         .evidence =
             fmt::format("{} alone, {} beside the others", yoke::to_string(*way.alone), yoke::to_string(*way.together)),
         .consequence = "the cable gives half of what it could",
         .fix = "do both rails' packets leave by one interface? each rail needs a network of its own "
                "('yoke link setup'); bonding the rails does this too",
         .rails = {measured.from, measured.to}});
  }
  return list;
}

AdviceList find_unstable_rails(const ClusterView& view) {
  AdviceList list;
  std::set<const RailEnd*> reported;
  for (const Measured& measured : measured_ways(view)) {
    const spec::RailMeasurement& way = *measured.way;
    if (!way.alone || !differ(*way.alone, way.alone_again) || way.is_busy()) continue;
    if (is_degraded_in_all(view, measured) || reported.contains(measured.to) || !reported.insert(measured.from).second)
      continue;
    list.push_back(
        {.node = way.from,
         .subject = measured.from->name,
         .what = fmt::format("{} from {} to {} carries {} and, measured again, {}", measured.from->title(), way.from,
                             way.to, yoke::to_string(*way.alone), yoke::to_string(*way.alone_again)),
         .evidence = rate_text(view, measured),
         .consequence = kUnstableCost,
         .fix = kUnstableFix,
         .rails = {measured.from, measured.to}});
  }
  const auto& reduce = view.facts.measurement->all_reduce;
  if (!reduce || !differ(reduce->large_bus_bandwidth, reduce->large_bus_bandwidth_again) || is_busy(*reduce))
    return list;
  list.push_back({.what = fmt::format("an all-reduce over all nodes moves {} and, measured again, {}",
                                      yoke::to_string(reduce->large_bus_bandwidth),
                                      yoke::to_string(*reduce->large_bus_bandwidth_again)),
                  .evidence = fmt::format("two of {} by {}, one after the other{}", yoke::to_string(reduce->large_size),
                                          reduce->transport, load_words(reduce->taken)),
                  .consequence = kUnstableCost,
                  .fix = kUnstableFix});
  return list;
}

AdviceList find_degraded_rails(const ClusterView& view) {
  AdviceList list;
  for (const auto& [measured, share] : worst_ways(view)) {
    if (measured.way->is_busy() ? !is_degraded_in_all(view, measured) : !spec::is_degraded(share)) continue;
    list.push_back({.node = measured.from->node->name,
                    .subject = measured.from->name,
                    .what = fmt::format("{} between {} and {} carries {:.0f}% of what it should, and looks healthy",
                                        measured.from->title(), measured.way->from, measured.way->to, share * 100),
                    .evidence = rate_text(view, measured),
                    .consequence = "all-reduces over large tensors, loading and training take four to twelve times as "
                                   "long",
                    .fix = "ports come up so when a cable was moved while running: reboot both ends with the cable in "
                           "place; where that does not cure it, shut both down and unplug their power for 30 s",
                    .rails = {measured.from, measured.to}});
  }
  return list;
}

AdviceList find_slow_rails(const ClusterView& view) {
  AdviceList list;
  for (const auto& [measured, share] : worst_ways(view)) {
    if (share >= spec::kHealthyShare || spec::is_degraded(share) || measured.way->is_busy()) continue;
    list.push_back({.node = measured.from->node->name,
                    .subject = measured.from->name,
                    .what = fmt::format("{} between {} and {} carries {:.0f}% of what it should",
                                        measured.from->title(), measured.way->from, measured.way->to, share * 100),
                    .evidence = rate_text(view, measured),
                    .consequence = "loading, prefill and training are slower in proportion; decoding less",
                    .fix = "is something else using the link or the processor? compare PCIe width, MTU and port speed "
                           "of both ends ('yoke check'); try another cable",
                    .rails = {measured.from, measured.to}});
  }
  return list;
}

AdviceList find_rails_sharing_a_path(const ClusterView& view) {
  AdviceList list;
  if (!view.facts.measurement) return list;
  const auto& expected = view.facts.measurement->expected;
  for (const auto& [nodes, sum] : sums_of(view)) {
    if (!sum.whole || sum.alone.value <= 0) continue;
    // Rails of a second cable share what the NIC carries: beside the others they cannot do more.
    const BitsPerSecond reachable =
        expected ? std::min(sum.alone, *expected * nic_rails(view, nodes.first)) : sum.alone;
    if (sum.together / reachable >= spec::kMinTogether) continue;
    if (!expected || sum.floor) continue;  // as fast as the machine copies: the processor is what the rails share
    if (sum.busy) continue;
    list.push_back(
        {.node = nodes.first,
         .subject = {},
         .what = fmt::format("together the rails from {} to {} carry {:.0f}% of what they carry one after "
                             "the other",
                             nodes.first, nodes.second, sum.together / sum.alone * 100),
         .evidence = fmt::format("{} together, {} one after the other", yoke::to_string(sum.together),
                                 yoke::to_string(sum.alone)),
         .consequence = "the second rail gains less than it should",
         .fix = "by TCP the processor may be the limit ('yoke link test' shows the cores used); else both rails share "
                "a PCIe link or a cable",
         .rails = sum.rails});
  }
  return list;
}

AdviceList find_slow_collectives(const ClusterView& view) {
  const auto& measurement = view.facts.measurement;
  if (!measurement || !measurement->all_reduce || view.facts.nodes.size() != 2) return {};
  // Where nothing limits the link but the processor, a collective, which also computes, is slower by nature.
  if (!measurement->expected) return {};
  // yoke's own all-reduce over TCP cannot be held against what RDMA carries.
  const auto& transports = measurement->transports;
  const bool by_rdma = std::find(transports.begin(), transports.end(), "rdma") != transports.end();
  if (by_rdma && measurement->all_reduce->transport != "nccl") return {};
  BitsPerSecond raw{0};
  for (const auto& [nodes, sum] : sums_of(view)) {
    if (!sum.whole || sum.floor || sum.busy) return {};  // busy: what the rails could carry is not known
    raw = raw.value <= 0 ? sum.both_ways : std::min(raw, sum.both_ways);
  }
  const spec::AllReduceMeasurement& reduce = *measurement->all_reduce;
  const BitsPerSecond reached =
      to_bits_per_second(mean_of(reduce.large_bus_bandwidth, reduce.large_bus_bandwidth_again));
  if (raw.value <= 0 || reached / raw >= spec::kMinCollective || is_busy(reduce)) return {};
  return {{.what = "the link is healthy, but an all-reduce over it is slow",
           .evidence = fmt::format("an all-reduce of {} moves {}; the rails carry {} each way at once{}",
                                   yoke::to_string(reduce.large_size),
                                   both_of(reduce.large_bus_bandwidth, reduce.large_bus_bandwidth_again),
                                   yoke::to_string(raw), load_words(reduce.taken)),
           .consequence = "prefill and training run at the collective's rate, not at the link's",
           .fix = reduce.transport == "nccl"
                      ? "not the cable: run with NCCL_DEBUG=INFO and give the log to 'yoke check nccl-log'; if that "
                        "shows nothing, unplug the power of both for 30 s: it ends the degraded state of the NICs"
                      : "not the cable: look at the load of the processors ('yoke link test' shows the cores used)"}};
}

AdviceList find_failed_collectives(const ClusterView& view) {
  const auto& measurement = view.facts.measurement;
  if (!measurement || !measurement->all_reduce_failure) return {};
  const bool by_sockets = measurement->all_reduce.has_value();  // yoke's own went well over the same rails
  return {
      {.what =
           fmt::format("the rails carry data, but an all-reduce over all nodes{} fails", by_sockets ? " by NCCL" : ""),
       .evidence = measurement->all_reduce_failure->empty() ? "it came to no end" : *measurement->all_reduce_failure,
       .consequence = by_sockets ? "what uses NCCL does not run over these nodes, or only by sockets"
                                 : "no model can run over these nodes",
       .fix = by_sockets ? "run with NCCL_DEBUG=INFO and give the log to 'yoke check nccl-log'; 'yoke bench all-reduce "
                           "--transport nccl' shows more"
                         : "'yoke bench all-reduce' shows more; a filter that lets only some ports pass is a usual "
                           "cause"}};
}

AdviceList find_counted_errors(const ClusterView& view) {
  AdviceList list;
  if (!view.facts.measurement) return list;
  for (const spec::CounterIncrease& counter : view.facts.measurement->counters) {
    // What was dropped may have been nobody's, or more than a queue holds. Errors are damage.
    if (counter.change <= 0 || counter.name.find("drop") != std::string::npos) continue;
    // A rail that is cut counts what it could not send.
    const RailEnd* end = view.find_rail(counter.node, counter.interface);
    const bool joined = end && std::any_of(end->peers.begin(), end->peers.end(),
                                           [&](std::size_t peer) { return are_joined(*end, view.rails[peer]); });
    if (!joined) continue;
    list.push_back({.node = counter.node,
                    .subject = counter.interface,
                    .what = fmt::format("{} on {} counted {} {} while measuring", counter.interface, counter.node,
                                        counter.change, counter.name),
                    .evidence = fmt::format("{} rose by {}", counter.name, counter.change),
                    .consequence = "packets are damaged or lost: slow now and then, and a hang sooner or later",
                    .fix = "clean or replace the cable, and look at the transceivers",
                    .rails = {end}});
  }
  return list;
}

}  // namespace yoke::check

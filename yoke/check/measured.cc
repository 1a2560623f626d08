// What the halves really carry. A rate is held against what the half can carry with the PCIe link and port speed that
// it has now; a half that is known to be down has none.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "yoke/check/rules.h"

namespace yoke {
namespace {

using namespace literals;

constexpr double kIdleMost = 0.15;  // of what it carries alone

constexpr const char* kUnstableCost =
    "jobs run at the lower rate now and then, and a measurement that meets the higher one shows nothing";
constexpr const char* kUnstableFix =
    "is something else using the link? 'yoke link test --seconds 10' averages over longer; else clean or replace the "
    "cable and look at the transceivers";

// By sockets a collective is as fast as the processors that it gets.
bool is_busy(const AllReduceMeasurement& reduce) { return reduce.carrier == "direct" && reduce.taken >= kTakenMost; }

struct Measured {
  const HalfMeasurement* way = nullptr;
  const HalfEnd* from = nullptr;
  const HalfEnd* to = nullptr;
};

// Whether the way, or the way back, loses or delays what it carries.
bool delivers_badly(const std::vector<HalfMeasurement>& ways, const HalfMeasurement& way) {
  return std::any_of(ways.begin(), ways.end(), [&](const HalfMeasurement& other) {
    const bool there = other.from == way.from && other.from_interface == way.from_interface && other.to == way.to;
    const bool back = other.from == way.to && other.from_interface == way.to_interface && other.to == way.from;
    return (there || back) && (other.is_lossy() || other.is_late());
  });
}

// The ways whose two ends are known and joined, so that their rate is not explained by their state.
std::vector<Measured> measured_ways(const ClusterView& view) {
  std::vector<Measured> ways;
  if (!view.facts.measurement) return ways;
  for (const HalfMeasurement& way : view.facts.measurement->halves) {
    const HalfEnd* from = view.find_half(way.from, way.from_interface);
    const HalfEnd* to = view.find_half(way.to, way.to_interface);
    if (from && to && are_joined(*from, *to)) ways.push_back({&way, from, to});
  }
  return ways;
}

// What a half can carry with the PCIe link and port speed that it has now: other rules tell these.
double known_limit(const HalfEnd& end) {
  double share = 1;
  if (const auto& pcie = end.interface->pcie; pcie && pcie->width_max > 0 && pcie->speed_gt_per_second_max > 0) {
    share =
        std::min(share, pcie->width * pcie->speed_gt_per_second / (pcie->width_max * pcie->speed_gt_per_second_max));
  }
  const Hardware* hardware = hardware_of(*end.node->machine);
  if (hardware && end.rdma && end.rdma->rate) {
    share = std::min(share, *end.rdma->rate / (hardware->half_rate * static_cast<double>(hardware->halves_per_cable)));
  }
  return share;
}

// A first and a second measurement: by what they give together a rate is judged.
template <class Rate>
Rate mean_of(Rate first, const std::optional<Rate>& again) {
  return again ? (first + *again) * 0.5 : first;
}
template <class Rate>
bool differ(Rate first, const std::optional<Rate>& again) {
  return again && std::min(first, *again) < std::max(first, *again) * (1 - kSpreadMost);
}
template <class Rate>
std::string both_of(Rate first, const std::optional<Rate>& again) {
  return again ? fmt::format("{}, measured again {}", to_string(first), to_string(*again)) : to_string(first);
}

// Of what the half should carry in its present state; nothing where it was not measured, or nothing is expected.
std::optional<double> share_of(const ClusterView& view, const Measured& measured, BitsPerSecond rate) {
  const auto& expected = view.facts.measurement->expected;
  if (!expected || expected->value <= 0) return std::nullopt;
  if (!is_judged(measured.way->transport, rate, *expected)) return std::nullopt;
  const double limit = std::min(known_limit(*measured.from), known_limit(*measured.to));
  return limit <= 0 ? std::nullopt : std::optional(rate / *expected / limit);
}

std::optional<double> share_of(const ClusterView& view, const Measured& measured) {
  const HalfMeasurement& way = *measured.way;
  return way.alone ? share_of(view, measured, mean_of(*way.alone, way.alone_again)) : std::nullopt;
}

// In the degraded state both times: that is no matter of the machine's load.
bool is_degraded_in_all(const ClusterView& view, const Measured& measured) {
  const HalfMeasurement& way = *measured.way;
  if (!way.alone) return false;
  const auto share = share_of(view, measured, std::max(*way.alone, way.alone_again.value_or(*way.alone)));
  return share && is_degraded(*share);
}

std::string load_words(double taken) {
  if (taken < kTakenMost) return "";
  return fmt::format("; measured while the CPU was {:.0f}% busy with other programs", taken * 100);
}

// Each pair of ends once, by its worse direction; each sending end once, as behind a switch it meets several others: by
// a pair that delivers well, where one is slow, as losses have their own rule.
std::vector<std::pair<Measured, double>> worst_ways(const ClusterView& view) {
  std::map<std::pair<const HalfEnd*, const HalfEnd*>, std::pair<Measured, double>> by_pair;
  for (const Measured& measured : measured_ways(view)) {
    const auto share = share_of(view, measured);
    if (!share) continue;
    const auto key = std::minmax(measured.from, measured.to);
    const auto [place, is_new] = by_pair.try_emplace(key, measured, *share);
    // Both directions of one cable are rarely equal to the last digit: only a clear difference moves the blame.
    if (!is_new && *share < place->second.second * 0.9) place->second = {measured, *share};
  }
  const auto is_rather = [&](const std::pair<Measured, double>& a, const std::pair<Measured, double>& b) {
    const bool a_loses = delivers_badly(view.facts.measurement->halves, *a.first.way);
    const bool b_loses = delivers_badly(view.facts.measurement->halves, *b.first.way);
    return a_loses == b_loses ? a.second < b.second : b_loses && a.second < kHealthyShare;
  };
  std::vector<std::pair<Measured, double>> worst;
  for (const auto& [ends, found] : by_pair) {
    const auto same = std::find_if(worst.begin(), worst.end(),
                                   [&](const auto& other) { return other.first.from == found.first.from; });
    if (same == worst.end()) {
      worst.push_back(found);
    } else if (is_rather(found, *same)) {
      *same = found;
    }
  }
  return worst;
}

std::string rate_text(const ClusterView& view, const Measured& measured) {
  const Measurement& measurement = *view.facts.measurement;
  const bool is_low = is_floor(measured.way->transport, *measurement.expected);
  return fmt::format("{} from {} ({}) to {} ({}), alone; {} expected ({}){}{}",
                     both_of(*measured.way->alone, measured.way->alone_again), measured.way->from, measured.from->name,
                     measured.way->to, measured.to->name, to_string(*measurement.expected), measurement.expected_source,
                     is_low ? "; by TCP, which alone does not account for it: 'apt-get install perftest' on all nodes "
                              "lets it be measured by RDMA"
                            : "",
                     load_words(measured.way->taken));
}

struct PairSums {
  BitsPerSecond alone{0}, together{0}, both_ways{0};  // each judged by its first and second measurement
  bool whole = true;                                  // every half was measured in each phase
  bool busy = false;
  bool floor = false;  // as fast as the processors, by TCP
  std::vector<const HalfEnd*> rails;
};

// By sending node and receiving node.
std::map<std::pair<std::string, std::string>, PairSums> sums_of(const ClusterView& view) {
  std::map<std::pair<std::string, std::string>, PairSums> sums;
  if (!view.facts.measurement) return sums;
  const auto& expected = view.facts.measurement->expected;
  for (const Measured& measured : measured_ways(view)) {
    const HalfMeasurement& way = *measured.way;
    PairSums& sum = sums[{way.from, way.to}];
    if (!way.alone || !way.together || !way.both_ways) sum.whole = false;
    if (expected && is_floor(way.transport, *expected)) sum.floor = true;
    // A half that carries more than it should, alone, need not do so beside the others.
    const BitsPerSecond alone = mean_of(way.alone.value_or(BitsPerSecond{0}), way.alone_again);
    sum.alone += expected ? std::min(alone, *expected) : alone;
    sum.together += mean_of(way.together.value_or(BitsPerSecond{0}), way.together_again);
    sum.both_ways += mean_of(way.both_ways.value_or(BitsPerSecond{0}), way.both_ways_again);
    sum.busy |= way.is_busy();
    sum.rails.insert(sum.rails.end(), {measured.from, measured.to});
  }
  return sums;
}

}  // namespace

AdviceList find_dead_halves(const ClusterView& view) {
  AdviceList list;
  std::set<const HalfEnd*> told;
  for (const Measured& measured : measured_ways(view)) {
    if (!measured.way->failure || told.contains(measured.to)) continue;
    told.insert(measured.from);
    list.push_back({.node = measured.from->node->name,
                    .subject = measured.from->name,
                    .what = fmt::format("{} between {} and {} carries nothing", measured.from->title(),
                                        measured.way->from, measured.way->to),
                    .evidence = *measured.way->failure,
                    .consequence = "everything that needs this half fails, or uses the other alone at half the rate",
                    .fix = measured.way->transport == "rdma"
                               ? "'yoke link test --transport tcp' tells whether it is the half or RDMA on it"
                               : "a firewall on the fast interfaces or a crossed cable are the usual causes",
                    .rails = {measured.from, measured.to}});
  }
  return list;
}

AdviceList find_lossy_halves(const ClusterView& view) {
  AdviceList list;
  for (const Measured& measured : measured_ways(view)) {
    const HalfMeasurement& way = *measured.way;
    if (!way.is_lossy()) continue;
    list.push_back({.node = way.from,
                    .subject = measured.from->name,
                    .what = fmt::format("{} loses packets from {} to {}", measured.from->title(), way.from, way.to),
                    .evidence = fmt::format("{} of {} messages had to be sent again, with nothing else on the half",
                                            *way.resent, way.messages.value_or(0)),
                    .consequence = "each loss stalls a collective for a fifth of a second by TCP; RDMA repeats all "
                                   "that was under way, or gives up (IBV_WC_RETRY_EXC_ERR)",
                    .fix = "clean or replace the cable; look at the transceivers, the switch's port, and at 'tc qdisc' "
                           "and the packet filter on both ends",
                    .rails = {measured.from, measured.to}});
  }
  return list;
}

AdviceList find_late_halves(const ClusterView& view) {
  AdviceList list;
  std::set<const HalfEnd*> told;
  for (const Measured& measured : measured_ways(view)) {
    const HalfMeasurement& way = *measured.way;
    if (!way.is_late() || told.contains(measured.to)) continue;
    told.insert(measured.from);
    list.push_back(
        {.node = way.from,
         .subject = measured.from->name,
         .what = fmt::format("{} between {} and {} takes {} for the smallest message", measured.from->title(), way.from,
                             way.to, to_string(*way.latency)),
         .evidence = fmt::format("{} one way at best; a cable or a switch takes some 10 us", to_string(*way.latency)),
         .consequence = "tokens wait for it: tensor-parallel decoding has two all-reduces in each layer",
         .fix = "does the half go by another network, a VPN or a software bridge? look at 'ip route get', at 'tc "
                "qdisc' on both ends, and at the NIC's interrupt moderation ('ethtool -c')",
         .rails = {measured.from, measured.to}});
  }
  return list;
}

AdviceList find_idle_halves(const ClusterView& view) {
  AdviceList list;
  std::set<const HalfEnd*> told;
  for (const Measured& measured : measured_ways(view)) {
    const HalfMeasurement& way = *measured.way;
    if (!way.alone || !way.together || told.contains(measured.to)) continue;
    const BitsPerSecond beside = std::max(*way.together, way.together_again.value_or(*way.together));
    if (beside / *way.alone >= kIdleMost) continue;
    told.insert(measured.from);
    list.push_back(
        {.node = way.from,
         .subject = measured.from->name,
         .what = fmt::format("{} on {} is idle while the other half is busy", measured.from->title(), way.from),
         .evidence = fmt::format("{} alone, {} beside the others", to_string(*way.alone), to_string(*way.together)),
         .consequence = "the cable gives half of what it could",
         .fix = "do both halves' packets leave by one interface? each half needs a network of its own "
                "('yoke link setup'); bonding the halves does this too",
         .rails = {measured.from, measured.to}});
  }
  return list;
}

AdviceList find_unstable_rails(const ClusterView& view) {
  AdviceList list;
  std::set<const HalfEnd*> told;
  for (const Measured& measured : measured_ways(view)) {
    const HalfMeasurement& way = *measured.way;
    if (!way.alone || !differ(*way.alone, way.alone_again) || way.is_busy()) continue;
    if (is_degraded_in_all(view, measured) || told.contains(measured.to) || !told.insert(measured.from).second)
      continue;
    list.push_back({.node = way.from,
                    .subject = measured.from->name,
                    .what = fmt::format("{} from {} to {} carries {} and, measured again, {}", measured.from->title(),
                                        way.from, way.to, to_string(*way.alone), to_string(*way.alone_again)),
                    .evidence = rate_text(view, measured),
                    .consequence = kUnstableCost,
                    .fix = kUnstableFix,
                    .rails = {measured.from, measured.to}});
  }
  const auto& reduce = view.facts.measurement->all_reduce;
  if (!reduce || !differ(reduce->large_bus_bandwidth, reduce->large_bus_bandwidth_again) || is_busy(*reduce))
    return list;
  list.push_back(
      {.what = fmt::format("an all-reduce over all nodes moves {} and, measured again, {}",
                           to_string(reduce->large_bus_bandwidth), to_string(*reduce->large_bus_bandwidth_again)),
       .evidence = fmt::format("two of {} by {}, one after the other{}", to_string(reduce->large_size), reduce->carrier,
                               load_words(reduce->taken)),
       .consequence = kUnstableCost,
       .fix = kUnstableFix});
  return list;
}

AdviceList find_degraded_halves(const ClusterView& view) {
  AdviceList list;
  for (const auto& [measured, share] : worst_ways(view)) {
    if (measured.way->is_busy() ? !is_degraded_in_all(view, measured) : !is_degraded(share)) continue;
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

AdviceList find_slow_halves(const ClusterView& view) {
  AdviceList list;
  for (const auto& [measured, share] : worst_ways(view)) {
    if (share >= kHealthyShare || is_degraded(share) || measured.way->is_busy()) continue;
    list.push_back(
        {.node = measured.from->node->name,
         .subject = measured.from->name,
         .what = fmt::format("{} between {} and {} carries {:.0f}% of what it should", measured.from->title(),
                             measured.way->from, measured.way->to, share * 100),
         .evidence = rate_text(view, measured),
         .consequence = "large messages take as much longer: loading, prefill and training, less so decoding",
         .fix = "is something else using the link or the processor? compare PCIe width, MTU and port speed "
                "of both ends ('yoke check'); try another cable",
         .rails = {measured.from, measured.to}});
  }
  return list;
}

AdviceList find_halves_sharing_a_path(const ClusterView& view) {
  AdviceList list;
  if (!view.facts.measurement) return list;
  const auto& expected = view.facts.measurement->expected;
  for (const auto& [nodes, sum] : sums_of(view)) {
    if (!sum.whole || sum.alone.value <= 0 || sum.together / sum.alone >= kTogetherLeast) continue;
    if (!expected || sum.floor) continue;  // as fast as the machine copies: the processor is what the halves share
    if (sum.busy) continue;
    list.push_back(
        {.node = nodes.first,
         .subject = {},
         .what = fmt::format("together the halves from {} to {} carry {:.0f}% of what they carry one after "
                             "the other",
                             nodes.first, nodes.second, sum.together / sum.alone * 100),
         .evidence = fmt::format("{} together, {} one after the other", to_string(sum.together), to_string(sum.alone)),
         .consequence = "the second half gains less than it should",
         .fix = "by TCP the processor may be the limit ('yoke link test' shows the cores used); else both halves share "
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
  if (by_rdma && measurement->all_reduce->carrier != "nccl") return {};
  BitsPerSecond raw{0};
  for (const auto& [nodes, sum] : sums_of(view)) {
    if (!sum.whole || sum.floor || sum.busy) return {};  // busy: what the halves could carry is not known
    raw = raw.value <= 0 ? sum.both_ways : std::min(raw, sum.both_ways);
  }
  const AllReduceMeasurement& reduce = *measurement->all_reduce;
  const BitsPerSecond reached =
      to_bits_per_second(mean_of(reduce.large_bus_bandwidth, reduce.large_bus_bandwidth_again));
  if (raw.value <= 0 || reached / raw >= kCollectiveLeast || is_busy(reduce)) return {};
  return {{.what = "the link is healthy, but an all-reduce over it is slow",
           .evidence = fmt::format("an all-reduce of {} moves {}; the halves carry {} each way at once{}",
                                   to_string(reduce.large_size),
                                   both_of(reduce.large_bus_bandwidth, reduce.large_bus_bandwidth_again),
                                   to_string(raw), load_words(reduce.taken)),
           .consequence = "prefill and training run at the collective's rate, not at the link's",
           .fix = "not the cable: look at the load of the processors; run with NCCL_DEBUG=INFO and give the log to "
                  "'yoke check nccl-log'; with NCCL itself, unplug the power of both for 30 s, as this is a second "
                  "form of the degraded state"}};
}

AdviceList find_failed_collectives(const ClusterView& view) {
  const auto& measurement = view.facts.measurement;
  if (!measurement || !measurement->all_reduce_failure) return {};
  const bool by_sockets = measurement->all_reduce.has_value();  // yoke's own went well over the same halves
  return {
      {.what =
           fmt::format("the halves carry data, but an all-reduce over all nodes{} fails", by_sockets ? " by NCCL" : ""),
       .evidence = measurement->all_reduce_failure->empty() ? "it came to no end" : *measurement->all_reduce_failure,
       .consequence = by_sockets ? "what uses NCCL does not run over these nodes, or only by sockets"
                                 : "no model can run over these nodes",
       .fix = by_sockets ? "run with NCCL_DEBUG=INFO and give the log to 'yoke check nccl-log'; 'yoke bench all-reduce "
                           "--transport nccl' tells more"
                         : "'yoke bench all-reduce' tells more; a filter that lets only some ports pass is a usual "
                           "cause"}};
}

AdviceList find_counted_errors(const ClusterView& view) {
  AdviceList list;
  if (!view.facts.measurement) return list;
  for (const CounterIncrease& counter : view.facts.measurement->counters) {
    // What was dropped may have been nobody's, or more than a queue holds. Errors are damage.
    if (counter.change <= 0 || counter.name.find("drop") != std::string::npos) continue;
    // A half that is cut counts what it could not send.
    const HalfEnd* end = view.find_half(counter.node, counter.interface);
    const bool joined = end && std::any_of(end->peers.begin(), end->peers.end(),
                                           [&](std::size_t peer) { return are_joined(*end, view.halves[peer]); });
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

}  // namespace yoke

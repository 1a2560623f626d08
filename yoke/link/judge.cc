#include "yoke/link/judge.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "yoke/spec/hardware.h"
#include "yoke/spec/link_faults.h"
#include "yoke/spec/measurement.h"

namespace yoke {
namespace {

// Layers of Llama 70B, each with two all-reduces of 8192 values of two bytes.
constexpr int kLayers = 80;

std::string between(const PairResult& pair) { return fmt::format("between {} and {}", pair.a, pair.b); }

const PairHalfFacts* facts_of(const PairResult& pair, const std::string& half) {
  for (const PairHalfFacts& facts : pair.halves) {
    if (facts.name == half) return &facts;
  }
  return nullptr;
}

// What the interfaces themselves tell of a half that cannot be measured, and on which node.
struct Explanation {
  std::optional<std::string> node;
  std::optional<std::string> interface;
  std::string text;
  std::string fix;
};

std::optional<Explanation> explain_end(const std::string& node, const HalfFacts& facts) {
  if (!facts.interface) {
    return Explanation{node, std::nullopt, fmt::format("{} has no interface of the name in the cluster file", node),
                       "correct the interface in the cluster file ('ip link' shows the names)"};
  }
  const LinkInterface& interface = *facts.interface;
  if (!interface.up) {
    return Explanation{node, interface.name, fmt::format("{} on {} is down", interface.name, node),
                       fmt::format("'ip link set {} up' on {}, or 'yoke link setup'", interface.name, node)};
  }
  if (!interface.carrier) {
    return Explanation{node, interface.name, fmt::format("{} on {} has no carrier", interface.name, node),
                       "look at the cable and at the port of the other end"};
  }
  if (interface.ipv4.empty()) {
    return Explanation{node, interface.name, fmt::format("{} on {} has no address", interface.name, node),
                       "'yoke link setup' gives it one"};
  }
  return std::nullopt;
}

Finding dead_half(const PairResult& pair, const HalfFailure& failure) {
  const bool by_rdma = pair.transport == "rdma";
  Explanation why{.node = {},
                  .interface = {},
                  .text = failure.message,
                  .fix = by_rdma ? "'yoke link test --transport tcp' tells whether it is the half or RDMA on it"
                                 : "a firewall on the fast interfaces, or a wrong address, are the usual causes"};
  if (const PairHalfFacts* facts = facts_of(pair, failure.half)) {
    // A port that was taken down shows as a lost carrier at the other end: the end that is down is the cause.
    std::vector<Explanation> found;
    for (auto explanation : {explain_end(pair.a, facts->a), explain_end(pair.b, facts->b)}) {
      if (explanation) found.push_back(*explanation);
    }
    const auto down = std::find_if(found.begin(), found.end(),
                                   [](const Explanation& e) { return e.text.find("carrier") == std::string::npos; });
    if (!found.empty()) why = down == found.end() ? found.front() : *down;
  }
  return {.rule = "half-dead",
          .severity = Severity::kFault,
          .node = why.node,
          .subject = why.interface,
          .what = fmt::format("half {} {} carries nothing", failure.half, between(pair)),
          .evidence = why.text,
          .consequence = "everything that needs this half fails or uses the other alone, at half the rate",
          .fix = why.fix};
}

// Of the messages that a half carried while nothing else used it. Lost and late ones explain its rate.
std::vector<Finding> bad_delivery(const PairResult& pair, const std::string& half) {
  std::vector<Finding> findings;
  for (const HalfLatency& latency : pair.latencies) {
    if (latency.half != half) continue;
    for (const SentMessages& sent : latency.sent) {
      if (sent.resent <= kResentMost) continue;
      findings.push_back(
          {.rule = "half-lossy",
           .severity = Severity::kFault,
           .node = sent.from,
           .what = fmt::format("half {} {} loses packets that {} sends", half, between(pair), sent.from),
           .evidence = fmt::format("{} of {} messages had to be sent again, with nothing else on the half", sent.resent,
                                   sent.count),
           .consequence = kHalfLossy.consequence,
           .fix = kHalfLossy.fix});
    }
    const auto quickest = std::min_element(latency.rows.begin(), latency.rows.end(),
                                           [](const PingResult& a, const PingResult& b) { return a.least < b.least; });
    if (quickest == latency.rows.end() || quickest->least <= kLatencyMost) continue;
    findings.push_back({.rule = "half-late",
                        .severity = Severity::kWarning,
                        .node = {},
                        .what = fmt::format("half {} {} takes {} for the smallest message", half, between(pair),
                                            to_string(quickest->least)),
                        .evidence = fmt::format("{} one way at best; a cable or a switch takes some 10 us",
                                                to_string(quickest->least)),
                        .consequence = kHalfLate.consequence,
                        .fix = kHalfLate.fix});
  }
  return findings;
}

std::optional<Finding> slow_half(const PairResult& pair, const std::string& half, const LinkExpectation& expected) {
  const auto forward = pair.alone(half, pair.a);
  const auto back = pair.alone(half, pair.b);
  if (!forward || !back) return std::nullopt;
  const BitsPerSecond worse = std::min(*forward, *back);
  const double share = worse / expected.half_rate;
  if (share >= kHealthyShare || !is_judged(pair.transport, worse, expected.half_rate)) return std::nullopt;
  const bool degraded = is_degraded(share);
  const LinkFault& fault = degraded ? kHalfDegraded : kHalfSlow;
  return Finding{
      .rule = degraded ? "half-degraded" : "half-slow",
      .severity = degraded ? Severity::kFault : Severity::kWarning,
      .node = {},
      .what = fmt::format("half {} {} is at {:.0f}% of what it should carry", half, between(pair), share * 100),
      .evidence =
          fmt::format("{} there, {} back, alone, by {}; {} expected ({})", to_string(*forward), to_string(*back),
                      pair.transport == "rdma" ? "RDMA" : "TCP", to_string(expected.half_rate), expected.source),
      .consequence = fault.consequence,
      .fix = fault.fix};
}

// Whether all halves together give what each gives alone.
std::optional<Finding> shared_path(const PairResult& pair, const std::string& from, const LinkExpectation& expected) {
  const LinkPhase* together = pair.find(LinkPhaseKind::kTogether, from);
  if (!together || is_floor(pair.transport, expected.half_rate)) return std::nullopt;  // the processor is shared
  BitsPerSecond alone{0};
  std::vector<std::string> parts;
  for (const HalfRate& rate : together->rates) {
    // A half that carries more than it should, alone, need not do so beside the others.
    alone += std::min(pair.alone(rate.half, from).value_or(BitsPerSecond{0}), expected.half_rate);
    parts.push_back(fmt::format("{} {}", rate.half, to_string(rate.rate)));
  }
  const BitsPerSecond sum = together->sum(from);
  if (alone.value <= 0 || sum / alone >= kTogetherLeast) return std::nullopt;
  return Finding{.rule = "halves-share",
                 .severity = Severity::kWarning,
                 .node = from,
                 .what = fmt::format("together the halves {} carry {:.0f}% of what they carry alone", between(pair),
                                     sum / alone * 100),
                 .evidence = fmt::format("together {} ({}), one after the other {}", to_string(sum),
                                         fmt::join(parts, ", "), to_string(alone)),
                 .consequence = kHalvesShare.consequence,
                 .fix = kHalvesShare.fix};
}

void judge_facts(const PairResult& pair, const PairHalfFacts& half, int mtu_wanted, std::vector<Finding>& findings) {
  const auto& a = half.a.interface;
  const auto& b = half.b.interface;
  if (a && b && a->mtu != b->mtu) {
    findings.push_back({.rule = "mtu-differs",
                        .severity = Severity::kFault,
                        .node = a->mtu == mtu_wanted ? pair.b : pair.a,
                        .subject = (a->mtu == mtu_wanted ? b : a)->name,
                        .what = fmt::format("the ends of half {} {} have different MTUs", half.name, between(pair)),
                        .evidence = fmt::format("{} on {}, {} on {}", a->mtu, pair.a, b->mtu, pair.b),
                        .consequence = "TCP agrees on the smaller; RDMA and large datagrams are lost without a word",
                        .fix = fmt::format("set both to {}: 'yoke link setup'", mtu_wanted)});
  } else if (a && b && a->mtu < mtu_wanted) {
    findings.push_back({.rule = "mtu-small",
                        .severity = Severity::kWarning,
                        .node = {},
                        .what = fmt::format("half {} {} has MTU {}", half.name, between(pair), a->mtu),
                        .evidence = fmt::format("{} on both ends, {} wanted", a->mtu, mtu_wanted),
                        .consequence = "RoCE then uses packets of 1024 bytes instead of 4096",
                        .fix = fmt::format("set both to {}: 'yoke link setup'", mtu_wanted)});
  }
  for (const auto& [facts, node] : {std::pair{&half.a, &pair.a}, std::pair{&half.b, &pair.b}}) {
    if (!facts->interface || !facts->route || *facts->route == facts->interface->name) continue;
    findings.push_back({.rule = "route-elsewhere",
                        .severity = Severity::kFault,
                        .node = *node,
                        .subject = facts->interface->name,
                        .what = fmt::format("packets of half {} leave {} by {}", half.name, *node, *facts->route),
                        .evidence = fmt::format("the route to the other end goes by {}, not by {}", *facts->route,
                                                facts->interface->name),
                        .consequence = "programs that do not bind to the interface, NCCL's sockets too, use that one",
                        .fix = "give each half a subnet of its own and remove other routes to it: 'yoke link setup'"});
  }
}

void judge_counters(const PairResult& pair, std::vector<Finding>& findings) {
  for (const CounterChange& counter : pair.counters) {
    // Dropped packets may have been nobody's, or more than a queue holds: TCP repeats them. Errors are damage.
    if (counter.name.find("dropped") != std::string::npos || counter.change <= 0) continue;
    findings.push_back({.rule = "errors-counted",
                        .severity = Severity::kFault,
                        .node = counter.node,
                        .subject = counter.interface,
                        .what = fmt::format("{} on {} counted {} {} during the test", counter.interface, counter.node,
                                            counter.change, counter.name),
                        .evidence = fmt::format("{} rose by {} (half {})", counter.name, counter.change, counter.half),
                        .consequence = kErrorsCounted.consequence,
                        .fix = kErrorsCounted.fix});
  }
}

void judge_all_reduce(const LinkTestResult& result, std::vector<Finding>& findings) {
  if (result.all_reduce_failure) {
    const bool by_sockets = result.all_reduce.has_value();
    const LinkFault& fault = by_sockets ? kNcclCollectiveFailed : kCollectiveFailed;
    findings.push_back({.rule = "collective-failed",
                        .severity = Severity::kFault,
                        .node = {},
                        .what = fmt::format("the halves carry data, but an all-reduce over all nodes{} failed",
                                            by_sockets ? " by NCCL" : ""),
                        .evidence = *result.all_reduce_failure,
                        .consequence = fault.consequence,
                        .fix = fault.fix});
  }
  // Where nothing limits the link but the processor, a collective, which also computes, is slower by nature.
  if (!result.all_reduce || result.pairs.size() != 1 || !result.expected) return;
  const PairResult& pair = result.pairs.front();
  // Sockets beside RDMA would compare two carriers, not a link with its use.
  if (result.all_reduce->carrier != (pair.transport == "rdma" ? "nccl" : "direct")) return;
  if (is_floor(pair.transport, result.expected->half_rate)) return;  // both are as fast as the processors
  const LinkPhase* both = pair.find(LinkPhaseKind::kBothWays, pair.a);
  if (!both) return;
  const BitsPerSecond raw = std::min(both->sum(pair.a), both->sum(pair.b));
  const BitsPerSecond reached = to_bits_per_second(result.all_reduce->large_bus_bandwidth);
  if (raw.value <= 0 || reached / raw >= kCollectiveLeast) return;
  findings.push_back(
      {.rule = "collective-slow",
       .severity = Severity::kWarning,
       .node = {},
       .what = "the link is healthy, but an all-reduce over it is slow",
       .evidence = fmt::format("all-reduce of {}: {} on the bus; the halves carry {} each way at once",
                               to_string(result.all_reduce->large_size), to_string(reached), to_string(raw)),
       .consequence = kCollectiveSlow.consequence,
       .fix = kCollectiveSlow.fix});
}

}  // namespace

std::optional<LinkExpectation> expectation_of(const Cluster& cluster) {
  if (cluster.fabric && cluster.fabric->half_rate)
    return LinkExpectation{*cluster.fabric->half_rate, "the cluster file"};
  const Hardware* hardware = cluster.hardware ? find_hardware(*cluster.hardware) : nullptr;
  // What a lab is not shaped to, it carries as fast as this machine copies.
  if (!hardware || cluster.lab) return std::nullopt;
  return LinkExpectation{hardware->half_rate, "the catalogue"};
}

std::vector<Finding> judge_link_test(const LinkTestResult& result, int mtu_wanted) {
  std::vector<Finding> findings;
  bool delivers_badly = false;
  for (const PairResult& pair : result.pairs) {
    for (const HalfFailure& failure : pair.failures) findings.push_back(dead_half(pair, failure));
    for (const PairHalfFacts& half : pair.halves) {
      judge_facts(pair, half, mtu_wanted, findings);
      const std::vector<Finding> badly = bad_delivery(pair, half.name);
      findings.insert(findings.end(), badly.begin(), badly.end());
      delivers_badly |= !badly.empty();
      const auto slow = result.expected && badly.empty() ? slow_half(pair, half.name, *result.expected) : std::nullopt;
      if (slow) findings.push_back(*slow);
    }
    // Unshaped halves of a lab do share something: this machine's processors.
    for (const std::string& from : {pair.a, pair.b}) {
      const auto shared = result.expected && !delivers_badly ? shared_path(pair, from, *result.expected) : std::nullopt;
      if (shared) findings.push_back(*shared);
    }
    judge_counters(pair, findings);
  }
  if (!delivers_badly || result.all_reduce_failure) judge_all_reduce(result, findings);
  return findings;
}

std::string token_cost(const AllReduceResult& all_reduce) {
  const Seconds cost = all_reduce.small_time * (2.0 * kLayers);
  return fmt::format(
      "a 16 KB all-reduce takes about {}, so a 70B model over {} nodes spends {} of each token on its {} all-reduces",
      to_string(all_reduce.small_time), all_reduce.ranks, to_string(cost), 2 * kLayers);
}

}  // namespace yoke

#include "yoke/link/measure_pair.h"

#include <fmt/format.h>

#include <algorithm>

#include "yoke/base/error.h"
#include "yoke/base/fields.h"
#include "yoke/base/hash.h"
#include "yoke/base/result.h"
#include "yoke/spec/measurement.h"

namespace yoke::link {
namespace {

using namespace literals;

constexpr Seconds kFactsLimit{30};

// Both nodes are asked at once.
std::array<NodeFacts, 2> ask_facts(const PairNodes& nodes, const NodePair& pair) {
  std::array<std::vector<RailQuestion>, 2> questions;
  for (const PairRail& rail : pair.rails) {
    questions[0].push_back({rail.a, rail.b.address});
    questions[1].push_back({rail.b, rail.a.address});
  }
  std::array<std::uint32_t, 2> asked{};
  for (std::size_t i = 0; i < 2; ++i) asked[i] = nodes[i]->begin("facts", to_document(questions[i]));
  std::array<NodeFacts, 2> facts;
  for (std::size_t i = 0; i < 2; ++i) {
    facts[i] = from_json<NodeFacts>(nodes[i]->answer(asked[i], Deadline::after(kFactsLimit)));
    if (facts[i].rails.size() != questions[i].size()) {
      throw Error(ErrorCode::kInvalid, fmt::format("{} was asked about {} rails and reported {}", nodes[i]->name(),
                                                   questions[i].size(), facts[i].rails.size()));
    }
  }
  return facts;
}

void guard_memory(const PairNodes& nodes, const std::array<NodeFacts, 2>& facts) {
  for (std::size_t i = 0; i < 2; ++i) {
    if (facts[i].memory_available && *facts[i].memory_available < memory_wanted(facts[i])) {
      throw Error(
          ErrorCode::kExhausted,
          fmt::format("{} has only {} of memory available", nodes[i]->name(), to_string(*facts[i].memory_available)),
          fmt::format("a measurement wants {} free: end what runs there", to_string(memory_wanted(facts[i]))));
    }
  }
}

void add_changes(PairResult& result, const std::string& node, const PairRail& rail, const RailFacts& before,
                 const RailFacts& after, const std::string& interface) {
  const auto add = [&](const std::string& name, std::int64_t was, std::int64_t is) {
    if (is != was) result.counters.push_back({node, rail.name, interface, name, is - was});
  };
  if (before.interface && after.interface) {
    const LinkCounters& was = before.interface->counters;
    const LinkCounters& is = after.interface->counters;
    add("rx_errors", was.rx_errors, is.rx_errors);
    add("tx_errors", was.tx_errors, is.tx_errors);
    add("rx_dropped", was.rx_dropped, is.rx_dropped);
    add("tx_dropped", was.tx_dropped, is.tx_dropped);
  }
  if (!before.rdma || !after.rdma) return;
  for (const NamedCount& is : after.rdma->error_counts) {
    const auto& counts = before.rdma->error_counts;
    const auto was = std::find_if(counts.begin(), counts.end(), [&](const NamedCount& c) { return c.name == is.name; });
    if (was != counts.end()) add(is.name, was->value, is.value);
  }
}

// The phases in their order, over the rails that work.
class Procedure {
 public:
  Procedure(PairTransport& transport, const NodePair& pair, const MeasureOptions& options, PairResult& result)
      : transport_(transport), pair_(pair), options_(options), result_(result) {}

  void run() {
    for (std::size_t rail = 0; rail < pair_.rails.size(); ++rail) {
      if (measure_alone(rail)) working_.push_back(rail);
    }
    if (working_.empty()) return;
    if (working_.size() > 1) {
      together(LinkPhaseKind::kTogether, {Direction::kForward}, "all rails together");
      together(LinkPhaseKind::kTogether, {Direction::kBackward}, "all rails together");
    }
    together(LinkPhaseKind::kBothWays, {Direction::kForward, Direction::kBackward}, "both directions at once");
  }

 private:
  void tell(std::string_view what, std::optional<Direction> direction = {}) {
    if (!options_.on_phase) return;
    const bool back = direction == Direction::kBackward;
    options_.on_phase(fmt::format("{} {} {}: {}", back ? result_.b : result_.a, direction ? "to" : "and",
                                  back ? result_.a : result_.b, what));
  }

  bool measure_alone(std::size_t rail) {
    const std::string& name = pair_.rails[rail].name;
    const auto measured = try_to([&] {
      tell(fmt::format("latency of rail {}", name));
      result_.latencies.push_back(transport_.latency(rail));
      for (const Direction direction : {Direction::kForward, Direction::kBackward}) {
        tell(fmt::format("rail {} alone", name), direction);
        result_.phases.push_back(move(LinkPhaseKind::kAlone, {{rail, direction}}));
      }
    });
    if (measured) return true;
    if (measured.error().code() == ErrorCode::kInterrupted) throw measured.error();
    result_.failures.push_back({name, measured.error().message()});
    return false;
  }

  void together(LinkPhaseKind kind, const std::vector<Direction>& directions, std::string_view what) {
    std::vector<RailFlow> flows;
    for (const std::size_t rail : working_) {
      for (const Direction direction : directions) flows.push_back({rail, direction});
    }
    tell(what, directions.size() == 1 ? std::optional(directions.front()) : std::nullopt);
    result_.phases.push_back(move(kind, flows));
  }

  // A phase that falls short is measured once more, and both are kept: a link that is slow half of the time is not
  // healthy, and what else the machine did meanwhile is told by its load.
  LinkPhase move(LinkPhaseKind kind, const std::vector<RailFlow>& flows) {
    LinkPhase phase = transport_.move(kind, flows, options_.time);
    if (!falls_short(phase)) return phase;
    const LinkPhase again = transport_.move(kind, flows, options_.time);
    for (std::size_t i = 0; i < phase.rates.size() && i < again.rates.size(); ++i) {
      phase.rates[i].again = again.rates[i].rate;
      phase.rates[i].retransmits += again.rates[i].retransmits;
    }
    for (std::size_t i = 0; i < phase.loads.size() && i < again.loads.size(); ++i) {
      phase.loads[i].taken = std::max(phase.loads[i].taken, again.loads[i].taken);
    }
    return phase;
  }

  static BitsPerSecond total(const LinkPhase& phase) {
    BitsPerSecond sum{0};
    for (const RailRate& rate : phase.rates) sum += rate.rate;
    return sum;
  }

  bool falls_short(const LinkPhase& phase) const {
    if (!options_.expected) return false;
    const BitsPerSecond expected = *options_.expected;
    BitsPerSecond alone{0};
    for (const RailRate& rate : phase.rates) {
      if (phase.kind == LinkPhaseKind::kAlone) {
        return spec::is_comparable(result_.transport, rate.rate, expected) &&
               rate.rate < expected * spec::kHealthyShare;
      }
      alone += std::min(result_.alone(rate.rail, rate.from).value_or(BitsPerSecond{0}), expected);
    }
    return !spec::is_floor(result_.transport, expected) && total(phase) < alone * spec::kMinTogether;
  }

  PairTransport& transport_;
  const NodePair& pair_;
  const MeasureOptions& options_;
  PairResult& result_;
  std::vector<std::size_t> working_;
};

// One connection fills ten gigabit; of a hundred it is one core that is measured, not the link.
int streams_for(const MeasureOptions& options) {
  if (options.streams > 0) return options.streams;
  return options.expected && options.expected->value > 10e9 ? 4 : 1;
}

}  // namespace

int phase_count(const NodePair& pair) {
  const int rails = static_cast<int>(pair.rails.size());
  return rails * 3 + (rails > 1 ? 2 : 0) + 1;
}

std::string why_no_rdma(const std::vector<PairRailFacts>& rails, const NodeFacts& a, const NodeFacts& b,
                        const std::string& a_name, const std::string& b_name) {
  for (const PairRailFacts& rail : rails) {
    for (const auto& [facts, node] : {std::pair{&rail.a, &a_name}, std::pair{&rail.b, &b_name}}) {
      if (!facts->rdma) return fmt::format("{} has no RDMA device for rail {}", *node, rail.name);
      if (!facts->rdma->active) return fmt::format("{} on {} is not active", facts->rdma->device, *node);
      if (!facts->rdma->gid_index) {
        return fmt::format("{} on {} has no RoCE v2 GID for the rail's address", facts->rdma->device, *node);
      }
    }
  }
  for (const auto& [facts, node] : {std::pair{&a, &a_name}, std::pair{&b, &b_name}}) {
    if (!facts->verbs) return fmt::format("{} offers no verbs: /dev/infiniband is empty or missing", *node);
    if (!facts->perftest) return fmt::format("perftest is not installed on {} (apt-get install perftest)", *node);
  }
  return "";
}

void measure_phases(PairTransport& transport, const NodePair& pair, const MeasureOptions& options, PairResult& result) {
  Procedure(transport, pair, options, result).run();
}

PairResult measure_pair(fleet::Node& a, fleet::Node& b, const NodePair& pair, const MeasureOptions& options) {
  const PairNodes nodes = {&a, &b};
  PairResult result{.a = a.name(), .b = b.name(), .streams = streams_for(options)};
  const std::array<NodeFacts, 2> before = ask_facts(nodes, pair);
  guard_memory(nodes, before);
  for (std::size_t i = 0; i < pair.rails.size(); ++i) {
    result.rails.push_back({pair.rails[i].name, before[0].rails.at(i), before[1].rails.at(i)});
  }
  result.rails_a = before[0].cabled;
  result.rails_b = before[1].cabled;
  const std::string reason = why_no_rdma(result.rails, before[0], before[1], a.name(), b.name());
  if (options.transport == TransportChoice::kRdma && !reason.empty()) {
    throw Error(ErrorCode::kUnsupported, "RDMA cannot be used: " + reason, "--transport tcp measures without it");
  }
  const bool by_rdma = options.transport != TransportChoice::kTcp && reason.empty();
  result.transport = by_rdma ? "rdma" : "tcp";
  if (!by_rdma) result.transport_reason = reason.empty() ? "--transport tcp was given" : reason;
  const auto transport =
      by_rdma ? make_rdma_transport(nodes, pair, result.rails) : make_tcp_transport(nodes, pair, result.streams);
  measure_phases(*transport, pair, options, result);

  const std::array<NodeFacts, 2> after = ask_facts(nodes, pair);
  for (std::size_t i = 0; i < pair.rails.size(); ++i) {
    const PairRail& rail = pair.rails[i];
    add_changes(result, a.name(), rail, before[0].rails[i], after[0].rails.at(i), rail.a.interface);
    add_changes(result, b.name(), rail, before[1].rails[i], after[1].rails.at(i), rail.b.interface);
  }
  return result;
}

}  // namespace yoke::link

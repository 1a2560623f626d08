// What `yoke link test` found out: plain data, from which the verdict (evaluate.h), the tables and the JSON are made.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "yoke/base/document.h"
#include "yoke/base/units.h"
#include "yoke/link/node_facts.h"
#include "yoke/link/ping_pong.h"
#include "yoke/spec/finding.h"

namespace yoke::link {

enum class LinkPhaseKind {
  kAlone,     // one rail, one direction
  kTogether,  // all rails, one direction
  kBothWays,  // all rails, both directions
};
constexpr auto enum_names(LinkPhaseKind) {
  return std::array{std::pair{"alone", LinkPhaseKind::kAlone}, std::pair{"together", LinkPhaseKind::kTogether},
                    std::pair{"both-ways", LinkPhaseKind::kBothWays}};
}

// One rail in one direction, within one phase.
struct RailRate {
  std::string rail;
  std::string from, to;  // nodes
  BitsPerSecond rate;    // of the payload, at the receiver
  std::int64_t retransmits = 0;
  std::optional<BitsPerSecond> again = {};  // what a second measurement gave, where the first fell short
};

struct NodeLoad {
  std::string node;
  double cores = 0;  // used in the window
  double taken = 0;  // share of the node's processors that others took meanwhile
};

struct LinkPhase {
  LinkPhaseKind kind = LinkPhaseKind::kAlone;
  std::vector<RailRate> rates;
  std::vector<NodeLoad> loads;

  BitsPerSecond sum(const std::string& from) const;  // of what this node sends
};

// Messages on a rail that nothing else used, of one node.
struct SentMessages {
  std::string from;
  std::int64_t count = 0;
  std::int64_t resent = 0;
};

struct RailLatency {
  std::string rail;
  std::vector<PingResult> rows;
  std::vector<SentMessages> sent;  // empty by RDMA, where counters tell what was lost
};

// A counter that moved while the link was measured.
struct CounterChange {
  std::string node, rail, interface, name;
  std::int64_t change = 0;
};

struct RailFailure {
  std::string rail;
  std::string message;
};

struct PairRailFacts {
  std::string name;
  RailFacts a, b;
};

struct PairResult {
  std::string a, b;              // nodes
  std::string transport;         // "tcp", "rdma"
  std::string transport_reason;  // of tcp: why not RDMA
  int streams = 1;
  std::vector<PairRailFacts> rails;                    // before the measurement
  std::vector<CabledRail> rails_a = {}, rails_b = {};  // all that have a cable, also what was not measured
  std::vector<LinkPhase> phases;
  std::vector<RailLatency> latencies;
  std::vector<CounterChange> counters;
  std::vector<RailFailure> failures;  // rails that could not be measured

  // The rate of a rail alone; nothing where it was not measured.
  std::optional<BitsPerSecond> alone(const std::string& rail, const std::string& from) const;
  const LinkPhase* find(LinkPhaseKind kind, const std::string& from) const;  // the phase in which `from` sends
};

// A short real all-reduce over all nodes.
struct AllReduceResult {
  int ranks = 0;
  std::string transport;  // "direct" (TCP), "nccl"
  Seconds small_time;     // of 16 KB, median of the slowest rank
  Bytes large_size;
  BytesPerSecond large_bus_bandwidth;
  std::optional<BytesPerSecond> large_bus_bandwidth_again = {};  // of a second one, where the first was slow
  double taken = 0;  // share of the head's processors that others took before and after
};

struct LinkExpectation {
  BitsPerSecond rail_rate;
  std::string source;  // "the cluster file", "the catalogue"
};

struct LinkTestResult {
  std::string cluster;
  std::optional<LinkExpectation> expected;
  std::vector<PairResult> pairs;
  std::optional<AllReduceResult> all_reduce;
  std::string all_reduce_missing;  // why there is none
  // It was tried and came to no end; or NCCL was there and failed, and `all_reduce` is by sockets instead.
  std::optional<std::string> all_reduce_failure = {};
  std::vector<spec::Finding> findings;
  std::vector<spec::Finding> withheld = {};  // what was not evaluated, as the machine was busy
};

// docs/link.md describes it.
Document to_json(const LinkTestResult& result);

}  // namespace yoke::link

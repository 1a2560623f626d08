// What was measured between the nodes, as plain data: what each rail carries alone and beside the others, counters that
// moved meanwhile, a short real all-reduce. `yoke link test` measures it; the rules of yoke/check read it.
#pragma once
#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "yoke/base/document.h"
#include "yoke/base/units.h"

namespace yoke::spec {

// What is healthy. NVIDIA's own pass mark for a pair is 175 of 200 Gb/s; a Spark's rail alone gives 92 and more of 100.
constexpr double kHealthyShare = 0.85;  // of the expected rate
// A Spark whose port came up wrong carries 8 to 25 Gb/s of 100, with nothing else amiss.
constexpr double kMinDegraded = 0.06;
constexpr double kMaxDegraded = 0.25;
constexpr bool is_degraded(double share) { return share >= kMinDegraded && share <= kMaxDegraded; }
// Two rails that do not disturb each other give twice one; below this they share something.
constexpr double kMinTogether = 0.8;
constexpr double kMinCollective = 0.5;  // of what the rails carry both ways
// Two measurements of the same thing, one after the other, differ by a few percent. Of the larger.
constexpr double kMaxSpread = 0.2;
// From this share of a node's processors on, taken by other programs, what TCP carries tells of the machine's load
// rather than of the link.
constexpr double kMaxTaken = 0.25;
// On a rail that nothing else uses no message is ever sent again; two may be a spill of something else.
constexpr std::int64_t kMaxResent = 2;
// One way, the quickest of thousands: a cable and two machines take some ten microseconds, a switch adds one.
constexpr Seconds kMaxLatency{250e-6};

// By TCP a fast rail is measured as the processors allow: that is a floor of what it carries, not its rate. Above the
// first of these a rate by TCP counts only where it is below the second too, which healthy machines with such NICs pass
// with four connections, and ports in the degraded state (13 Gb/s by TCP as by RDMA) do not.
constexpr BitsPerSecond kMaxTcpTrusted{10e9};
constexpr BitsPerSecond kMinTcpReached{25e9};
inline bool is_floor(std::string_view transport, BitsPerSecond expected) {
  return transport == "tcp" && expected > kMaxTcpTrusted;
}
// Whether a rate of a rail tells anything against it.
inline bool is_comparable(std::string_view transport, BitsPerSecond rate, BitsPerSecond expected) {
  return !is_floor(transport, expected) || rate <= std::min(expected * kMaxDegraded, kMinTcpReached);
}

// One rail between two nodes, in one direction.
struct RailMeasurement {
  std::string from, to;  // nodes
  std::string from_interface, to_interface;
  std::string transport = {};              // "tcp", "rdma"
  std::optional<BitsPerSecond> alone;      // of the payload, at the receiver; absent: not measured
  std::optional<BitsPerSecond> together;   // while all rails of the pair carry in this direction
  std::optional<BitsPerSecond> both_ways;  // while all rails carry in both directions
  // What a second measurement gave, where the first fell short.
  std::optional<BitsPerSecond> alone_again = {};
  std::optional<BitsPerSecond> together_again = {};
  std::optional<BitsPerSecond> both_ways_again = {};
  double taken = 0;  // share of the processors, of the busier node, that others took while this rail was measured
  std::optional<std::int64_t> messages;  // small ones that `from` sent while nothing else used the rail
  std::optional<std::int64_t> resent;    // of them
  std::optional<Seconds> latency;        // the quickest of them, one way
  std::optional<std::string> failure;    // why nothing passed
  friend bool operator==(const RailMeasurement&, const RailMeasurement&) = default;

  // `phase`: "alone", "together", "both-ways".
  void set_rate(std::string_view phase, BitsPerSecond rate, std::optional<BitsPerSecond> second);
  // What a program has to share explains what TCP carries; RDMA takes no processor.
  bool is_busy() const { return transport == "tcp" && taken >= kMaxTaken; }
  bool is_lossy() const { return resent.value_or(0) > kMaxResent; }
  bool is_late() const { return latency && *latency > kMaxLatency; }
  // Whether the other end, where we listened, refused: not what an address without a listener does.
  bool is_refused() const { return failure && failure->find("refused") != std::string::npos; }
};

struct CounterIncrease {
  std::string node, interface;
  std::string name;  // "rx_errors"
  std::int64_t change = 0;
  friend bool operator==(const CounterIncrease&, const CounterIncrease&) = default;
};

struct AllReduceMeasurement {
  int ranks = 0;
  std::string transport;  // "nccl", or "direct" for yoke's own over TCP
  Seconds small_time;     // of 16 KB
  Bytes large_size;
  BytesPerSecond large_bus_bandwidth;
  std::optional<BytesPerSecond> large_bus_bandwidth_again = {};  // of a second one, where the first was slow
  double taken = 0;  // share of the head's processors that others took before and after
  friend bool operator==(const AllReduceMeasurement&, const AllReduceMeasurement&) = default;
};

struct Measurement {
  std::optional<BitsPerSecond> expected;  // of one rail
  std::string expected_source;            // "the cluster file", "the catalogue"
  std::vector<std::string> transports;    // of the pairs: "tcp", "rdma"
  std::string transport_reason = {};      // of tcp: why not RDMA
  std::vector<RailMeasurement> rails;
  std::vector<CounterIncrease> counters;
  std::optional<AllReduceMeasurement> all_reduce;
  std::optional<std::string> all_reduce_failure = {};  // it was tried, or tried by NCCL, and came to no end
  friend bool operator==(const Measurement&, const Measurement&) = default;
};

Document to_json(const Measurement& measurement);
void from_json(const Document& document, Measurement& measurement);

}  // namespace yoke::spec

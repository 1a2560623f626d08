// The measured ways between rail ends as the rules of measured.cc look at them: their rate as a share of what the rail
// can carry now, the worst of each pair, and the sums of pairs of nodes.
#pragma once
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "yoke/check/cluster_view.h"

namespace yoke::check {

struct Measured {
  const spec::RailMeasurement* way = nullptr;
  const RailEnd* from = nullptr;
  const RailEnd* to = nullptr;
};

// The ways whose two ends are known and joined, so that their rate is not explained by their state.
std::vector<Measured> measured_ways(const ClusterView& view);

// A first and a second measurement: by what they give together a rate is evaluated.
template <class Rate>
Rate mean_of(Rate first, const std::optional<Rate>& again) {
  return again ? (first + *again) * 0.5 : first;
}
template <class Rate>
bool differ(Rate first, const std::optional<Rate>& again) {
  return again && std::min(first, *again) < std::max(first, *again) * (1 - spec::kMaxSpread);
}
template <class Rate>
std::string both_of(Rate first, const std::optional<Rate>& again) {
  return again ? fmt::format("{}, measured again {}", to_string(first), to_string(*again)) : to_string(first);
}

// Of what the rail should carry in its present state; nothing where it was not measured, or nothing is expected.
std::optional<double> share_of(const ClusterView& view, const Measured& measured, BitsPerSecond rate);
std::optional<double> share_of(const ClusterView& view, const Measured& measured);
// In the degraded state both times: that is no matter of the machine's load.
bool is_degraded_in_all(const ClusterView& view, const Measured& measured);

// Each pair of ends once, by its worse direction; each sending end once, as behind a switch it meets several others: by
// a pair that delivers well, where one is slow, as losses have their own rule.
std::vector<std::pair<Measured, double>> worst_ways(const ClusterView& view);

std::string load_words(double taken);  // "; measured while the CPU was 40% busy …", or nothing
std::string rate_text(const ClusterView& view, const Measured& measured);

// How many rails' worth a node's NICs carry, by the catalogue: of the file's hardware, else of what was found.
double nic_rails(const ClusterView& view, const std::string& node);

struct PairSums {
  BitsPerSecond alone{0}, together{0}, both_ways{0};  // each evaluated by its first and second measurement
  bool whole = true;                                  // every rail was measured in each phase
  bool busy = false;
  bool floor = false;  // as fast as the processors, by TCP
  std::vector<const RailEnd*> rails;
};

// By sending node and receiving node.
std::map<std::pair<std::string, std::string>, PairSums> sums_of(const ClusterView& view);

}  // namespace yoke::check

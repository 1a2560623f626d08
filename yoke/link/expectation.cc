#include "yoke/link/expectation.h"

#include <fmt/format.h>

#include "yoke/spec/hardware.h"

namespace yoke {
namespace {

// Layers of Llama 70B, each with two all-reduces of 8192 values of two bytes.
constexpr int kLayers = 80;

}  // namespace

std::optional<LinkExpectation> expectation_of(const Cluster& cluster) {
  if (cluster.fabric && cluster.fabric->half_rate)
    return LinkExpectation{*cluster.fabric->half_rate, "the cluster file"};
  const Hardware* hardware = cluster.hardware ? find_hardware(*cluster.hardware) : nullptr;
  // What a lab is not shaped to, it carries as fast as this machine copies.
  if (!hardware || cluster.lab) return std::nullopt;
  return LinkExpectation{hardware->half_rate, "the catalogue"};
}

std::string token_cost(const AllReduceResult& all_reduce) {
  const Seconds cost = all_reduce.small_time * (2.0 * kLayers);
  return fmt::format(
      "a 16 KB all-reduce takes about {}, so a 70B model over {} nodes spends {} of each token on its {} all-reduces",
      to_string(all_reduce.small_time), all_reduce.ranks, to_string(cost), 2 * kLayers);
}

}  // namespace yoke

#include "yoke/link/expectation.h"

#include <fmt/format.h>

#include "yoke/spec/hardware.h"

namespace yoke::link {
namespace {

// Layers of Llama 70B, each with two all-reduces of 8192 values of two bytes.
constexpr int kLayers = 80;

}  // namespace

std::optional<LinkExpectation> expectation_of(const spec::Cluster& cluster) {
  if (cluster.fabric && cluster.fabric->rail_rate)
    return LinkExpectation{*cluster.fabric->rail_rate, "the cluster file"};
  const spec::Hardware* hardware = cluster.hardware ? spec::find_hardware(*cluster.hardware) : nullptr;
  // What a lab is not shaped to, it carries as fast as this machine copies.
  if (!hardware || cluster.lab) return std::nullopt;
  return LinkExpectation{hardware->rail_rate, "the catalogue"};
}

std::string token_cost(const AllReduceResult& all_reduce) {
  const Seconds cost = all_reduce.small_time * (2.0 * kLayers);
  return fmt::format("16 KB in {} (about {} per token of a 70B model, which has {} all-reduces)",
                     to_string(all_reduce.small_time), to_string(cost), 2 * kLayers);
}

}  // namespace yoke::link

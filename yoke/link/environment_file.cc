#include "yoke/link/environment_file.h"

#include <fmt/format.h>

#include <algorithm>

#include "yoke/spec/fabric_pins.h"

namespace yoke::link {
namespace {

spec::PinFacts facts_of_setup(const spec::Cluster& cluster, const spec::ClusterNode& node, const SetupFacts& facts) {
  spec::PinFacts pins{.topology = cluster.fabric ? cluster.fabric->topology : spec::Topology::kDirect,
                      .rdma_devices = facts.rdma_devices,
                      .management_interface = facts.management_interface};
  // Not by what has a link at this moment: the file is for every later start.
  for (const spec::Rail& rail : node.rails) pins.interfaces.push_back(rail.interface);
  for (const spec::ClusterNode& other : cluster.nodes) {
    for (const spec::Rail& rail : other.rails) {
      const std::string subnet = to_string(rail.address.network());
      if (std::find(pins.subnets.begin(), pins.subnets.end(), subnet) == pins.subnets.end()) {
        pins.subnets.push_back(subnet);
      }
    }
  }
  return pins;
}

}  // namespace

std::string render_environment(const spec::Cluster& cluster, const spec::ClusterNode& node, const SetupFacts& facts) {
  const spec::FabricPins all = spec::fabric_pins(facts_of_setup(cluster, node, facts));
  std::string text = fmt::format(
      "# Pins for the fabric of cluster '{}' on {}.\n"
      "# Written by 'yoke link setup'; 'yoke link undo' takes it back. Use: set -a; . {}; set +a\n",
      cluster.name, node.name, kEnvironmentFile);
  for (const spec::FabricPin& pin : all.pins) text += fmt::format("\n# {}\n{}={}\n", pin.reason, pin.name, pin.value);
  for (const std::string& reason : all.left_out) text += fmt::format("\n# {}\n", reason);
  return text;
}

std::string render_profile(const spec::Cluster& cluster, const spec::ClusterNode& node, const SetupFacts& facts) {
  std::string text = fmt::format(
      "# Pins for the fabric of cluster '{}' on {}. A variable that is set already stays.\n"
      "# Written by 'yoke link setup --shell'; 'yoke link undo' takes it back.\n",
      cluster.name, node.name);
  for (const spec::FabricPin& pin : spec::fabric_pins(facts_of_setup(cluster, node, facts)).pins) {
    text += fmt::format("export {}=\"${{{}-{}}}\"\n", pin.name, pin.name, pin.value);
  }
  return text;
}

std::string render_user_services(const spec::Cluster& cluster, const spec::ClusterNode& node, const SetupFacts& facts) {
  std::string text = fmt::format(
      "# Pins for the fabric of cluster '{}' on {}, for services of users.\n"
      "# Written by 'yoke link setup --shell'; 'yoke link undo' takes it back.\n",
      cluster.name, node.name);
  for (const spec::FabricPin& pin : spec::fabric_pins(facts_of_setup(cluster, node, facts)).pins) {
    text += fmt::format("{}=\"{}\"\n", pin.name, pin.value);
  }
  return text;
}

}  // namespace yoke::link

#include "yoke/check/changes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "yoke/base/fields.h"

namespace yoke::check {
namespace {

constexpr double kSameRate = 0.15;  // two measurements of a second each differ by less

// What is compared of a node, in the order told: each a name and how it stands.
using Traits = std::vector<std::pair<std::string, std::string>>;

void add(Traits& traits, std::string name, const std::optional<std::string>& value) {
  if (value && !value->empty()) traits.emplace_back(std::move(name), *value);
}

std::string pcie_text(const spec::PcieLink& link) {
  return fmt::format("{:g} GT/s x{}", link.speed_gt_per_second, link.width);
}

void add_system(const spec::Machine& machine, Traits& traits) {
  add(traits, "operating system", machine.os);
  add(traits, "kernel", machine.kernel);
  add(traits, "GPU driver", machine.driver);
  add(traits, "CUDA", machine.cuda);
  add(traits, "CUDA toolkit", machine.cuda_toolkit);
  add(traits, "BIOS", machine.bios);
  if (machine.dgx) add(traits, "DGX update", machine.dgx->update);
  for (const spec::Gpu& gpu : machine.gpus) {
    const std::string name = fmt::format("GPU {}", gpu.pci_address.value_or("?"));
    add(traits, name, gpu.index ? gpu.name : gpu.name + ", not shown by NVML");
    add(traits, name + " VBIOS", gpu.vbios);
    if (gpu.nvlinks_active) add(traits, name + " NVLinks", std::to_string(*gpu.nvlinks_active));
  }
  for (const spec::NcclBuild& build : machine.nccl) {
    add(traits, "NCCL " + build.path,
        fmt::format("{} {}", build.version.value_or("?"), build.build_id.value_or("").substr(0, 8)));
  }
  for (const spec::NetworkSetting& setting : machine.settings) {
    add(traits, fmt::format("{} ({})", setting.name, setting.where), "'" + setting.value + "'");
  }
  add(traits, "locked memory",
      machine.memlock_unlimited ? "unlimited"
      : machine.memlock         ? yoke::to_string(*machine.memlock)
                                : "");
  add(traits, "firewall", machine.firewall);
  if (machine.ip_forward) add(traits, "forwarding", *machine.ip_forward ? "on" : "off");
}

void add_interface(const spec::NetworkInterface& interface, Traits& traits) {
  std::vector<std::string> addresses;
  for (const Ipv4Prefix& address : interface.addresses) addresses.push_back(yoke::to_string(address));
  add(traits, interface.name + " link", !interface.up ? "down" : interface.carrier ? "up" : "no carrier");
  add(traits, interface.name + " address", fmt::format("{}", fmt::join(addresses, ", ")));
  add(traits, interface.name + " MTU", std::to_string(interface.mtu));
  if (interface.speed) add(traits, interface.name + " speed", yoke::to_string(*interface.speed));
  if (interface.pcie) add(traits, interface.name + " PCIe", pcie_text(*interface.pcie));
}

void add_network(const spec::Machine& machine, Traits& traits) {
  for (const spec::NetworkInterface* interface : spec::fast_interfaces(machine)) add_interface(*interface, traits);
  for (const spec::RdmaDevice& device : machine.rdma_devices) {
    add(traits, device.name + " firmware", device.firmware);
    add(traits, device.name + " port", device.state);
    if (device.rate) add(traits, device.name + " rate", yoke::to_string(*device.rate));
    if (device.gid_index) add(traits, device.name + " GID index", std::to_string(*device.gid_index));
  }
}

// Who is found at the far end of each rail.
void add_cabling(const spec::SurveyedNode& node, Traits& traits) {
  for (const spec::PathProbe& path : node.paths) {
    if (!path.small) continue;
    add(traits, fmt::format("{} to {}", path.interface, path.peer), *path.small ? "answers" : "no answer");
  }
}

Traits traits_of(const spec::SurveyedNode& node) {
  Traits traits;
  if (!node.machine) return {{"node", "could not be looked at"}};
  add_system(*node.machine, traits);
  add_network(*node.machine, traits);
  add_cabling(node, traits);
  return traits;
}

const std::string* find(const Traits& traits, const std::string& name) {
  for (const auto& [key, value] : traits) {
    if (key == name) return &value;
  }
  return nullptr;
}

void compare(const std::string& node, const Traits& before, const Traits& now, std::vector<FactChange>& changes) {
  for (const auto& [name, value] : before) {
    const std::string* there = find(now, name);
    if (!there || *there != value) changes.push_back({node, name, value, there ? *there : ""});
  }
  for (const auto& [name, value] : now) {
    if (!find(before, name)) changes.push_back({node, name, "", value});
  }
}

const spec::SurveyedNode* find_node(const spec::Survey& facts, const std::string& name) {
  for (const spec::SurveyedNode& node : facts.nodes) {
    if (node.name == name) return &node;
  }
  return nullptr;
}

void compare_rates(const spec::Survey& before, const spec::Survey& now, std::vector<FactChange>& changes) {
  if (!before.measurement || !now.measurement) return;
  for (const spec::RailMeasurement& then : before.measurement->rails) {
    for (const spec::RailMeasurement& rail : now.measurement->rails) {
      const bool same = rail.from == then.from && rail.to == then.to && rail.from_interface == then.from_interface;
      if (!same || !then.alone) continue;
      const double ratio = rail.alone ? *rail.alone / *then.alone : 0;
      if (ratio > 1 - kSameRate && ratio < 1 + kSameRate) continue;
      changes.push_back({rail.from, fmt::format("rate of {} to {}", rail.from_interface, rail.to),
                         yoke::to_string(*then.alone), rail.alone ? yoke::to_string(*rail.alone) : "nothing passes"});
    }
  }
}

}  // namespace

std::vector<FactChange> find_changes(const spec::Survey& before, const spec::Survey& now) {
  std::vector<FactChange> changes;
  for (const spec::SurveyedNode& then : before.nodes) {
    const spec::SurveyedNode* node = find_node(now, then.name);
    if (!node) {
      changes.push_back({then.name, "node", "in the cluster", ""});
    } else if (!node->machine) {
      changes.push_back({then.name, "node", "answers", node->failure ? node->failure->message : "not looked at"});
    } else {
      compare(then.name, traits_of(then), traits_of(*node), changes);
    }
  }
  for (const spec::SurveyedNode& node : now.nodes) {
    if (!find_node(before, node.name)) changes.push_back({node.name, "node", "", "in the cluster"});
  }
  compare_rates(before, now, changes);
  return changes;
}

Document to_json(const std::vector<FactChange>& changes) {
  Document list = Document::list();
  for (const FactChange& change : changes) {
    list.items.push_back(Document::map({{"node", Document::string(change.node)},
                                        {"what", Document::string(change.what)},
                                        {"before", Document::string(change.before)},
                                        {"now", Document::string(change.now)}}));
  }
  return list;
}

}  // namespace yoke::check

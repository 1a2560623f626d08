// Variables that tell NCCL, Gloo, UCX and Open MPI which devices to use. Management as the way to meet
// (NCCL_SOCKET_IFNAME=enP7s7) is right and never told.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <map>
#include <set>

#include "yoke/base/text.h"
#include "yoke/check/pin_list.h"
#include "yoke/check/rules.h"

namespace yoke::check {
namespace {

// Whether a job between nodes can use it: a device with an active port, an interface with a link and an address that is
// no container's bridge; every machine has those, and loopback, with the same address.
bool is_usable(const Pin& pin, const std::string& name) {
  const spec::RdmaDevice* device = pin.rdma_device(name);
  if (device && device->state == "ACTIVE") return true;
  const spec::NetworkInterface* interface = pin.interface(name);
  return interface && interface->up && interface->carrier && interface->kind != spec::InterfaceKind::kLoopback &&
         !is_container_bridge(*interface) && !(interface->addresses.empty() && interface->ipv6_addresses.empty());
}

std::string why_unusable(const Pin& pin, const std::string& name) {
  const spec::NetworkInterface* interface = pin.interface(name);
  if (!interface) return fmt::format("{} has no active port", name);
  if (is_container_bridge(*interface)) return fmt::format("{} is a container bridge, which every machine has", name);
  if (interface->kind == spec::InterfaceKind::kLoopback) return fmt::format("{} leads to no other machine", name);
  return fmt::format("{} has no {}", name, interface->up && interface->carrier ? "address" : "link");
}

// What is pinned is a rail in use, or a fast port while none has a link: then other rules tell what is wrong with it.
bool is_reported_as_rail(const ClusterView& view, const Pin& pin, const std::string& name) {
  const spec::RdmaDevice* device = pin.rdma_device(name);
  const std::string interface = device ? device->interface.value_or("") : name;
  if (view.find_rail(pin.node->name, interface)) return true;
  const spec::NetworkInterface* found = spec::find_interface(*pin.node->machine, interface);
  const std::vector<const RailEnd*> rails = view.rails_of(*pin.node);
  return (device || (found && found->rail)) &&
         std::none_of(rails.begin(), rails.end(), [](const RailEnd* end) { return end->is_up(); });
}

// The names to pin instead: the rails' devices for RDMA, their interfaces for TCP, and to meet by the first of these,
// which in a ring or mesh does not lead to every node.
std::vector<std::string> names_of_rails(const ClusterView& view, const Pin& pin) {
  std::vector<std::string> names;
  for (const RailEnd* end : view.rails_of(*pin.node)) {
    if (!end->works()) continue;
    if (pin.kind->names == PinNames::kInterfaces) names.push_back(end->handle());
    if (pin.kind->names != PinNames::kInterfaces && end->rdma) names.push_back(end->rdma->name);
  }
  const auto& cluster = view.facts.cluster;
  const bool ring = cluster && cluster->fabric && spec::is_ring_or_mesh(cluster->fabric->topology);
  const bool meets = pin.kind->variable.ends_with("_SOCKET_IFNAME");
  if (meets && !names.empty()) names.resize(ring ? 0 : 1);
  return names;
}

// What turns RDMA off for NCCL; empty: this setting does not.
std::string how_rdma_is_off(const spec::NetworkSetting& setting) {
  const std::string value(trim(setting.value));
  if (setting.name == "NCCL_IB_DISABLE" && !value.empty() && value.find_first_not_of("0123456789") == value.npos &&
      value.find_first_not_of('0') != value.npos) {
    return "it switches InfiniBand and RoCE off";
  }
  const auto same = [](char a, char b) { return std::tolower(static_cast<unsigned char>(a)) == b; };
  constexpr std::string_view kSocket = "socket";
  if (setting.name == "NCCL_NET" && std::equal(value.begin(), value.end(), kSocket.begin(), kSocket.end(), same)) {
    return "it asks for TCP";
  }
  return "";
}

Advice without_rdma(const spec::SurveyedNode& node, const spec::NetworkSetting& setting, std::string_view how) {
  return {.node = node.name,
          .subject = setting.name,
          .what = fmt::format("{} keeps NCCL on {} from using RDMA", setting.name, node.name),
          .evidence = fmt::format("{}={} in {}: {}, and the machine has active RDMA ports", setting.name,
                                  printable(setting.value, 80), setting.where, how),
          .consequence = "NCCL talks TCP: a fraction of the rate, and several times the latency of every all-reduce",
          .fix = fmt::format("remove the line, or 'unset {}'", setting.name)};
}

// A prefix is too wide where it takes more than the device of just that name ("mlx5_1" takes mlx5_10), or interfaces of
// both the fabric and the management network.
bool is_too_wide(const Pin& pin, const std::string& entry, const std::vector<std::string>& found) {
  if (found.size() < 2) return false;
  if (std::find(found.begin(), found.end(), entry) != found.end()) return true;
  if (pin.kind->names != PinNames::kInterfaces) return false;
  std::set<bool> fast;
  for (const std::string& name : found) {
    const spec::NetworkInterface* interface = spec::find_interface(*pin.node->machine, name);
    if (interface && interface->up && interface->carrier) fast.insert(interface->rail.has_value());
  }
  return fast.size() > 1;
}

// The devices that are meant, by name. Which of two networks is meant only its owner knows.
std::string exact_instead(const Pin& pin) {
  std::vector<std::string> fast, others;
  for (const std::string& entry : pin.entries) {
    const std::vector<std::string> found = pin.matches(entry);
    const bool itself = std::find(found.begin(), found.end(), entry) != found.end();
    for (const std::string& name : itself ? std::vector{entry} : found) {
      const spec::NetworkInterface* interface = pin.interface(name);
      if (!itself && !is_usable(pin, name)) continue;
      (interface && interface->rail ? fast : others).push_back(name);
    }
  }
  if (fast.empty() || others.empty()) return "write it exact: " + pin.write(fast.empty() ? others : fast);
  return fmt::format("write exactly what is meant: {} to meet over the management network, or {} over the fast rails",
                     pin.write(others), pin.write(fast));
}

}  // namespace

AdviceList find_empty_pins(const ClusterView& view) {
  AdviceList list;
  constexpr std::array<std::string_view, 4> kOthers = {"NCCL_IB_GID_INDEX", "NCCL_NET", "NCCL_IB_TC", "NCCL_ALGO"};
  for (const spec::SurveyedNode& node : view.facts.nodes) {
    if (!node.machine) continue;
    for (const spec::NetworkSetting& setting : node.machine->settings) {
      const bool known =
          std::find(kOthers.begin(), kOthers.end(), setting.name) != kOthers.end() || is_pin(setting.name);
      if (!known || !trim(setting.value).empty()) continue;
      list.push_back({.node = node.name,
                      .subject = setting.name,
                      .what = fmt::format("{} is set to nothing on {}", setting.name, node.name),
                      .evidence = fmt::format("in {}", setting.where),
                      .consequence = setting.name == "NCCL_IB_GID_INDEX"
                                         ? "an empty text counts as index 0, the link-local RoCE v1 entry"
                                         : "an empty list is not the same as none: some programs then find no device",
                      .fix = fmt::format("remove the line, or 'unset {}'", setting.name)});
    }
  }
  return list;
}

AdviceList find_pins_of_absent_devices(const ClusterView& view) {
  AdviceList list;
  for (const Pin& pin : pins_of(view)) {
    if (pin.excludes) continue;
    std::vector<std::string> absent;
    for (const std::string& entry : pin.entries) {
      if (pin.matches(entry).empty()) absent.push_back(entry);
    }
    if (absent.empty()) continue;
    list.push_back({.node = pin.node->name,
                    .subject = pin.setting->name,
                    .what = fmt::format("{} names what {} does not have: {}", pin.setting->name, pin.node->name,
                                        fmt::join(absent, ", ")),
                    .evidence = fmt::format("{}; there are {}", pin.place(), fmt::join(pin.names(), ", ")),
                    .consequence =
                        "that rail is not used, or the job does not start; on another node the same name may "
                        "be right",
                    .fix = fmt::format("name this node's own devices, or remove {}", pin.setting->name)});
  }
  return list;
}

AdviceList find_pins_of_one_rail(const ClusterView& view) {
  AdviceList list;
  for (const Pin& pin : pins_of(view)) {
    if (pin.kind->variable != "NCCL_IB_HCA" || pin.entries.empty()) continue;
    const std::set<std::string> chosen = pin.chosen();
    std::map<int, std::vector<std::string>> used, left_out;  // by port: one that is left out whole is somebody's choice
    const auto count = [&](const RailEnd& end) {
      if (!end.is_up() || !end.rdma) return;
      (chosen.contains(end.rdma->name) ? used : left_out)[end.port].push_back(end.rdma->name);
    };
    for (const RailEnd* end : view.rails_of(*pin.node)) count(*end);
    // A port has all of its rails, also those that the cluster file omits.
    for (const RailEnd& end : view.unlisted) {
      if (end.node == pin.node && !view.find_rail(end.node->name, end.name)) count(end);
    }
    std::vector<std::string> all, missing;
    for (const auto& [port, names] : used) {
      all.insert(all.end(), names.begin(), names.end());
      missing.insert(missing.end(), left_out[port].begin(), left_out[port].end());
    }
    if (missing.empty()) continue;
    all.insert(all.end(), missing.begin(), missing.end());
    list.push_back({.node = pin.node->name,
                    .subject = pin.setting->name,
                    .what = fmt::format("{} leaves out a rail of {}", pin.setting->name, pin.node->name),
                    .evidence = fmt::format("{}; {} has a link too", pin.place(), fmt::join(missing, ", ")),
                    .consequence = "NCCL runs at half of the cable's rate (about 12 instead of 22 GB/s on a Spark)",
                    .fix = pin.write(all)});
  }
  return list;
}

AdviceList find_pins_without_rdma(const ClusterView& view) {
  AdviceList list;
  for (const spec::SurveyedNode& node : view.facts.nodes) {
    if (!node.machine || !has_active_rdma(*node.machine)) continue;
    for (const spec::NetworkSetting& setting : node.machine->settings) {
      const std::string how = how_rdma_is_off(setting);
      if (!how.empty()) list.push_back(without_rdma(node, setting, how));
    }
  }
  for (const Pin& pin : pins_of(view)) {
    const bool none_left = pin.excludes && pin.kind->variable == "NCCL_IB_HCA" && pin.chosen().empty();
    if (none_left && has_active_rdma(*pin.node->machine)) {
      list.push_back(without_rdma(*pin.node, *pin.setting, "it leaves no device"));
    }
  }
  return list;
}

AdviceList find_unusable_pins(const ClusterView& view) {
  AdviceList list;
  for (const Pin& pin : pins_of(view)) {
    const std::set<std::string> chosen = pin.chosen();
    const bool alone = view.facts.nodes.size() == 1 && view.rails.empty();  // where to should it lead?
    if (pin.entries.empty() || chosen.empty() || alone) continue;
    const bool passes = std::any_of(chosen.begin(), chosen.end(), [&](const std::string& name) {
      return is_usable(pin, name) || is_reported_as_rail(view, pin, name);
    });
    if (passes) continue;
    std::vector<std::string> reasons;
    for (const std::string& name : chosen) reasons.push_back(why_unusable(pin, name));
    const std::vector<std::string> better = names_of_rails(view, pin);
    list.push_back(
        {.node = pin.node->name,
         .subject = pin.setting->name,
         .what = fmt::format("{} leaves {} nothing that leads to other nodes", pin.setting->name, pin.node->name),
         .evidence = fmt::format("{}; {}", pin.place(), fmt::join(reasons, "; ")),
         .consequence = pin.kind->names == PinNames::kRdmaDevices
                            ? "NCCL finds no RDMA device and talks TCP, or the job does not start"
                            : "the ranks do not find each other: the job fails at its start, or hangs",
         .fix = better.empty() ? fmt::format("remove the line, or 'unset {}'", pin.setting->name)
                               : fmt::format("name what has a link: {}", pin.write(better))});
  }
  return list;
}

AdviceList find_wide_pins(const ClusterView& view) {
  AdviceList list;
  for (const Pin& pin : pins_of(view)) {
    if (pin.excludes || pin.match == PinMatch::kExact) continue;
    for (const std::string& entry : pin.entries) {
      const std::vector<std::string> found = pin.matches(entry);
      if (!is_too_wide(pin, entry, found)) continue;
      list.push_back(
          {.node = pin.node->name,
           .subject = pin.setting->name,
           .what =
               fmt::format("'{}' in {} matches more than one device of {}", entry, pin.setting->name, pin.node->name),
           .evidence = fmt::format("{}; without '=' it is a prefix and takes {}", pin.place(), fmt::join(found, ", ")),
           .consequence = "NCCL chooses among them by itself, not alike on all nodes",
           .fix = exact_instead(pin)});
    }
  }
  return list;
}

}  // namespace yoke::check

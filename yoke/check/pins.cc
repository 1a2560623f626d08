// Variables that tell NCCL, Gloo, UCX and Open MPI which devices to use. Management as the way to meet
// (NCCL_SOCKET_IFNAME=enP7s7) is right and never told.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <set>

#include "yoke/base/text.h"
#include "yoke/check/rules.h"

namespace yoke {
namespace {

enum class Match { kPrefix, kExact };
enum class Names { kInterfaces, kRdmaDevices, kEither };

struct PinKind {
  std::string_view variable;
  Names names;
  Match match;  // without a sign before the list
};
// NCCL's lists hold prefixes unless they begin with '='; the others' hold whole names.
constexpr std::array kPins = {
    PinKind{"NCCL_IB_HCA", Names::kRdmaDevices, Match::kPrefix},
    PinKind{"NCCL_SOCKET_IFNAME", Names::kInterfaces, Match::kPrefix},
    PinKind{"GLOO_SOCKET_IFNAME", Names::kInterfaces, Match::kExact},
    PinKind{"TP_SOCKET_IFNAME", Names::kInterfaces, Match::kExact},
    PinKind{"UCX_NET_DEVICES", Names::kEither, Match::kExact},
    PinKind{"OMPI_MCA_btl_tcp_if_include", Names::kInterfaces, Match::kExact},
};

struct Pin {
  const PinKind* kind;
  const CheckedNode* node;
  const NetworkSetting* setting;
  bool excludes = false;
  Match match = Match::kExact;
  std::vector<std::string> entries;  // names without port numbers
};

Pin read_pin(const PinKind& kind, const CheckedNode& node, const NetworkSetting& setting) {
  Pin pin{.kind = &kind, .node = &node, .setting = &setting, .match = kind.match};
  std::string_view list = trim(setting.value);
  if (list.starts_with('^')) {
    pin.excludes = true;
    list.remove_prefix(1);
  }
  if (list.starts_with('=')) {
    pin.match = Match::kExact;
    list.remove_prefix(1);
  }
  for (const std::string& entry : split(list, ',')) {
    const std::string name(trim(std::string_view(entry).substr(0, entry.find(':'))));
    // "all" is UCX's word; a network ("192.168.1.0/24") is Open MPI's.
    if (name.empty() || name == "all" || name.find('/') != std::string::npos) continue;
    pin.entries.push_back(name);
  }
  return pin;
}

std::vector<Pin> pins_of(const ClusterView& view) {
  std::vector<Pin> pins;
  for (const CheckedNode& node : view.facts.nodes) {
    if (!node.machine) continue;
    for (const NetworkSetting& setting : node.machine->settings) {
      for (const PinKind& kind : kPins) {
        if (setting.name == kind.variable) pins.push_back(read_pin(kind, node, setting));
      }
    }
  }
  return pins;
}

std::vector<std::string> names_for(const Pin& pin) {
  std::vector<std::string> names;
  if (pin.kind->names != Names::kRdmaDevices) {
    for (const NetworkInterface& interface : pin.node->machine->interfaces) names.push_back(interface.name);
  }
  if (pin.kind->names != Names::kInterfaces) {
    for (const RdmaDevice& device : pin.node->machine->rdma_devices) names.push_back(device.name);
  }
  return names;
}

std::vector<std::string> matches(const Pin& pin, const std::string& entry) {
  std::vector<std::string> found;
  for (const std::string& name : names_for(pin)) {
    if (pin.match == Match::kExact ? name == entry : name.starts_with(entry)) found.push_back(name);
  }
  return found;
}

std::string quoted(const Pin& pin) {
  return fmt::format("{}={}", pin.setting->name, printable(pin.setting->value, 80));
}

// A prefix is too wide where it takes more than the device of just that name ("mlx5_1" takes mlx5_10), or interfaces of
// both the fabric and the management network.
bool is_too_wide(const Pin& pin, const std::string& entry, const std::vector<std::string>& found) {
  if (found.size() < 2) return false;
  if (std::find(found.begin(), found.end(), entry) != found.end()) return true;
  if (pin.kind->names != Names::kInterfaces) return false;
  std::set<bool> fast;
  for (const std::string& name : found) {
    const NetworkInterface* interface = find_interface(*pin.node->machine, name);
    if (interface && interface->up && interface->carrier) fast.insert(interface->half.has_value());
  }
  return fast.size() > 1;
}

}  // namespace

AdviceList find_empty_pins(const ClusterView& view) {
  AdviceList list;
  constexpr std::array<std::string_view, 4> kOthers = {"NCCL_IB_GID_INDEX", "NCCL_NET", "NCCL_IB_TC", "NCCL_ALGO"};
  for (const CheckedNode& node : view.facts.nodes) {
    if (!node.machine) continue;
    for (const NetworkSetting& setting : node.machine->settings) {
      const bool known =
          std::find(kOthers.begin(), kOthers.end(), setting.name) != kOthers.end() ||
          std::any_of(kPins.begin(), kPins.end(), [&](const PinKind& kind) { return kind.variable == setting.name; });
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
      if (matches(pin, entry).empty()) absent.push_back(entry);
    }
    if (absent.empty()) continue;
    list.push_back(
        {.node = pin.node->name,
         .subject = pin.setting->name,
         .what = fmt::format("{} names what {} does not have: {}", pin.setting->name, pin.node->name,
                             fmt::join(absent, ", ")),
         .evidence =
             fmt::format("{} in {}; there are {}", quoted(pin), pin.setting->where, fmt::join(names_for(pin), ", ")),
         .consequence = "that half is not used, or the job does not start; on another node the same name may "
                        "be right",
         .fix = fmt::format("name this node's own devices, or remove {}", pin.setting->name)});
  }
  return list;
}

AdviceList find_pins_of_one_half(const ClusterView& view) {
  AdviceList list;
  for (const Pin& pin : pins_of(view)) {
    if (pin.excludes || pin.kind->variable != "NCCL_IB_HCA" || pin.entries.empty()) continue;
    std::set<std::string> chosen;
    for (const std::string& entry : pin.entries) {
      for (const std::string& name : matches(pin, entry)) chosen.insert(name);
    }
    std::vector<std::string> used, left_out;
    for (const HalfEnd* end : view.halves_of(*pin.node)) {
      if (!end->is_up() || !end->rdma) continue;
      (chosen.contains(end->rdma->name) ? used : left_out).push_back(end->rdma->name);
    }
    if (used.empty() || left_out.empty()) continue;
    list.push_back({.node = pin.node->name,
                    .subject = pin.setting->name,
                    .what = fmt::format("{} leaves out a half of {}", pin.setting->name, pin.node->name),
                    .evidence = fmt::format("{} in {}; {} has a link too", quoted(pin), pin.setting->where,
                                            fmt::join(left_out, ", ")),
                    .consequence = "NCCL runs at half of the cable's rate (about 12 instead of 22 GB/s on a Spark)",
                    .fix = fmt::format("NCCL_IB_HCA=={},{}", fmt::join(used, ","), fmt::join(left_out, ","))});
  }
  return list;
}

AdviceList find_wide_pins(const ClusterView& view) {
  AdviceList list;
  for (const Pin& pin : pins_of(view)) {
    if (pin.excludes || pin.match == Match::kExact) continue;
    for (const std::string& entry : pin.entries) {
      const std::vector<std::string> found = matches(pin, entry);
      if (!is_too_wide(pin, entry, found)) continue;
      list.push_back({.node = pin.node->name,
                      .subject = pin.setting->name,
                      .what = fmt::format("'{}' in {} matches more than one device of {}", entry, pin.setting->name,
                                          pin.node->name),
                      .evidence = fmt::format("{} in {}; without '=' it is a prefix and takes {}", quoted(pin),
                                              pin.setting->where, fmt::join(found, ", ")),
                      .consequence = "NCCL chooses among them by itself, not alike on all nodes",
                      .fix = fmt::format("write it exact: {}=={}", pin.setting->name, fmt::join(pin.entries, ","))});
    }
  }
  return list;
}

}  // namespace yoke

#include "yoke/check/pin_list.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "yoke/base/text.h"

namespace yoke::check {
namespace {

// NCCL's lists hold prefixes unless they begin with '='; the others' hold whole names.
constexpr std::array kPins = {
    PinKind{"NCCL_IB_HCA", PinNames::kRdmaDevices, PinMatch::kPrefix},
    PinKind{"NCCL_SOCKET_IFNAME", PinNames::kInterfaces, PinMatch::kPrefix},
    PinKind{"GLOO_SOCKET_IFNAME", PinNames::kInterfaces, PinMatch::kExact},
    PinKind{"TP_SOCKET_IFNAME", PinNames::kInterfaces, PinMatch::kExact},
    PinKind{"UCX_NET_DEVICES", PinNames::kEither, PinMatch::kExact},
    PinKind{"OMPI_MCA_btl_tcp_if_include", PinNames::kInterfaces, PinMatch::kExact},
    PinKind{"OMPI_MCA_oob_tcp_if_include", PinNames::kInterfaces, PinMatch::kExact},
};

// Where only this node has no address in it, that has its own rule.
bool is_known(const ClusterView& view, const Ipv4Prefix& network) {
  const auto contains = [&](const Ipv4Prefix& own) { return network.contains(own.address); };
  for (const spec::SurveyedNode& node : view.facts.nodes) {
    if (!node.machine) continue;
    for (const spec::NetworkInterface& interface : node.machine->interfaces) {
      if (std::any_of(interface.addresses.begin(), interface.addresses.end(), contains)) return true;
    }
  }
  return std::any_of(view.rails.begin(), view.rails.end(),
                     [&](const RailEnd& end) { return end.wanted && contains(*end.wanted); });
}

Pin read_pin(const ClusterView& view, const PinKind& kind, const spec::SurveyedNode& node,
             const spec::NetworkSetting& setting) {
  Pin pin{.kind = &kind, .node = &node, .setting = &setting, .match = kind.match, .entries = {}};
  std::string_view list = trim(setting.value);
  if (list.starts_with('^')) {
    pin.excludes = true;
    list.remove_prefix(1);
  }
  if (list.starts_with('=')) {
    pin.match = PinMatch::kExact;
    list.remove_prefix(1);
  }
  for (const std::string& entry : split(list, ',')) {
    const std::string name(trim(std::string_view(entry).substr(0, entry.find(':'))));
    // "all" is UCX's word; a network ("192.168.1.0/24") is Open MPI's, and names nothing where nothing is in it; what a
    // pattern takes is not for us to say.
    const auto network = parse_ipv4_prefix(name);
    const bool is_open = name.find_first_of("/*") != std::string::npos;
    if (name.empty() || name == "all" || (is_open && !(network && !is_known(view, *network)))) continue;
    pin.entries.push_back(name);
  }
  return pin;
}

}  // namespace

bool is_pin(std::string_view variable) {
  return std::any_of(kPins.begin(), kPins.end(), [&](const PinKind& kind) { return kind.variable == variable; });
}

std::vector<std::string> Pin::names() const {
  std::vector<std::string> found;
  if (kind->names != PinNames::kRdmaDevices) {
    for (const spec::NetworkInterface& interface : node->machine->interfaces) found.push_back(interface.name);
  }
  if (kind->names != PinNames::kInterfaces) {
    for (const spec::RdmaDevice& device : node->machine->rdma_devices) found.push_back(device.name);
  }
  return found;
}

std::vector<std::string> Pin::matches(const std::string& entry) const {
  std::vector<std::string> found;
  for (const std::string& name : names()) {
    if (match == PinMatch::kExact ? name == entry : name.starts_with(entry)) found.push_back(name);
  }
  return found;
}

std::set<std::string> Pin::chosen() const {
  std::set<std::string> named;
  for (const std::string& entry : entries) {
    for (const std::string& name : matches(entry)) named.insert(name);
  }
  if (!excludes) return named;
  std::set<std::string> left;
  for (const std::string& name : names()) {
    if (!named.contains(name)) left.insert(name);
  }
  return left;
}

const spec::NetworkInterface* Pin::interface(const std::string& name) const {
  return kind->names == PinNames::kRdmaDevices ? nullptr : spec::find_interface(*node->machine, name);
}

const spec::RdmaDevice* Pin::rdma_device(const std::string& name) const {
  return kind->names == PinNames::kInterfaces ? nullptr : spec::find_rdma_device(*node->machine, name);
}

std::string Pin::place() const {
  return fmt::format("{}={} in {}", setting->name, printable(setting->value, 80), setting->where);
}

std::string Pin::write(const std::vector<std::string>& names) const {
  return fmt::format("{}={}{}", setting->name, kind->match == PinMatch::kPrefix ? "=" : "", fmt::join(names, ","));
}

std::vector<Pin> pins_of(const ClusterView& view) {
  std::vector<Pin> pins;
  for (const spec::SurveyedNode& node : view.facts.nodes) {
    if (!node.machine) continue;
    for (const spec::NetworkSetting& setting : node.machine->settings) {
      for (const PinKind& kind : kPins) {
        if (setting.name == kind.variable) pins.push_back(read_pin(view, kind, node, setting));
      }
    }
  }
  return pins;
}

}  // namespace yoke::check

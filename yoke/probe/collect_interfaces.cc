#include <fmt/format.h>

#include <algorithm>

#include "yoke/base/ip.h"
#include "yoke/base/text.h"
#include "yoke/probe/collectors.h"
#include "yoke/probe/module_eeprom.h"
#include "yoke/probe/pci.h"
#include "yoke/probe/tree_values.h"

namespace yoke::probe {
namespace {

Error broken_link(std::string_view interface, std::string_view what, std::string_view value) {
  return Error(ErrorCode::kInvalid, fmt::format("the kernel's links: {} of '{}' cannot be '{}'", what,
                                                printable(interface, 40), printable(value, 60)));
}

// The function that an interface belongs to: as netlink tells; else the one whose folder has an interface of that name,
// since in a lab the interface itself is a virtual one.
const PciDevice* function_of(const LinkEntry& link, const FileTree& files,
                             const std::map<std::string, PciDevice>& devices) {
  if (link.parentbus == "pci" && link.parentdev) {
    const auto device = devices.find(*link.parentdev);
    return device == devices.end() ? nullptr : &device->second;
  }
  for (const auto& [address, device] : devices) {
    const bool is_network = device.device_class.starts_with("0x02");
    if (is_network && files.exists(device.folder + "/net/" + link.ifname)) return &device;
  }
  return nullptr;
}

spec::InterfaceKind kind_of(const LinkEntry& link, const FileTree& files, const PciDevice* device) {
  const std::string kind = link.linkinfo ? link.linkinfo->info_kind : "";
  if (link.link_type == "loopback") return spec::InterfaceKind::kLoopback;
  if (kind == "bridge") return spec::InterfaceKind::kBridge;
  if (kind == "bond" || kind == "team") return spec::InterfaceKind::kBond;
  const std::string folder = device ? device->folder + "/net/" + link.ifname : "/sys/class/net/" + link.ifname;
  if (files.exists(folder + "/phy80211")) return spec::InterfaceKind::kWifi;
  if (device) return spec::InterfaceKind::kEthernet;
  if (!kind.empty()) return spec::InterfaceKind::kVirtual;
  // Without a kind it is hardware off the PCI bus (USB, a board's own), or a device such as a tap.
  const auto place = files.resolve("/sys/class/net/" + link.ifname);
  if (place && place->starts_with("/sys/devices/virtual/")) return spec::InterfaceKind::kVirtual;
  return link.link_type == "ether" ? spec::InterfaceKind::kEthernet : spec::InterfaceKind::kOther;
}

void add_addresses(const LinkEntry& link, spec::NetworkInterface& interface) {
  for (const LinkAddress& address : link.addr_info) {
    const std::string text = fmt::format("{}/{}", address.local, address.prefixlen);
    if (address.family == "inet6") interface.ipv6_addresses.push_back(text);
    if (address.family != "inet") continue;
    const auto prefix = parse_ipv4_prefix(text);
    if (!prefix) throw broken_link(link.ifname, "an address", text);
    interface.addresses.push_back(*prefix);
  }
}

// A port that is down reads -1 or nothing at all. A virtual interface's speed means nothing, so only that in a PCI
// function's or a hardware device's own folder counts.
std::optional<BitsPerSecond> speed_of(const FileTree& files, const std::string& folder) {
  const auto megabits = read_number(files, folder + "/speed");
  if (!megabits || *megabits <= 0 || *megabits >= 4294967295) return std::nullopt;
  return BitsPerSecond{static_cast<double>(*megabits) * 1e6};
}

spec::NetworkInterface interface_of(const LinkEntry& link, const FileTree& files,
                                    const std::map<std::string, PciDevice>& devices) {
  const PciDevice* const device = function_of(link, files, devices);
  spec::NetworkInterface interface {
    .name = link.ifname, .index = link.ifindex, .kind = kind_of(link, files, device), .mac = link.address.value_or(""),
    .mtu = link.mtu, .up = link.has_flag("UP"), .carrier = link.has_flag("LOWER_UP"), .master = link.master
  };
  add_addresses(link, interface);
  interface.flow_control = link.flow_control;
  interface.dscp = link.dscp;
  interface.pause_received = link.pause_received;
  interface.pause_sent = link.pause_sent;
  interface.discards_received = link.discards_received;
  const auto disabled = read_number(files, fmt::format("/proc/sys/net/ipv6/conf/{}/disable_ipv6", link.ifname));
  if (disabled) interface.ipv6_disabled = *disabled != 0;
  if (device) {
    interface.pci_address = device->address;
    interface.driver = device->driver;
    interface.numa_node = device->numa_node;
    interface.pcie = read_pcie_link(files, *device);
    interface.speed = speed_of(files, device->folder + "/net/" + link.ifname);
    // The kernel tells it by ethtool; a lab's interfaces have no module, and show one among their hardware.
    const auto eeprom = link.module_eeprom ? link.module_eeprom : files.read(device->folder + "/module_eeprom");
    if (eeprom) interface.module = parse_module_eeprom(*eeprom);
  } else if (interface.kind == spec::InterfaceKind::kEthernet) {
    interface.speed = speed_of(files, "/sys/class/net/" + link.ifname);
  }
  return interface;
}

spec::Route route_of(const LinkRoute& reported) {
  const auto address = [&](const std::optional<std::string>& text, std::string_view what) -> std::optional<Ipv4> {
    if (!text) return std::nullopt;
    const auto parsed = parse_ipv4(*text);
    if (!parsed) throw broken_link(reported.dev, what, *text);
    return *parsed;
  };
  spec::Route route{.interface = reported.dev, .metric = reported.metric};
  route.gateway = address(reported.gateway, "a route's gateway");
  route.source = address(reported.prefsrc, "a route's source");
  route.down = std::find(reported.flags.begin(), reported.flags.end(), "linkdown") != reported.flags.end();
  if (reported.dst == "default") return route;
  const bool is_host = reported.dst.find('/') == std::string::npos;
  const auto prefix = parse_ipv4_prefix(is_host ? reported.dst + "/32" : reported.dst);
  if (!prefix) throw broken_link(reported.dev, "a route's destination", reported.dst);
  route.destination = *prefix;
  return route;
}

}  // namespace

void collect_interfaces(const Sources& sources, spec::Machine& machine) {
  const std::map<std::string, PciDevice> devices = read_pci_devices(*sources.files);
  for (const LinkEntry& link : sources.links.links) {
    machine.interfaces.push_back(interface_of(link, *sources.files, devices));
  }
  for (const LinkRoute& route : sources.links.routes) machine.routes.push_back(route_of(route));
}

}  // namespace yoke::probe

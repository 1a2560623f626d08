#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "yoke/base/text.h"
#include "yoke/probe/collectors.h"
#include "yoke/probe/pci.h"
#include "yoke/probe/tree_values.h"
#include "yoke/spec/address_holder.h"

namespace yoke::probe {
namespace {

constexpr std::string_view kClass = "/sys/class/infiniband";

// "4: ACTIVE" -> "ACTIVE"
std::optional<std::string> read_state(const FileTree& files, const std::string& path) {
  const auto text = files.read_trimmed(path);
  if (!text) return std::nullopt;
  const std::size_t colon = text->find(": ");
  if (colon == std::string::npos) throw broken_file(path, "a state such as 4: ACTIVE", *text);
  return text->substr(colon + 2);
}

// "200 Gb/sec (4X HDR)"
std::optional<BitsPerSecond> read_rate(const FileTree& files, const std::string& path) {
  const auto text = files.read_trimmed(path);
  if (!text) return std::nullopt;
  double gigabits = 0;
  const auto [rest, failure] = std::from_chars(text->data(), text->data() + text->size(), gigabits);
  const std::string_view unit(rest, static_cast<std::size_t>(text->data() + text->size() - rest));
  if (failure != std::errc{} || !unit.starts_with(" Gb/sec") || !(gigabits >= 0 && gigabits < 1e6)) {
    throw broken_file(path, "a rate such as 200 Gb/sec (4X HDR)", *text);
  }
  return BitsPerSecond{gigabits * 1e9};
}

std::array<std::uint16_t, 8> groups_of(const std::string& path, const std::string& text) {
  const std::vector<std::string> parts = split(text, ':');
  std::array<std::uint16_t, 8> groups{};
  bool sound = parts.size() == groups.size();
  for (std::size_t i = 0; sound && i < groups.size(); ++i) {
    const char* const end = parts[i].data() + parts[i].size();
    const auto [rest, failure] = std::from_chars(parts[i].data(), end, groups[i], 16);
    sound = failure == std::errc{} && rest == end;
  }
  if (!sound) throw broken_file(path, "a GID of eight groups", text);
  return groups;
}

// ::ffff:a.b.c.d
std::optional<Ipv4> mapped_ipv4(const std::array<std::uint16_t, 8>& groups) {
  const bool mapped = std::all_of(groups.begin(), groups.begin() + 5, [](auto group) { return group == 0; });
  if (!mapped || groups[5] != 0xFFFF) return std::nullopt;
  return Ipv4{static_cast<std::uint32_t>(groups[6]) << 16U | groups[7]};
}

// The slots in use: an empty one reads as zeros, and its attributes cannot be read at all. Those of InfiniBand proper
// have no interface; they are left out, as nothing about RoCE follows from them.
std::vector<spec::GidEntry> read_gids(const FileTree& files, const std::string& port) {
  std::vector<spec::GidEntry> gids;
  for (const std::string& name : files.list(port + "/gids")) {
    const std::string path = port + "/gids/" + name;
    const auto index = to_number(name);
    const auto address = files.read_trimmed(path);
    if (!index || !address) continue;
    const auto groups = groups_of(path, *address);
    if (std::all_of(groups.begin(), groups.end(), [](auto group) { return group == 0; })) continue;
    const auto type = files.read_trimmed(port + "/gid_attrs/types/" + name);
    const auto interface = files.read_trimmed(port + "/gid_attrs/ndevs/" + name);
    if (!type || !interface) continue;
    if (*type != "RoCE v2" && *type != "IB/RoCE v1") {
      throw broken_file(port + "/gid_attrs/types/" + name, "RoCE v2 or IB/RoCE v1", *type);
    }
    gids.push_back({.index = static_cast<int>(*index),
                    .type = *type == "RoCE v2" ? spec::GidType::kRoceV2 : spec::GidType::kRoceV1,
                    .address = *address,
                    .ipv4 = mapped_ipv4(groups),
                    .interface = *interface});
  }
  std::sort(gids.begin(), gids.end(),
            [](const spec::GidEntry& a, const spec::GidEntry& b) { return a.index < b.index; });
  return gids;
}

// The entry that RoCE must use now: version 2, for an IPv4 address that the interface has at this moment. An address
// that somebody gave it comes before one that it gave itself.
std::optional<int> choose_gid(const std::vector<spec::GidEntry>& gids, const spec::NetworkInterface& interface) {
  std::optional<int> self_given;
  for (const spec::GidEntry& gid : gids) {
    const bool is_current = gid.type == spec::GidType::kRoceV2 && gid.ipv4 && gid.interface == interface.name &&
                            std::any_of(interface.addresses.begin(), interface.addresses.end(),
                                        [&](const Ipv4Prefix& prefix) { return prefix.address == *gid.ipv4; });
    if (!is_current) continue;
    if (!spec::is_link_local(*gid.ipv4)) return gid.index;
    if (!self_given) self_given = gid.index;
  }
  return self_given;
}

spec::NetworkInterface* interface_at(spec::Machine& machine, const std::string& pci_address,
                                     const std::vector<spec::GidEntry>& gids) {
  spec::NetworkInterface* found = nullptr;
  for (spec::NetworkInterface& interface : machine.interfaces) {
    if (interface.pci_address != pci_address) continue;
    const bool named = std::any_of(gids.begin(), gids.end(),
                                   [&](const spec::GidEntry& gid) { return gid.interface == interface.name; });
    // One function can have several interfaces (a representor of a virtual function); the GIDs say which is ours.
    if (named || !found) found = &interface;
    if (named) break;
  }
  return found;
}

// Of the kernel's counters those that tell of faults (docs/probe.md), and the packets that they are held against. Zero
// is not kept. An unreadable one is as good as absent: some firmware answers EINVAL.
constexpr std::array kCounters = {"counters/link_downed",
                                  "counters/link_error_recovery",
                                  "counters/local_link_integrity_errors",
                                  "counters/port_rcv_errors",
                                  "counters/port_rcv_packets",
                                  "counters/port_xmit_discards",
                                  "counters/port_xmit_packets",
                                  "counters/symbol_error",
                                  "hw_counters/local_ack_timeout_err",
                                  "hw_counters/np_cnp_sent",
                                  "hw_counters/np_ecn_marked_roce_packets",
                                  "hw_counters/out_of_buffer",
                                  "hw_counters/packet_seq_err",
                                  "hw_counters/rnr_nak_retry_err",
                                  "hw_counters/rp_cnp_handled",
                                  "hw_counters/rp_cnp_ignored"};

std::vector<spec::PortCounter> read_counters(const FileTree& files, const std::string& port) {
  std::vector<spec::PortCounter> counters;
  for (const std::string path : kCounters) {
    const auto value = to_number(files.read_trimmed(port + "/" + path).value_or(""));
    if (value && *value > 0) counters.push_back({last_part(path), *value});
  }
  return counters;
}

spec::RdmaDevice read_device(const FileTree& files, const std::string& name, spec::Machine& machine) {
  const std::string folder = fmt::format("{}/{}", kClass, name);
  const std::string port = folder + "/ports/1";
  spec::RdmaDevice device{.name = name,
                          .state = read_state(files, port + "/state").value_or("UNKNOWN"),
                          .physical_state = read_state(files, port + "/phys_state"),
                          .link_layer = read_nonempty(files, port + "/link_layer"),
                          .rate = read_rate(files, port + "/rate"),
                          .pci_address = pci_address_of(files, folder),
                          .firmware = read_nonempty(files, folder + "/fw_ver"),
                          .board = read_nonempty(files, folder + "/board_id"),
                          .adapter = read_nonempty(files, folder + "/sys_image_guid"),
                          .gids = read_gids(files, port),
                          .counters = read_counters(files, port)};
  if (device.pci_address) {
    device.iommu = read_iommu_type(files, *device.pci_address);
    const auto pci = files.resolve("/sys/bus/pci/devices/" + *device.pci_address);
    if (pci) device.bridges = static_cast<int>(bridges_above({.address = {}, .folder = *pci}).size());
  }
  spec::NetworkInterface* const interface =
      device.pci_address ? interface_at(machine, *device.pci_address, device.gids) : nullptr;
  if (!interface) return device;
  device.interface = interface->name;
  device.gid_index = choose_gid(device.gids, spec::address_holder(machine, *interface, device.gids));
  interface->rdma_device = name;
  return device;
}

}  // namespace

void collect_rdma(const Sources& sources, spec::Machine& machine) {
  const FileTree& files = *sources.files;
  for (const std::string& name : files.list(kClass)) {
    machine.rdma_devices.push_back(read_device(files, name, machine));
  }
}

}  // namespace yoke::probe

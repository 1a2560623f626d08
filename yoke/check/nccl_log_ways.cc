#include "yoke/check/nccl_log_ways.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>

namespace yoke {
namespace {

bool is_rdma_way(std::string_view way) { return way.starts_with("NET/") && !way.starts_with("NET/Socket"); }

// "NET/IB/4", "NET/IBext_v10/0": what the number stands for; empty where the log does not say.
std::vector<std::string> devices_behind(const NcclHost& host, std::string_view way) {
  const std::string_view digits = way.substr(way.rfind('/') + 1);
  int number = -1;
  const auto [rest, failure] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (failure != std::errc{} || rest != digits.data() + digits.size() || number < 0) return {};
  if (const auto found = host.virtual_devices.find(number); found != host.virtual_devices.end()) return found->second;
  const auto index = static_cast<std::size_t>(number);
  return index < host.devices.size() ? std::vector{host.devices[index]} : std::vector<std::string>();
}

// Of the devices that carry channels; nothing where one of them is in no domain that the log tells.
std::set<std::string> busy_domains(const NcclHost& host) {
  std::set<std::string> domains;
  for (const std::string& device : busy_devices(host)) {
    const auto domain = pci_domain(host, device);
    if (!domain) return {};
    domains.insert(*domain);
  }
  return domains;
}

}  // namespace

bool uses_tcp(const NcclHost& host) {
  const bool by_channel = std::any_of(host.channels.begin(), host.channels.end(),
                                      [](const auto& way) { return way.first.starts_with("NET/Socket"); });
  return by_channel || host.networks.contains("Socket");
}

bool uses_rdma(const NcclHost& host) {
  const bool by_channel =
      std::any_of(host.channels.begin(), host.channels.end(), [](const auto& way) { return is_rdma_way(way.first); });
  return by_channel || host.networks.contains("IB") || (!host.devices.empty() && !uses_tcp(host));
}

int net_channels(const NcclHost& host) {
  int count = 0;
  for (const auto& [way, n] : host.channels) count += way.starts_with("NET/") ? n : 0;
  return count;
}

bool has_spark_names(const NcclHost& host) {
  return std::any_of(host.devices.begin(), host.devices.end(), [](const std::string& device) {
    return device.starts_with("rocep1s0f") || device.starts_with("roceP2p1s0f");
  });
}

std::set<std::string> domains_of(const NcclHost& host) {
  std::set<std::string> domains;
  for (const std::string& device : host.devices) {
    if (const auto domain = pci_domain(host, device)) domains.insert(*domain);
  }
  return domains;
}

std::set<std::string> busy_devices(const NcclHost& host) {
  std::set<std::string> busy;
  for (const auto& [way, count] : host.channels) {
    if (!is_rdma_way(way)) continue;
    const std::vector<std::string> devices = devices_behind(host, way);
    busy.insert(devices.begin(), devices.end());
    if (devices.empty()) busy.insert(way);
  }
  return busy;
}

HalvesUsed halves_used(const NcclHost& host) {
  if (!has_spark_names(host)) return HalvesUsed::kUntold;
  const std::set<std::string> busy = busy_domains(host);
  return (busy.empty() ? domains_of(host) : busy).size() > 1 ? HalvesUsed::kBoth : HalvesUsed::kOne;
}

std::string channel_words(const NcclHost& host) {
  std::vector<std::string> parts;
  for (const auto& [way, count] : host.channels) parts.push_back(fmt::format("{} by {}", count, way));
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::string device_name(const NcclHost& host, int device) {
  const auto index = static_cast<std::size_t>(device);
  return index < host.devices.size() ? host.devices[index] : fmt::format("device {}", device);
}

}  // namespace yoke

#include "yoke/check/nccl_log_transports.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>

namespace yoke::check {
namespace {

bool is_net_way(std::string_view way) { return way.starts_with("NET/"); }
bool is_rdma_way(std::string_view way) { return way.starts_with("NET/IB"); }

// "NET/IB/4", "NET/IBext_v10/0": what the number stands for; empty where the log does not say.
std::vector<std::string> devices_behind(const spec::NcclHost& host, std::string_view way) {
  const std::string_view digits = way.substr(way.rfind('/') + 1);
  int number = -1;
  const auto [rest, failure] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (failure != std::errc{} || rest != digits.data() + digits.size() || number < 0) return {};
  if (const auto found = host.virtual_devices.find(number); found != host.virtual_devices.end()) return found->second;
  const auto index = static_cast<std::size_t>(number);
  return index < host.devices.size() ? std::vector{host.devices[index]} : std::vector<std::string>();
}

// Of the devices that carry channels; nothing where one of them is in no domain that the log tells.
std::set<std::string> busy_domains(const spec::NcclHost& host) {
  std::set<std::string> domains;
  for (const std::string& device : busy_devices(host)) {
    const auto domain = pci_domain(host, device);
    if (!domain) return {};
    domains.insert(*domain);
  }
  return domains;
}

// One rank, or ranks of one machine that reach each other without a network. A log of one host alone may be that of
// some ranks of a larger job; releases from 2.20 on say of how many nodes it is.
bool stays_inside(const spec::NcclLog& log) {
  const auto leaves = [](const auto& host) { return net_channels(host.second) > 0; };
  if (std::any_of(log.hosts.begin(), log.hosts.end(), leaves)) return false;
  if (log.ranks == 1) return true;
  if (log.nodes) return log.nodes == 1;
  if (log.hosts.size() != 1) return false;
  const spec::NcclHost& host = log.hosts.begin()->second;
  return !host.channels.empty() || (log.ranks && host.ranks.size() == static_cast<std::size_t>(*log.ranks));
}

}  // namespace

std::set<std::string> networks_used(const spec::NcclHost& host) {
  // Releases before 2.5 say no "Using network": what they found is what they use.
  if (net_channels(host) == 0 && host.networks.empty() && host.no_device && !host.socket_interfaces.empty()) {
    return {"Socket"};
  }
  if (net_channels(host) == 0) return host.networks;
  std::set<std::string> networks;  // of "NET/IB/0" what is between the slashes
  for (const auto& [way, count] : host.channels) {
    if (is_net_way(way)) networks.insert(way.substr(4, way.find('/', 4) - 4));
  }
  return networks;
}

bool uses_rdma(const spec::NcclHost& host) {
  const std::set<std::string> networks = networks_used(host);
  return std::any_of(networks.begin(), networks.end(),
                     [](const std::string& network) { return network.starts_with("IB"); });  // also "IBext_v10"
}

Transport transport_of(const spec::NcclLog& log, const spec::NcclHost& host) {
  if (stays_inside(log)) return Transport::kInside;
  const std::set<std::string> networks = networks_used(host);
  // Inside one machine no network is used, whatever was chosen: a second host or a channel must show that one is.
  const bool leaves = log.hosts.size() > 1 || log.nodes.value_or(1) > 1 || net_channels(host) > 0;
  if (networks.contains("Socket")) return leaves ? Transport::kTcp : Transport::kTcpIfAny;
  if (uses_rdma(host)) return Transport::kRdma;
  if (!networks.empty()) {
    const std::string provider = host.provider.value_or("");
    return provider.starts_with("tcp") || provider.starts_with("sockets") ? Transport::kTcp : Transport::kPlugin;
  }
  return host.devices.empty() ? Transport::kUnknown : Transport::kRdma;
}

int net_channels(const spec::NcclHost& host) {
  int count = 0;
  for (const auto& [way, n] : host.channels) count += is_net_way(way) ? n : 0;
  return count;
}

bool has_spark_names(const spec::NcclHost& host) {
  if (host.gpu_direct_enabled || host.channels_gpu_direct > 0) return false;
  return std::any_of(host.devices.begin(), host.devices.end(), [](const std::string& device) {
    return device.starts_with("rocep1s0f") || device.starts_with("roceP2p1s0f");
  });
}

std::set<std::string> domains_of(const spec::NcclHost& host) {
  std::set<std::string> domains;
  for (const std::string& device : host.devices) {
    if (const auto domain = pci_domain(host, device)) domains.insert(*domain);
  }
  return domains;
}

std::set<std::string> busy_devices(const spec::NcclHost& host) {
  std::set<std::string> busy;
  for (const auto& [way, count] : host.channels) {
    if (!is_rdma_way(way)) continue;
    const std::vector<std::string> devices = devices_behind(host, way);
    busy.insert(devices.begin(), devices.end());
    if (devices.empty()) busy.insert(way);
  }
  return busy;
}

RailsUsed rails_used(const spec::NcclHost& host) {
  if (!has_spark_names(host)) return RailsUsed::kUnknown;
  const std::set<std::string> busy = busy_domains(host);
  return (busy.empty() ? domains_of(host) : busy).size() > 1 ? RailsUsed::kBoth : RailsUsed::kOne;
}

std::string channel_words(const spec::NcclHost& host) {
  std::vector<std::string> parts;
  for (const auto& [way, count] : host.channels) parts.push_back(fmt::format("{} by {}", count, way));
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::string device_name(const spec::NcclHost& host, int device) {
  const auto index = static_cast<std::size_t>(device);
  return index < host.devices.size() ? host.devices[index] : fmt::format("device {}", device);
}

}  // namespace yoke::check

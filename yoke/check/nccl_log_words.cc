// What an NCCL log means, in words, as findings and as JSON.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "yoke/check/nccl_log.h"

namespace yoke {
namespace {

bool uses_tcp(const NcclHost& host) {
  const bool by_channel = std::any_of(host.channels.begin(), host.channels.end(),
                                      [](const auto& way) { return way.first.starts_with("NET/Socket"); });
  return by_channel || host.networks.contains("Socket");
}

bool uses_rdma(const NcclHost& host) {
  const bool by_channel = std::any_of(host.channels.begin(), host.channels.end(), [](const auto& way) {
    return way.first.starts_with("NET/") && !way.first.starts_with("NET/Socket");
  });
  return by_channel || host.networks.contains("IB") || (!host.devices.empty() && !uses_tcp(host));
}

int channels_of(const NcclHost& host, std::size_t device) {
  const auto found = host.channels.find(fmt::format("NET/IB/{}", device));
  return found == host.channels.end() ? 0 : found->second;
}

int net_channels(const NcclHost& host) {
  int count = 0;
  for (const auto& [way, n] : host.channels) count += way.starts_with("NET/") ? n : 0;
  return count;
}

std::set<std::string> domains_of(const NcclHost& host) {
  std::set<std::string> domains;
  for (const std::string& device : host.devices) {
    if (const auto domain = pci_domain(host, device)) domains.insert(*domain);
  }
  return domains;
}

// A GB10's ports by their names: other machines' NICs are whole.
bool has_spark_names(const NcclHost& host) {
  return std::any_of(host.devices.begin(), host.devices.end(), [](const std::string& device) {
    return device.starts_with("rocep1s0f") || device.starts_with("roceP2p1s0f");
  });
}

// How many halves carry channels, where the log shows channels at all.
std::size_t busy_devices(const NcclHost& host) {
  std::size_t busy = 0;
  for (std::size_t i = 0; i < host.devices.size(); ++i) busy += channels_of(host, i) > 0 ? 1U : 0U;
  return busy;
}

std::string transport_words(const NcclHost& host) {
  if (uses_tcp(host) && !uses_rdma(host)) {
    return fmt::format("TCP (NET/Socket) over {}: no RDMA",
                       host.socket_interfaces.empty() ? "an interface that it does not name"
                                                      : fmt::format("{}", fmt::join(host.socket_interfaces, ", ")));
  }
  if (uses_rdma(host)) {
    std::string words = fmt::format("RDMA over {}", fmt::join(host.devices, " and "));
    if (has_spark_names(host)) words += domains_of(host).size() > 1 ? " (both halves)" : " (one half only)";
    return words;
  }
  std::vector<std::string> ways;
  for (const auto& [way, count] : host.channels) ways.push_back(way);
  return ways.empty() ? "not told" : fmt::format("{} (inside one machine)", fmt::join(ways, ", "));
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

std::string gid_words(const NcclHost& host) {
  std::vector<std::string> parts;
  for (const NcclQueue& queue : host.queues) {
    const std::string kind = queue.ipv4 ? to_string(*queue.ipv4) : queue.link_local ? "link-local" : "other";
    std::string part = fmt::format("{} index {} ({})", device_name(host, queue.device), queue.gid_index, kind);
    if (std::find(parts.begin(), parts.end(), part) == parts.end()) parts.push_back(std::move(part));
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::string mtu_words(const NcclHost& host) {
  std::set<int> sizes;
  for (const NcclQueue& queue : host.queues) sizes.insert(queue.mtu);
  std::vector<std::string> parts;
  for (const int size : sizes) {
    parts.push_back(fmt::format("{} bytes{}", size,
                                size == 4096   ? " (Ethernet MTU 9000)"
                                : size == 1024 ? " (Ethernet MTU 1500)"
                                               : ""));
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::string gpu_direct_words(const NcclHost& host) {
  if (host.channels_gpu_direct > 0) return fmt::format("on ({} channels)", host.channels_gpu_direct);
  if (host.gpu_direct_disabled.empty()) return "";
  return has_spark_names(host) ? "off, as always on a GB10" : "off";
}

void add_line(std::string& out, std::string_view name, const std::string& words) {
  if (!words.empty()) out += fmt::format("  {:<12} {}\n", name, words);
}

using Judge = void (*)(const NcclLog&, const std::string&, const NcclHost&, std::vector<Finding>&);

void judge_tcp(const NcclLog&, const std::string& name, const NcclHost& host, std::vector<Finding>& findings) {
  if (!uses_tcp(host) || uses_rdma(host)) return;
  findings.push_back(
      {.rule = "nccl-tcp",
       .severity = Severity::kFault,
       .node = name,
       .subject = host.socket_interfaces.empty() ? std::optional<std::string>() : host.socket_interfaces.front(),
       .what = fmt::format("NCCL on {} talks TCP, not RDMA", name),
       .evidence = host.no_device ? "NET/IB : No device found; Using network Socket" : "Using network Socket",
       .consequence = "a fraction of the rate, and several times the latency of every all-reduce",
       .fix = "in a container: --device=/dev/infiniband --cap-add=IPC_LOCK --ulimit memlock=-1; else look "
              "at NCCL_IB_HCA, NCCL_IB_DISABLE and at a plugin that comes before; NCCL_NET=IB makes this "
              "an error"});
}

void judge_halves(const NcclLog& log, const std::string& name, const NcclHost& host, std::vector<Finding>& findings) {
  if (!uses_rdma(host) || !has_spark_names(host) || log.route_overrides > 0) return;
  const bool one_device = domains_of(host).size() == 1;
  const bool one_busy = net_channels(host) > 0 && host.devices.size() > 1 && busy_devices(host) == 1;
  if (!one_device && !one_busy) return;
  findings.push_back({.rule = "nccl-one-half",
                      .severity = Severity::kWarning,
                      .node = name,
                      .subject = host.devices.front(),
                      .what = fmt::format("NCCL on {} uses one half of the port", name),
                      .evidence = one_device ? fmt::format("NET/IB : Using {}", fmt::join(host.devices, ", "))
                                             : fmt::format("channels: {}", channel_words(host)),
                      .consequence = "about 12 instead of 22 GB/s",
                      .fix = one_device
                                 ? "name both halves: NCCL_IB_HCA==rocep1s0f0,roceP2p1s0f0 (f1 for port 1); are "
                                   "both up ('yoke check')?"
                                 : "both halves are known, but every channel takes one: are both addressed, each "
                                   "in a network of its own?"});
}

void judge_gids(const NcclLog&, const std::string& name, const NcclHost& host, std::vector<Finding>& findings) {
  for (const NcclQueue& queue : host.queues) {
    if (!queue.link_local) continue;
    findings.push_back(
        {.rule = "nccl-gid-link-local",
         .severity = Severity::kWarning,
         .node = name,
         .subject = device_name(host, queue.device),
         .what = fmt::format("NCCL on {} uses a link-local GID on {}", name, device_name(host, queue.device)),
         .evidence = fmt::format("GID index {}, fe80::, RoCE v1", queue.gid_index),
         .consequence = "this half has no IPv4 address. It works over a cable, but no router passes it, and "
                        "TCP cannot use the half",
         .fix = "'yoke link setup' gives each half an address"});
    return;
  }
}

void judge_mtu(const NcclLog&, const std::string& name, const NcclHost& host, std::vector<Finding>& findings) {
  const auto small = std::find_if(host.queues.begin(), host.queues.end(),
                                  [](const NcclQueue& queue) { return queue.mtu > 0 && queue.mtu < 4096; });
  if (small == host.queues.end()) return;
  findings.push_back({.rule = "nccl-mtu-small",
                      .severity = Severity::kWarning,
                      .node = name,
                      .subject = device_name(host, small->device),
                      .what = fmt::format("RDMA packets on {} carry {} bytes", name, small->mtu),
                      .evidence = fmt::format("{} of 4096: the Ethernet MTU is 1500", small->mtu),
                      .consequence = "some percent of the rate",
                      .fix = "MTU 9000 at both ends of each half: 'yoke link setup'"});
}

Finding ring_collapse(const NcclLog& log) {
  std::vector<std::string> signs;
  if (log.listeners_capped) signs.emplace_back("fewer listeners advertised than there are paths");
  if (log.tree_failed) signs.emplace_back("ncclTransportTreeConnect failed");
  if (log.route_overrides > 0) signs.push_back(fmt::format("{} routes overridden", log.route_overrides));
  return {.rule = "nccl-ring-collapse",
          .severity = Severity::kFault,
          .node = {},
          .subject = {},
          .what = "NCCL does not use all cables of the ring",
          .evidence = fmt::format("{}", fmt::join(signs, "; ")),
          .consequence = "nodes that are not neighbours are reached by the wrong port, or the job does not start",
          .fix =
              "NCCL_ALGO=Ring, NCCL_IB_MERGE_NICS=0, NCCL_CROSS_NIC=1, NCCL_NET_PLUGIN=none; on a ring of four every "
              "pair must have a route ('yoke check')"};
}

void judge_connections(const NcclLog& log, std::vector<Finding>& findings) {
  for (const std::string& warning : log.warnings) {
    const bool setup = warning.find("ibv_modify_qp") != std::string::npos;
    const bool retry =
        warning.find("IBV_WC_RETRY_EXC_ERR") != std::string::npos || warning.find("error 12") != std::string::npos;
    if (!setup && !retry) continue;
    findings.push_back({.rule = "nccl-connect",
                        .severity = Severity::kFault,
                        .node = {},
                        .subject = {},
                        .what = setup ? "RDMA connections could not be made" : "RDMA packets were not answered",
                        .evidence = warning,
                        .consequence = "the job ends, or hangs",
                        .fix = setup ? "a GID index that is pinned and stale, or ends in different networks: unset "
                                       "NCCL_IB_GID_INDEX and run 'yoke check'"
                                     : "the ends have different MTUs, or a cable is bad: 'yoke check'"});
    return;
  }
}

}  // namespace

std::string describe(const NcclLog& log) {
  std::string out = fmt::format("NCCL {}{}{}\n", log.version.value_or("of an untold version"),
                                log.ranks ? fmt::format(", {} ranks", *log.ranks) : "",
                                log.complete ? "" : ", no communicator came to be");
  for (const auto& [name, host] : log.hosts) {
    out += name + "\n";
    add_line(out, "transport", transport_words(host));
    add_line(out, "channels", channel_words(host));
    add_line(out, "meets by", host.bootstrap.value_or(""));
    for (const NcclMerged& merged : host.merged) {
      add_line(out, "merged",
               fmt::format("{} as one device: the ports of one PCI domain, not the halves of a port", merged.name));
    }
    add_line(out, "packets", mtu_words(host));
    add_line(out, "GIDs", gid_words(host));
    add_line(out, "GPUDirect", gpu_direct_words(host));
  }
  if (log.plugin) out += fmt::format("plugin: {}\n", *log.plugin);
  return out;
}

std::vector<Finding> judge(const NcclLog& log) {
  std::vector<Finding> findings;
  for (const auto& [name, host] : log.hosts) {
    for (const Judge judge : {judge_tcp, judge_halves, judge_gids, judge_mtu}) judge(log, name, host, findings);
  }
  // Overriding routes is how a ring works; it has collapsed where paths are missing or only one device is left.
  const bool one_left = std::any_of(log.hosts.begin(), log.hosts.end(), [](const auto& host) {
    return host.second.devices.size() > 1 && net_channels(host.second) > 0 && busy_devices(host.second) == 1;
  });
  if (log.listeners_capped || log.tree_failed || (log.route_overrides > 0 && one_left)) {
    findings.push_back(ring_collapse(log));
  }
  judge_connections(log, findings);
  std::stable_sort(findings.begin(), findings.end(),
                   [](const Finding& a, const Finding& b) { return a.severity > b.severity; });
  return findings;
}

Document to_json(const NcclLog& log) {
  const auto texts = [](const auto& values) {
    Document list = Document::list();
    for (const auto& value : values) list.items.push_back(Document::string(value));
    return list;
  };
  Document hosts = Document::list();
  for (const auto& [name, host] : log.hosts) {
    Document channels = Document::map();
    for (const auto& [way, count] : host.channels) channels.add(way, Document::number(std::int64_t{count}));
    Document document = Document::map({{"host", Document::string(name)},
                                       {"transport", Document::string(transport_words(host))},
                                       {"devices", texts(host.devices)},
                                       {"socket_interfaces", texts(host.socket_interfaces)},
                                       {"channels", std::move(channels)},
                                       {"mtu", Document::string(mtu_words(host))},
                                       {"gids", Document::string(gid_words(host))},
                                       {"gpu_direct", Document::boolean(host.channels_gpu_direct > 0)}});
    if (host.bootstrap) document.add("bootstrap", Document::string(*host.bootstrap));
    hosts.items.push_back(std::move(document));
  }
  Document document = Document::map({{"hosts", std::move(hosts)}, {"complete", Document::boolean(log.complete)}});
  if (log.version) document.add("version", Document::string(*log.version));
  if (log.ranks) document.add("ranks", Document::number(std::int64_t{*log.ranks}));
  document.add("warnings", texts(log.warnings));
  return document;
}

}  // namespace yoke

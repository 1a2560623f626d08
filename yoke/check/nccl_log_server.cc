// What is wrong with the way in which the ranks of servers talk: eight GPUs with NVLink inside, a NIC for each between.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "yoke/check/nccl_log_transports.h"
#include "yoke/check/rules.h"
#include "yoke/spec/hardware.h"

namespace yoke::check {
namespace {

constexpr std::size_t kServerRanks = 4;  // on one host; machines with fewer GPUs may be made in any way

bool is_server(const spec::NcclHost& host) { return host.ranks.size() >= kServerRanks && !has_spark_names(host); }

// By nccl-tests' own table, which names the GPUs.
const spec::Hardware* server_in(const spec::NcclLog& log) {
  for (const spec::Hardware& hardware : spec::hardware_catalogue()) {
    if (hardware.nvlinks > 0 && log.tests.gpu.starts_with(hardware.gpu)) return &hardware;
  }
  return nullptr;
}

std::string log_line(const spec::NcclHost& host, const std::string& kind, std::string otherwise) {
  const auto found = host.lines.find(kind);
  return found == host.lines.end() ? std::move(otherwise) : found->second;
}

struct InsideWays {
  int p2p = 0, other = 0;
  std::string way;  // the first that is not P2P
};

// Channels between ranks of this host.
InsideWays inside_ways(const spec::NcclHost& host) {
  InsideWays ways;
  for (const spec::NcclChannel& link : host.links) {
    if (!host.ranks.contains(link.from) || !host.ranks.contains(link.to)) continue;
    if (link.way.starts_with("P2P")) {
      ++ways.p2p;
    } else {
      if (ways.other == 0) ways.way = link.way;
      ++ways.other;
    }
  }
  return ways;
}

int ib_channels(const spec::NcclHost& host) {
  int count = 0;
  for (const auto& [way, channels] : host.channels) {
    if (way.starts_with("NET/IB")) count += channels;
  }
  return count;
}

// How many channels the ranks of a host have: what they say so, else how many rings or trees they list.
struct ChannelCounts {
  std::string kind;  // of the line that says it
  std::set<int> values;
  int most() const { return values.empty() ? 0 : *values.rbegin(); }
};
ChannelCounts channel_counts(const spec::NcclHost& host) {
  if (!host.coll_channels.empty()) return {"coll-channels", host.coll_channels};
  if (!host.tree_counts.empty()) return {"trees", host.tree_counts};
  return {"rings", host.ring_counts};
}

// Which communicator a count is of the log does not say: where a rank tells more than one, they may differ.
bool has_one_communicator(const spec::NcclLog& log) {
  return std::ranges::all_of(log.hosts, [](const auto& entry) {
    const spec::NcclHost& host = entry.second;
    return static_cast<std::size_t>(std::max(host.coll_lines, host.tree_lines)) <= host.ranks.size();
  });
}

}  // namespace

AdviceList find_nccl_without_p2p(const ClusterView& view) {
  AdviceList list;
  for (const auto& [name, host] : view.facts.log->hosts) {
    if (!is_server(host)) continue;
    const InsideWays ways = inside_ways(host);
    // PCIe servers use P2P between GPUs below one switch and host memory between sockets: none at all is a fault.
    const bool nvlink = server_in(*view.facts.log) || host.nvls == true;
    if (ways.other == 0 || (ways.p2p > 0 && !nvlink)) continue;
    const bool network = ways.way.starts_with("NET");
    const auto level = host.set.find("NCCL_P2P_DISABLE");
    list.push_back({.node = name,
                    .subject = ways.way,
                    .what = fmt::format("GPUs of {} talk to each other {}, not by NVLink", name,
                                        network ? "over the network" : "through host memory"),
                    .evidence = log_line(host, ways.way, fmt::format("{} channels by {}", ways.other, ways.way)),
                    .consequence = "an all-reduce inside the server takes ten times as long",
                    .fix = level != host.set.end()
                               ? "unset NCCL_P2P_DISABLE"
                               : "unset NCCL_P2P_DISABLE and NCCL_P2P_LEVEL; containers need --ipc=host (or a large "
                                 "--shm-size) and all GPUs of the job visible to each rank; 'nvidia-smi topo -m' must "
                                 "say NV18, and the fabric manager must run ('yoke check')"});
  }
  return list;
}

AdviceList find_nccl_without_nvls(const ClusterView& view) {
  AdviceList list;
  const spec::NcclLog& log = *view.facts.log;
  const bool elsewhere = std::ranges::any_of(log.hosts, [](const auto& host) { return host.second.nvls == true; });
  for (const auto& [name, host] : log.hosts) {
    if (!is_server(host) || host.nvls != false || !(server_in(log) || elsewhere)) continue;
    list.push_back({.node = name,
                    .what = fmt::format("NCCL on {} does not use NVLink SHARP (NVLS)", name),
                    .evidence = log_line(host, "nvls", "NVLS multicast support is not available"),
                    .consequence = "large all-reduces inside the server reach about 360 instead of 480 GB/s on H100",
                    .fix =
                        "the fabric manager must run in the driver's version and NVML's fabric state say Completed "
                        "('yoke check'); in containers NVIDIA_DRIVER_CAPABILITIES=all, or at least the IMEX channel; "
                        "NCCL_NVLS_ENABLE must not be 0"});
  }
  return list;
}

AdviceList find_nccl_without_gpu_direct(const ClusterView& view) {
  AdviceList list;
  const spec::NcclLog& log = *view.facts.log;
  for (const auto& [name, host] : log.hosts) {
    if (!is_server(host) || transport_of(log, host) != Transport::kRdma) continue;
    const int channels = ib_channels(host);
    const bool off =
        channels > 0 ? host.channels_gpu_direct == 0 : !host.gpu_direct_disabled.empty() && !host.gpu_direct_enabled;
    if (!off) continue;
    std::string evidence = host.lines.contains("gpu-direct") ? host.lines.at("gpu-direct") : "";
    for (const auto& [way, count] : host.channels) {
      if (evidence.empty() && way.starts_with("NET/IB")) evidence = log_line(host, way, "channels by " + way);
    }
    list.push_back({.node = name,
                    .subject = "GPUDirect RDMA",
                    .what = fmt::format("NCCL on {} copies through host memory: GPUDirect RDMA is off", name),
                    .evidence = evidence,
                    .consequence = "about half of the rate between nodes, and more load on the processors",
                    .fix = "'modprobe nvidia-peermem' on the machine, or the open kernel module with Linux 5.12 for "
                           "DMA-BUF; unset NCCL_NET_GDR_LEVEL and NCCL_DMABUF_ENABLE; ACS and the IOMMU off ('yoke "
                           "check')"});
  }
  return list;
}

AdviceList find_nccl_few_nics(const ClusterView& view) {
  AdviceList list;
  const spec::NcclLog& log = *view.facts.log;
  std::size_t most = 0;
  for (const auto& [name, host] : log.hosts) most = std::max(most, host.devices.size());
  for (const auto& [name, host] : log.hosts) {
    const std::size_t gpus = host.ranks.size(), nics = host.devices.size();
    if (!is_server(host) || nics == 0 || nics >= gpus) continue;
    // One NIC for two GPUs is how some servers are made; another server of the job shows what this one should have.
    const bool made_so = gpus % nics == 0 && gpus / nics <= 2 && nics == most;
    if (made_so) continue;
    const auto pinned = host.set.find("NCCL_IB_HCA");
    list.push_back(
        {.node = name,
         .subject = nics == 1 ? host.devices.front() : "NICs",
         .what = fmt::format("NCCL on {} uses {} NIC{} for {} GPUs", name, nics, nics == 1 ? "" : "s", gpus),
         .evidence = log_line(host, "devices", fmt::format("devices {}", fmt::join(host.devices, ", "))),
         .consequence = "between nodes these GPUs share the NICs: at best that share of the rate",
         .fix = pinned != host.set.end()
                    ? fmt::format("NCCL_IB_HCA={} leaves the others out: name all, or unset it", pinned->second)
                    : "see which NICs are missing or down ('yoke check'), and whether the container has all of "
                      "/dev/infiniband"});
  }
  return list;
}

AdviceList find_nccl_one_nic(const ClusterView& view) {
  AdviceList list;
  const spec::NcclLog& log = *view.facts.log;
  for (const auto& [name, host] : log.hosts) {
    if (!is_server(host) || transport_of(log, host) != Transport::kRdma || host.devices.size() < 2) continue;
    const std::set<std::string> busy = busy_devices(host);
    // Fewer channels than ranks is a part of the log: what is not shown may take the other NICs.
    if (busy.size() != 1 || net_channels(host) < static_cast<int>(host.ranks.size())) continue;
    list.push_back({.node = name,
                    .subject = *busy.begin(),
                    .what = fmt::format("all channels of {} between nodes take {}, one of {} NICs", name, *busy.begin(),
                                        host.devices.size()),
                    .evidence = fmt::format("{}; channels: {}", log_line(host, "devices", ""), channel_words(host)),
                    .consequence = "the other rails carry nothing",
                    .fix = "NCCL did not see which NIC is near which GPU: in virtual machines give it the topology "
                           "(NCCL_TOPO_FILE); unset NCCL_CROSS_NIC, NCCL_MAX_NCHANNELS and NCCL_GRAPH_FILE"});
  }
  return list;
}

AdviceList find_nccl_few_channels(const ClusterView& view) {
  AdviceList list;
  const spec::NcclLog& log = *view.facts.log;
  const bool one = has_one_communicator(log);
  int most_of_all = 0;
  for (const auto& [name, host] : log.hosts) most_of_all = std::max(most_of_all, channel_counts(host).most());
  for (const auto& [name, host] : log.hosts) {
    const ChannelCounts counts = channel_counts(host);
    if (!is_server(host) || counts.values.empty()) continue;
    // Of several communicators the largest count is that of one which uses all GPUs of the machine, if there is such.
    const bool few = log.nodes.value_or(static_cast<int>(log.hosts.size())) > 1 &&
                     host.devices.size() >= kServerRanks && counts.most() < static_cast<int>(host.devices.size());
    const int least = *counts.values.begin();
    const bool differs = !few && one && least < most_of_all;
    if (!few && !differs) continue;
    list.push_back(
        {.node = name,
         .subject = "channels",
         .what = few ? fmt::format("NCCL on {} has {} channels for {} NICs", name, counts.most(), host.devices.size())
                     : fmt::format("ranks of {} have {} channels, others {}", name, least, most_of_all),
         .evidence = log_line(host, counts.kind, ""),
         .consequence = few ? "rings and trees are one for each channel: some NICs carry nothing"
                            : "ranks wait for each other for ever",
         .fix = "unset NCCL_MAX_NCHANNELS, NCCL_MIN_NCHANNELS, NCCL_MAX_CTAS and NCCL_ALGO, and give all "
                "ranks the same environment"});
  }
  return list;
}

AdviceList find_nccl_missing_plugins(const ClusterView& view) {
  AdviceList list;
  for (const auto& [name, host] : view.facts.log->hosts) {
    const auto meant = host.set.find("NCCL_NET_PLUGIN");
    const auto network = host.set.find("NCCL_NET");
    const bool plugin = meant != host.set.end() && meant->second != "none" && !meant->second.empty();
    const bool other = network != host.set.end() && network->second != "IB" && network->second != "Socket";
    if (!host.plugin_failure || (!plugin && !other)) continue;
    list.push_back({.node = name,
                    .subject = plugin ? meant->second : network->second,
                    .what = fmt::format("the network plugin {} was asked for on {} and is not loaded",
                                        plugin ? meant->second : network->second, name),
                    .evidence = log_line(host, "plugin", *host.plugin_failure),
                    .consequence = "NCCL uses its own network instead, or the job does not start",
                    .fix = fmt::format("put the folder of {}.so into LD_LIBRARY_PATH of every rank, or unset {}",
                                       *host.plugin_failure, plugin ? "NCCL_NET_PLUGIN" : "NCCL_NET")});
  }
  return list;
}

}  // namespace yoke::check

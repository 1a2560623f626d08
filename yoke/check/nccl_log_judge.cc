// What is wrong with the way in which the ranks talk.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "yoke/check/nccl_log.h"
#include "yoke/check/nccl_log_ways.h"

namespace yoke {
namespace {

using Judge = void (*)(const NcclLog&, const std::string&, const NcclHost&, std::vector<Finding>&);

// A plugin that was made to talk TCP is not mended by what mends NCCL's own fall-back.
bool is_by_plugin(const NcclHost& host) { return !networks_used(host).contains("Socket"); }

std::string tcp_evidence(const NcclHost& host) {
  if (is_by_plugin(host)) {
    return fmt::format("Using network {}; its provider is {}", fmt::join(networks_used(host), ", "), *host.provider);
  }
  return host.no_device ? "NET/IB : No device found; Using network Socket" : "Using network Socket";
}

void judge_tcp(const NcclLog& log, const std::string& name, const NcclHost& host, std::vector<Finding>& findings) {
  if (transport_of(log, host) != Transport::kTcp) return;
  findings.push_back(
      {.rule = "nccl-tcp",
       .severity = Severity::kFault,
       .node = name,
       .subject = host.socket_interfaces.empty() ? std::optional<std::string>() : host.socket_interfaces.front(),
       .what = uses_rdma(host) ? fmt::format("some ranks on {} talk TCP, not RDMA", name)
                               : fmt::format("NCCL on {} talks TCP, not RDMA", name),
       .evidence = tcp_evidence(host),
       .consequence = "a fraction of the rate, and several times the latency of every all-reduce",
       .fix = is_by_plugin(host)
                  ? "a provider that does RDMA (FI_PROVIDER=efa on EC2, verbs elsewhere), or no plugin: NCCL_NET=IB"
                  : "in a container: --device=/dev/infiniband --cap-add=IPC_LOCK --ulimit memlock=-1; else look "
                    "at NCCL_IB_HCA, NCCL_IB_DISABLE and at a plugin that comes before; NCCL_NET=IB makes this "
                    "an error"});
}

void judge_halves(const NcclLog& log, const std::string& name, const NcclHost& host, std::vector<Finding>& findings) {
  if (transport_of(log, host) != Transport::kRdma || halves_used(host) != HalvesUsed::kOne || log.route_overrides > 0)
    return;
  const bool one_known = domains_of(host).size() == 1;
  findings.push_back({.rule = "nccl-one-half",
                      .severity = Severity::kWarning,
                      .node = name,
                      .subject = one_known ? host.devices.front() : *busy_devices(host).begin(),
                      .what = fmt::format("NCCL on {} uses one half of the port", name),
                      .evidence = one_known ? fmt::format("NET/IB : Using {}", fmt::join(host.devices, ", "))
                                            : fmt::format("channels: {}, all on {}", channel_words(host),
                                                          fmt::join(busy_devices(host), " and ")),
                      .consequence = "about 12 instead of 22 GB/s",
                      .fix = one_known ? "name both halves: NCCL_IB_HCA==rocep1s0f0,roceP2p1s0f0 (f1 for port 1); are "
                                         "both up ('yoke check')?"
                                       : "both halves are known, but every channel takes one: are both addressed, each "
                                         "in a network of its own ('yoke check')? Then NCCL_IB_MERGE_NICS=0, and at "
                                         "least two channels (NCCL_MIN_NCHANNELS=2)"});
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
         .evidence = fmt::format("GID index {}, fe80::{}", queue.gid_index, queue.gid_index == 0 ? ", RoCE v1" : ""),
         .consequence = "this half has no IPv4 address, or NCCL was not told to use it. It works over a cable, but no "
                        "router passes it, and without an address TCP cannot use the half",
         .fix = "'yoke link setup' gives each half an address. NCCL before 2.21 takes GID 0 even so: a newer one, or "
                "NCCL_IB_GID_INDEX ('yoke probe' shows which)"});
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
  for (const auto& [host, warning] : log.warnings) {
    const auto has = [&warning = warning](std::string_view text) { return warning.find(text) != std::string::npos; };
    const bool setup = has("ibv_modify_qp");
    const bool retry = has("IBV_WC_RETRY_EXC_ERR") || has("error 12,") || has("status=12 ");
    if (!setup && !retry) continue;
    findings.push_back({.rule = "nccl-connect",
                        .severity = Severity::kFault,
                        .node = host,
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

std::vector<Finding> judge(const NcclLog& log) {
  std::vector<Finding> findings;
  for (const auto& [name, host] : log.hosts) {
    for (const Judge judge : {judge_tcp, judge_halves, judge_gids, judge_mtu}) judge(log, name, host, findings);
  }
  // Overriding routes is how a ring works; it has collapsed where paths are missing or only one device is left.
  const bool one_left = std::any_of(log.hosts.begin(), log.hosts.end(), [](const auto& host) {
    return host.second.devices.size() > 1 && net_channels(host.second) > 0 && busy_devices(host.second).size() == 1;
  });
  if (log.listeners_capped || log.tree_failed || (log.route_overrides > 0 && one_left)) {
    findings.push_back(ring_collapse(log));
  }
  judge_connections(log, findings);
  // Both of these end a job, and say why.
  const bool explained = std::any_of(findings.begin(), findings.end(), [](const Finding& finding) {
    return finding.rule == "nccl-connect" || finding.rule == "nccl-ring-collapse";
  });
  if (auto failure = find_failure(log); failure && !explained) findings.insert(findings.begin(), std::move(*failure));
  std::stable_sort(findings.begin(), findings.end(),
                   [](const Finding& a, const Finding& b) { return a.severity > b.severity; });
  return findings;
}

}  // namespace yoke

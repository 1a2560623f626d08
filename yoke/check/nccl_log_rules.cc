// What is wrong with the way in which the ranks talk.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "yoke/check/nccl_log_transports.h"
#include "yoke/check/rules.h"
#include "yoke/spec/hardware.h"
#include "yoke/spec/measurement.h"

namespace yoke::check {
namespace {

using namespace literals;

constexpr Bytes kLargeMessage = 64_MiB;
constexpr Bytes kSmallMessage = 1_MiB;

// The line of a kind, as it stands in the log; where the log was made by hand, what it would say.
std::string line_or(const spec::NcclHost& host, const std::string& kind, std::string otherwise) {
  const auto found = host.lines.find(kind);
  return found == host.lines.end() ? std::move(otherwise) : found->second;
}

// A plugin that was made to talk TCP is not mended by what mends NCCL's own fall-back.
bool is_by_plugin(const spec::NcclHost& host) { return !networks_used(host).contains("Socket"); }

std::string first_channel(const spec::NcclHost& host, std::string_view kind) {
  for (const auto& [way, count] : host.channels) {
    if (way.starts_with(kind)) return line_or(host, way, fmt::format("{} channels by {}", count, way));
  }
  return "";
}

std::string tcp_evidence(const spec::NcclHost& host) {
  if (is_by_plugin(host)) {
    return fmt::format("{}; {}", line_or(host, "network", "a plugin's network"),
                       line_or(host, "provider", "provider " + host.provider.value_or("")));
  }
  std::vector<std::string> lines;
  if (host.no_device) lines.push_back(line_or(host, "no-device", "no RDMA device found"));
  if (const std::string channel = first_channel(host, "NET/Socket"); !channel.empty()) {
    lines.push_back(channel);
  } else {
    lines.push_back(line_or(host, "network", line_or(host, "sockets", "TCP was chosen")));
  }
  return fmt::format("{}", fmt::join(lines, "; "));
}

// Every cause that is known for an error, the likeliest first.
std::string how_to_connect(const spec::NcclLog& log, const spec::NcclWarning& warning) {
  const auto host = log.hosts.find(warning.host);
  const bool many_nics = host != log.hosts.end() && host->second.devices.size() >= 4;
  const bool timed_out =
      warning.text.find("110") != std::string::npos || warning.text.find("timed out") != std::string::npos;
  std::string fix =
      "a GID index that is pinned and stale, or ends in different networks: unset NCCL_IB_GID_INDEX and run 'yoke "
      "check'";
  if (timed_out && many_nics) {
    fix +=
        "; where each NIC reaches only the NIC of the same number on the others (rails), NCCL must not cross them: "
        "NCCL_CROSS_NIC=0, or NCCL 2.29 and later";
  }
  return fix;
}

// NCCL's maintainer lists a missing link, routing of RoCE v2, switch filters and a bad network (NVIDIA/nccl#902, #426);
// three reporters were cured by the GID index.
std::string how_to_be_answered(const spec::NcclLog& log) {
  const bool ran = log.tests.size.has_value();
  return ran ? "it ran before: the ends have different MTUs, a cable or transceiver is bad, or a switch drops "
               "(priority "
               "flow control); then a wrong GID index: 'yoke check'"
             : "a wrong GID index or network first: unset NCCL_IB_GID_INDEX, and see that the ends of each rail are in "
               "one network; then different MTUs, RoCE v2 that is not routed or filtered by a switch, a bad cable: "
               "'yoke check'";
}

bool is_setup_failure(const spec::NcclWarning& warning) {
  return warning.text.find("ibv_modify_qp") != std::string::npos;
}

bool is_unanswered(const spec::NcclWarning& warning) {
  return std::ranges::any_of(std::array<std::string_view, 3>{"IBV_WC_RETRY_EXC_ERR", "error 12,", "status=12 "},
                             [&](std::string_view text) { return warning.text.find(text) != std::string::npos; });
}

// What the nodes' network gives by the catalogue: on a server there is a NIC for each GPU.
std::optional<BytesPerSecond> expected_of(const spec::NcclTestsResult& tests) {
  for (const spec::Hardware& hardware : spec::hardware_catalogue()) {
    if (!tests.gpu.starts_with(hardware.gpu)) continue;
    const int paths = std::max(hardware.gpus, hardware.rails_per_cable);
    return to_bytes_per_second(hardware.rail_rate * static_cast<double>(paths));
  }
  return std::nullopt;
}

}  // namespace

AdviceList find_nccl_tcp(const ClusterView& view) {
  AdviceList list;
  const spec::NcclLog& log = *view.facts.log;
  for (const auto& [name, host] : log.hosts) {
    if (transport_of(log, host) != Transport::kTcp) continue;
    list.push_back(
        {.node = name,
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
  return list;
}

AdviceList find_nccl_one_rail(const ClusterView& view) {
  AdviceList list;
  const spec::NcclLog& log = *view.facts.log;
  for (const auto& [name, host] : log.hosts) {
    const bool one = transport_of(log, host) == Transport::kRdma && rails_used(host) == RailsUsed::kOne;
    if (!one || log.route_overrides > 0) continue;
    const bool one_known = domains_of(host).size() == 1;
    list.push_back({.node = name,
                    .subject = one_known ? host.devices.front() : *busy_devices(host).begin(),
                    .what = fmt::format("NCCL on {} uses one half of the port", name),
                    .evidence = one_known
                                    ? line_or(host, "devices", fmt::format("devices {}", fmt::join(host.devices, ", ")))
                                    : fmt::format("{} (channels: {}, all on {})", first_channel(host, "NET/IB"),
                                                  channel_words(host), fmt::join(busy_devices(host), " and ")),
                    .consequence = "about 12 instead of 22 GB/s",
                    .fix = one_known ? "name both rails: NCCL_IB_HCA==rocep1s0f0,roceP2p1s0f0 (f1 for port 1); are "
                                       "both up ('yoke check')?"
                                     : "both rails are known, but every channel takes one: are both addressed, each "
                                       "in a network of its own ('yoke check')? Then NCCL_IB_MERGE_NICS=0, and at "
                                       "least two channels (NCCL_MIN_NCHANNELS=2)"});
  }
  return list;
}

AdviceList find_nccl_link_local_gids(const ClusterView& view) {
  AdviceList list;
  for (const auto& [name, host] : view.facts.log->hosts) {
    const auto queue = std::ranges::find_if(host.queues, &spec::NcclQueue::link_local);
    if (queue == host.queues.end()) continue;
    const auto line = host.queue_lines.find(*queue);
    list.push_back(
        {.node = name,
         .subject = device_name(host, queue->device),
         .what = fmt::format("NCCL on {} uses a link-local GID on {}", name, device_name(host, queue->device)),
         .evidence = line == host.queue_lines.end() ? fmt::format("GID index {}", queue->gid_index) : line->second,
         .consequence = "this rail has no IPv4 address, or NCCL is not set to use it. It works over a cable, but no "
                        "router passes it, and without an address TCP cannot use the rail",
         .fix = "'yoke link setup' gives each half an address. NCCL before 2.21 takes GID 0 even so: a newer one, or "
                "NCCL_IB_GID_INDEX ('yoke probe' shows which)"});
  }
  return list;
}

AdviceList find_nccl_small_packets(const ClusterView& view) {
  AdviceList list;
  for (const auto& [name, host] : view.facts.log->hosts) {
    const auto small = std::ranges::find_if(
        host.queues, [](const spec::NcclQueue& queue) { return queue.mtu > 0 && queue.mtu < 4096; });
    if (small == host.queues.end()) continue;
    const auto line = host.queue_lines.find(*small);
    list.push_back({.node = name,
                    .subject = device_name(host, small->device),
                    .what = fmt::format("RDMA packets on {} carry {} bytes of 4096", name, small->mtu),
                    .evidence = line == host.queue_lines.end() ? fmt::format("{} bytes", small->mtu) : line->second,
                    .consequence = "some percent of the rate",
                    .fix = "MTU 9000 at both ends of each rail: 'yoke link setup'"});
  }
  return list;
}

AdviceList find_nccl_ring_collapse(const ClusterView& view) {
  const spec::NcclLog& log = *view.facts.log;
  // Overriding routes is how a ring works; it has collapsed where paths are missing or only one device is left.
  const bool one_left = std::any_of(log.hosts.begin(), log.hosts.end(), [](const auto& host) {
    return host.second.devices.size() > 1 && net_channels(host.second) > 0 && busy_devices(host.second).size() == 1;
  });
  if (!log.listeners_capped && !log.tree_failed && !(log.route_overrides > 0 && one_left)) return {};
  std::vector<std::string> signs;
  if (log.listeners_capped) signs.emplace_back("fewer listeners advertised than there are paths");
  if (log.tree_failed) signs.emplace_back("ncclTransportTreeConnect failed");
  if (log.route_overrides > 0) signs.push_back(fmt::format("{} routes overridden", log.route_overrides));
  return {{.what = "NCCL does not use all cables of the ring",
           .evidence = fmt::format("{}", fmt::join(signs, "; ")),
           .consequence = "nodes that are not neighbours are reached by the wrong port, or the job does not start",
           .fix = "NCCL_ALGO=Ring, NCCL_IB_MERGE_NICS=0, NCCL_CROSS_NIC=1, NCCL_NET_PLUGIN=none; on a ring of four "
                  "every pair must have a route ('yoke check')"}};
}

AdviceList find_nccl_failed_connections(const ClusterView& view) {
  const spec::NcclLog& log = *view.facts.log;
  for (const spec::NcclWarning& warning : log.warnings) {
    const bool setup = is_setup_failure(warning);
    if (!setup && !is_unanswered(warning)) continue;
    return {{.node = warning.host,
             .what = setup ? "RDMA connections could not be made" : "RDMA packets were not answered",
             .evidence = warning.text,
             .consequence = "the job ends, or hangs",
             .fix = setup ? how_to_connect(log, warning) : how_to_be_answered(log)}};
  }
  return {};
}

AdviceList find_nccl_cut_logs(const ClusterView& view) {
  const spec::NcclLog& log = *view.facts.log;
  if (log.complete || !log.started || log.error || !log.warnings.empty()) return {};
  return {
      {.what = "the log ends before Init COMPLETE: it was cut here, or the job hung",
       .evidence = log.start_line,
       .consequence = "nothing is known of what came after",
       .fix = fmt::format("give the whole log, of all ranks; where the job still waits, a rank is missing or cannot be "
                          "reached ({}): 'yoke check'",
                          log.ranks ? fmt::format("were all {} ranks started?", *log.ranks) : "were all started?")}};
}

AdviceList find_nccl_slow_results(const ClusterView& view) {
  const spec::NcclTestsResult& tests = view.facts.log->tests;
  const auto expected = expected_of(tests);
  if (!expected || tests.hosts.size() < 2 || (!tests.size && !tests.average)) return {};
  // Small messages are slow by nature, and an average has them too: there only the degraded state is reported.
  const bool large = tests.size && *tests.size >= kLargeMessage;
  const BytesPerSecond reached = tests.size ? tests.bus_bandwidth : *tests.average;
  if (tests.size && *tests.size < kSmallMessage) return {};
  const double share = reached / *expected;
  if (share >= (large ? spec::kMinCollective : spec::kMaxDegraded)) return {};
  return {{.what = fmt::format("nccl-tests reaches {} on the bus between {} machines with {}, {:.0f}% of what their "
                               "network gives",
                               yoke::to_string(reached), tests.hosts.size(), tests.gpu, share * 100),
           .evidence = tests.line,
           .consequence = "all-reduces of large tensors, loading and training are slower in proportion",
           .fix =
               "'yoke check' measures each rail; where one carries 6 to 25%, the port is in the degraded state: reboot "
               "both ends with the cable in place, else unplug the power of both for 30 s"}};
}

}  // namespace yoke::check

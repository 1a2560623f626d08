// What an NCCL log means, in words and as JSON.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "yoke/check/nccl_log.h"
#include "yoke/check/nccl_log_transports.h"

namespace yoke::check {
namespace {

template <typename Texts>
std::string joined_or(const Texts& texts, std::string_view separator, std::string_view otherwise) {
  return texts.empty() ? std::string(otherwise) : fmt::format("{}", fmt::join(texts, separator));
}

std::string rdma_words(const spec::NcclHost& host) {
  std::string words = fmt::format("RDMA over {}", joined_or(host.devices, " and ", "devices that it does not name"));
  const RailsUsed rails = rails_used(host);
  if (rails != RailsUsed::kUnknown) words += rails == RailsUsed::kBoth ? " (both rails)" : " (one rail only)";
  return words;
}

std::string plugin_words(const spec::NcclHost& host) {
  return fmt::format("plugin {}{}", fmt::join(networks_used(host), ", "),
                     host.provider ? fmt::format(", provider {}", *host.provider) : "");
}

std::string tcp_words(const spec::NcclHost& host) {
  if (!networks_used(host).contains("Socket")) return fmt::format("TCP ({}): no RDMA", plugin_words(host));
  return fmt::format("TCP (NET/Socket) over {}: {}",
                     joined_or(host.socket_interfaces, ", ", "an interface that it does not name"),
                     uses_rdma(host) ? "RDMA by some ranks only" : "no RDMA");
}

std::string inside_words(const spec::NcclHost& host) {
  std::vector<std::string> ways;
  for (const auto& [way, count] : host.channels) ways.push_back(way);
  return ways.empty() ? "inside one machine" : fmt::format("{} (inside one machine)", fmt::join(ways, ", "));
}

std::string transport_words(const spec::NcclLog& log, const spec::NcclHost& host) {
  switch (transport_of(log, host)) {
    case Transport::kInside:
      return inside_words(host);
    case Transport::kRdma:
      return rdma_words(host);
    case Transport::kTcp:
      return tcp_words(host);
    case Transport::kTcpIfAny:
      return fmt::format("TCP (NET/Socket) over {} if anything leaves this machine, which the log does not show",
                         joined_or(host.socket_interfaces, ", ", "an interface that it does not name"));
    case Transport::kPlugin:
      return plugin_words(host);
    case Transport::kUnknown:
      return "unknown";
  }
  return "unknown";
}

std::string gid_words(const spec::NcclHost& host) {
  std::vector<std::string> parts;
  for (const spec::NcclQueue& queue : host.queues) {
    const std::string kind = queue.ipv4 ? yoke::to_string(*queue.ipv4) : queue.link_local ? "link-local" : "other";
    std::string part = fmt::format("{} index {} ({})", device_name(host, queue.device), queue.gid_index, kind);
    if (std::find(parts.begin(), parts.end(), part) == parts.end()) parts.push_back(std::move(part));
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::string mtu_words(const spec::NcclHost& host) {
  std::set<int> sizes;
  for (const spec::NcclQueue& queue : host.queues) sizes.insert(queue.mtu);
  std::vector<std::string> parts;
  for (const int size : sizes) {
    parts.push_back(fmt::format("{} bytes{}", size,
                                size == 4096   ? " (Ethernet MTU 9000)"
                                : size == 1024 ? " (Ethernet MTU 1500)"
                                               : ""));
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::string gpu_direct_words(const spec::NcclHost& host) {
  if (host.channels_gpu_direct > 0) return fmt::format("on ({} channels)", host.channels_gpu_direct);
  if (host.gpu_direct_disabled.empty()) return "";
  return has_spark_names(host) ? "off, as always on a GB10" : "off";
}

std::string merged_words(const spec::NcclHost& host, const std::vector<std::string>& parts) {
  std::set<std::optional<std::string>> domains;
  for (const std::string& part : parts) domains.insert(pci_domain(host, part));
  const bool one_domain = domains.size() == 1 && domains.begin()->has_value() && has_spark_names(host);
  return fmt::format("{} as one device{}", fmt::join(parts, "+"),
                     one_domain ? ": the ports of one PCI domain, not the rails of a port" : "");
}

// "16 rings, 16 trees", as far as the host's ranks say so.
std::string graph_words(const spec::NcclHost& host) {
  std::vector<std::string> parts;
  if (!host.ring_counts.empty()) parts.push_back(fmt::format("{} rings", *host.ring_counts.rbegin()));
  if (!host.tree_counts.empty()) parts.push_back(fmt::format("{} trees", *host.tree_counts.rbegin()));
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::string tests_words(const spec::NcclTestsResult& tests) {
  std::vector<std::string> parts;
  if (tests.size)
    parts.push_back(fmt::format("{} with {}", yoke::to_string(tests.bus_bandwidth), yoke::to_string(*tests.size)));
  if (tests.average) parts.push_back(fmt::format("{} on average", yoke::to_string(*tests.average)));
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::string_view completion_words(const spec::NcclLog& log) {
  if (log.complete) return "";
  if (log.error || !log.warnings.empty()) return ", no communicator was made";
  return log.started ? ", ends before Init COMPLETE" : "";
}

void add_line(std::string& out, std::string_view name, const std::string& words) {
  if (!words.empty()) out += fmt::format("  {:<12} {}\n", name, words);
}

}  // namespace

std::string describe(const spec::NcclLog& log) {
  std::string out = fmt::format("NCCL {}{}{}\n", log.version.value_or("(its version is not in the log)"),
                                log.ranks ? fmt::format(", {} rank{}", *log.ranks, *log.ranks == 1 ? "" : "s") : "",
                                completion_words(log));
  for (const auto& [name, host] : log.hosts) {
    out += name + "\n";
    add_line(out, "transport", transport_words(log, host));
    add_line(out, "channels", channel_words(host));
    add_line(out, "graph", graph_words(host));
    add_line(out, "meets by", host.bootstrap.value_or(""));
    for (const auto& [number, parts] : host.virtual_devices) {
      if (parts.size() > 1) add_line(out, "merged", merged_words(host, parts));
    }
    add_line(out, "packets", mtu_words(host));
    add_line(out, "GIDs", gid_words(host));
    add_line(out, "GPUDirect", gpu_direct_words(host));
  }
  if (const std::string words = tests_words(log.tests); !words.empty()) {
    out += fmt::format("nccl-tests: {} on the bus\n", words);
  }
  if (log.plugin) out += fmt::format("plugin: {}\n", *log.plugin);
  return out;
}

Document to_json(const spec::NcclLog& log) {
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
                                       {"transport", Document::string(transport_words(log, host))},
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
  std::vector<std::string> warnings;
  for (const spec::NcclWarning& warning : log.warnings) warnings.push_back(warning.text);
  document.add("warnings", texts(warnings));
  if (log.error) document.add("error", Document::string(*log.error));
  return document;
}

}  // namespace yoke::check

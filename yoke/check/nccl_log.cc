#include "yoke/check/nccl_log.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "yoke/base/text.h"

namespace yoke {
namespace {

constexpr std::size_t kHostsMost = 4096;  // what claims more is no log of ours
constexpr std::size_t kWarningsMost = 200;
constexpr std::size_t kListMost = 64;

// What stands between two texts, or from the first to the end of the word; nothing where `before` is not there.
std::optional<std::string_view> between(std::string_view line, std::string_view before, std::string_view after) {
  const std::size_t start = line.find(before);
  if (start == std::string_view::npos) return std::nullopt;
  line.remove_prefix(start + before.size());
  return line.substr(0, line.find(after));
}

std::optional<int> number_behind(std::string_view line, std::string_view before) {
  const auto text = between(line, before, "\n");
  if (!text) return std::nullopt;
  int number = 0;
  const auto [rest, failure] = std::from_chars(text->data(), text->data() + text->size(), number);
  return failure == std::errc{} && number >= 0 ? std::optional(number) : std::nullopt;
}

std::optional<std::uint64_t> hex(std::string_view text) {
  std::uint64_t value = 0;
  const auto [rest, failure] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
  return failure == std::errc{} && rest == text.data() + text.size() ? std::optional(value) : std::nullopt;
}

// "[0]rocep1s0f1:1/RoCE [1]roceP2p1s0f1:1/RoCE [RO]; OOB …": what follows each number, up to `end`.
std::vector<std::string> numbered(std::string_view list, std::string_view end) {
  std::vector<std::string> names;
  for (std::size_t at = list.find('['); at != std::string_view::npos && names.size() < kListMost;
       at = list.find('[', at + 1)) {
    const std::size_t close = list.find(']', at);
    if (close == std::string_view::npos) break;
    const std::string_view number = list.substr(at + 1, close - at - 1);
    const bool is_number = !number.empty() && number.find_first_not_of("0123456789") == std::string_view::npos;
    const std::string_view rest = list.substr(close + 1);
    if (is_number) names.emplace_back(printable(rest.substr(0, rest.find_first_of(end)), 80));
  }
  return names;
}

// "enP7s7:192.168.1.10<0>" without the scope number.
std::string without_scope(std::string_view text) { return printable(trim(text.substr(0, text.find('<'))), 80); }

int mtu_bytes(int code) { return code >= 1 && code <= 5 ? 128 << code : 0; }  // IBV_MTU_256 is 1, IBV_MTU_4096 is 5

// The two halves of a GID as NCCL prints them, each a number read from memory in this machine's (little-endian) order.
void read_gid(std::string_view text, NcclQueue& queue) {
  const std::size_t slash = text.find('/');
  if (slash == std::string_view::npos) return;
  const auto prefix = hex(text.substr(0, slash));
  const auto identifier = hex(text.substr(slash + 1));
  if (!prefix || !identifier) return;
  queue.link_local = (*prefix & 0xFFFFU) == 0x80FE;
  if (*prefix == 0 && (*identifier & 0xFFFFFFFFU) == 0xFFFF0000U) {
    queue.ipv4 = Ipv4{__builtin_bswap32(static_cast<std::uint32_t>(*identifier >> 32U))};
  }
}

void read_queue(std::string_view line, NcclHost& host) {
  const auto device = number_behind(line, "IbDev ");
  const auto mtu = number_behind(line, " mtu ");
  const auto gid = number_behind(line, " GID ");
  if (!device || !mtu || !gid || host.queues.size() >= kListMost) return;
  NcclQueue queue{.device = *device, .mtu = mtu_bytes(*mtu), .gid_index = *gid, .ipv4 = {}};
  if (const auto text = between(line.substr(line.find(" GID ")), "(", ")")) read_gid(*text, queue);
  host.queues.insert(queue);
}

void read_channel(std::string_view line, NcclHost& host) {
  const auto via = between(line, " via ", "\n");
  if (!via) return;
  std::string_view way = trim(*via);
  if (way.find("/GDRDMA") != std::string_view::npos) ++host.channels_gpu_direct;
  if (way.starts_with("NET/")) {
    // NET/IB/0/GDRDMA, NET/IB/0(1): the way is the kind and the device.
    const std::size_t kind = way.find('/', 4);
    const std::size_t end = kind == std::string_view::npos ? kind : way.find_first_not_of("0123456789", kind + 1);
    way = way.substr(0, end);
  } else {
    way = way.substr(0, way.find('/'));
  }
  if (host.channels.size() < kListMost || host.channels.contains(std::string(way))) ++host.channels[printable(way, 40)];
}

void read_devices(std::string_view line, NcclHost& host) {
  const std::size_t oob = line.find("OOB ");
  host.devices = numbered(line.substr(0, line.find(';')), ":");
  if (oob != std::string_view::npos) host.bootstrap = without_scope(line.substr(oob + 4));
}

// "Made virtual device [4] name=rocep1s0f0+rocep1s0f1 speed=400000 ndevs=2"
void read_virtual_device(std::string_view line, NcclHost& host) {
  const auto number = number_behind(line, "virtual device [");
  const auto name = between(line, "name=", " ");
  if (!number || !name || name->empty() || host.virtual_devices.size() >= kListMost) return;
  std::vector<std::string> parts = split(printable(*name, 200), '+');
  if (parts.size() <= kListMost) host.virtual_devices[*number] = std::move(parts);
}

// "[1] rocep1s0f1:uverbs1:1/RoCE provider=… pciPath=/sys/devices/pci0000:00/0000:00:00.0/0000:01:00.0 ar=0"
void read_pci_path(std::string_view line, NcclHost& host) {
  const std::vector<std::string> names = numbered(line, ":");
  const auto path = between(line, "pciPath=", " ");
  if (names.empty() || !path || host.pci.size() >= kListMost) return;
  host.pci[std::string(trim(names.front()))] = printable(path->substr(path->rfind('/') + 1), 40);
}

void read_job(std::string_view line, NcclLog& log) {
  if (const auto version = between(line, "NCCL version ", " ")) log.version = printable(*version, 40);
  if (const auto ranks = number_behind(line, " nranks ")) log.ranks = *ranks;
  if (line.find("Init START") != std::string_view::npos) log.started = true;
  if (line.find("Init COMPLETE") != std::string_view::npos) log.complete = true;
  if (const auto plugin = between(line, "Plugin Path : ", " ")) log.plugin = printable(*plugin, 120);
  if (line.find("Subnet-aware routing: overriding dev") != std::string_view::npos) ++log.route_overrides;
  if (line.find("ListenerRouting") != std::string_view::npos) {
    const auto advertised = number_behind(line, "advertised=");
    const auto observed = number_behind(line, "observed=");
    if (advertised && observed && *advertised < *observed) log.listeners_capped = true;
  }
  if (line.find("ncclTransportTreeConnect") != std::string_view::npos) log.tree_failed = true;
}

void read_host(std::string_view line, NcclHost& host) {
  const auto has = [&](std::string_view text) { return line.find(text) != std::string_view::npos; };
  // A plugin's list looks the same: "NET/IBext_v10 : Using [0]rocep1s0f0:1/RoCE …".
  if (has("NET/IB") && has(" : Using [")) return read_devices(line.substr(line.find("Using [")), host);
  if (has("NET/IB : No device found")) host.no_device = true;
  if (has("NET/Socket : Using [")) {
    host.socket_interfaces.clear();
    for (const std::string& name : numbered(line.substr(line.find("Using [")), "<")) {
      host.socket_interfaces.push_back(without_scope(name));
    }
  }
  if (const auto network = between(line, "Using network ", " ")) host.networks.insert(printable(*network, 40));
  if (has("Made virtual device")) read_virtual_device(line, host);
  if (has("pciPath=")) read_pci_path(line, host);
  if (has("GPU Direct RDMA Disabled")) {
    if (const auto device = between(line, "'", "'")) host.gpu_direct_disabled.insert(printable(*device, 80));
  }
  if (has("Channel ") && has(" via ")) read_channel(line, host);
  if (has(" IbDev ") && has(" GID ")) read_queue(line, host);
}

// "spark-fb97:23491:23491 [0] NCCL INFO …": the host, also behind what mpirun puts before ("[1,0]<stdout>:").
std::string host_of(std::string_view before) {
  before = trim(before);
  if (const std::size_t bracket = before.rfind(" ["); bracket != std::string_view::npos)
    before = before.substr(0, bracket);
  if (const std::size_t mark = before.rfind(">:"); mark != std::string_view::npos) before.remove_prefix(mark + 2);
  const std::size_t space = before.find_last_of(" \t");
  if (space != std::string_view::npos) before.remove_prefix(space + 1);
  return printable(before.substr(0, before.find(':')), 64);
}

// Warnings of jobs that run well: of events that NCCL passes over, of connections that it tries again, of a process
// that ends.
bool is_harmless(std::string_view warning) {
  constexpr std::array<std::string_view, 5> kTexts = {"non-fatal async event", "GID table changed", "retrying",
                                                      "driver shutting down", "unknown event type"};
  return std::any_of(kTexts.begin(), kTexts.end(), [&](auto text) { return warning.find(text) != warning.npos; });
}

void add_warning(NcclLog& log, NcclWarning warning) {
  if (is_harmless(warning.text) || log.warnings.size() >= kWarningsMost) return;
  if (std::find(log.warnings.begin(), log.warnings.end(), warning) != log.warnings.end()) return;
  log.warnings.push_back(std::move(warning));
}

// What PyTorch, nccl-tests and others print when a call of NCCL failed: the text of its error or its name.
bool tells_of_error(std::string_view line) {
  constexpr std::array<std::string_view, 8> kTexts = {
      "unhandled system error", "unhandled cuda error", "ncclSystemError", "ncclUnhandledCudaError",
      "ncclInternalError",      "ncclInvalidUsage",     "ncclRemoteError", "Test NCCL failure"};
  return std::any_of(kTexts.begin(), kTexts.end(), [&](auto text) { return line.find(text) != line.npos; });
}

}  // namespace

void add_nccl_log(NcclLog& log, std::string_view text) {
  while (!text.empty()) {
    const std::size_t newline = text.find('\n');
    std::string_view line = text.substr(0, newline);
    text.remove_prefix(newline == std::string_view::npos ? text.size() : newline + 1);
    if (line.ends_with('\r')) line.remove_suffix(1);
    const std::size_t info = line.find("NCCL INFO ");
    const std::size_t warn = line.find("NCCL WARN ");
    const std::size_t at = std::min(info, warn);
    if (at == std::string_view::npos) {
      if (!log.error && tells_of_error(line)) log.error = printable(trim(line), 300);
      continue;
    }
    const std::string name = host_of(line.substr(0, at));
    if (log.hosts.size() >= kHostsMost && !log.hosts.contains(name)) continue;
    ++log.lines;
    const std::string_view said = line.substr(at + 10);
    read_job(said, log);
    read_host(said, log.hosts[name]);
    if (warn == at) add_warning(log, {name, printable(trim(said), 300)});
  }
}

NcclLog parse_nccl_log(std::string_view text) {
  NcclLog log;
  add_nccl_log(log, text);
  return log;
}

std::optional<std::string> pci_domain(const NcclHost& host, const std::string& device) {
  if (const auto found = host.pci.find(device); found != host.pci.end()) {
    return found->second.substr(0, found->second.find(':'));
  }
  // By udev's names: roceP2p1s0f0 is in domain 2, rocep1s0f0 in domain 0.
  if (!device.starts_with("roce")) return std::nullopt;
  if (device.size() > 4 && device[4] == 'p') return "0000";
  const auto number = number_behind(device, "roceP");
  return number ? std::optional(std::string(4 - std::min<std::size_t>(4, std::to_string(*number).size()), '0') +
                                std::to_string(*number))
                : std::nullopt;
}

}  // namespace yoke

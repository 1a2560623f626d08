// What the lines of one host tell: its devices, networks, channels and queues.
#include <algorithm>
#include <charconv>

#include "yoke/base/text.h"
#include "yoke/check/nccl_log_read.h"

namespace yoke::check {
namespace {

constexpr std::size_t kMaxList = 64;  // what claims more is no log of ours

std::optional<std::uint64_t> hex(std::string_view text) {
  std::uint64_t value = 0;
  const auto [rest, failure] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
  return failure == std::errc{} && rest == text.data() + text.size() ? std::optional(value) : std::nullopt;
}

struct Numbered {
  int number = 0;
  std::string_view text;
  std::size_t at = 0;  // where it stands in the list
};

// "[0]rocep1s0f1:1/RoCE [1]roceP2p1s0f1:1/RoCE [RO]; OOB …": what follows each number, up to one of `ends`.
std::vector<Numbered> numbered(std::string_view list, std::string_view ends) {
  std::vector<Numbered> items;
  for (std::size_t at = list.find('['); at != std::string_view::npos && items.size() < kMaxList;
       at = list.find('[', at + 1)) {
    const std::size_t close = list.find(']', at);
    if (close == std::string_view::npos) break;
    const std::string_view digits = list.substr(at + 1, close - at - 1);
    int number = 0;
    const auto [rest, failure] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
    if (failure != std::errc{} || rest != digits.data() + digits.size() || number < 0) continue;
    std::string_view text = list.substr(close + 1);
    text = trim(text.substr(0, text.find_first_of(ends)));
    if (!text.empty()) items.push_back({number, text, at});
  }
  return items;
}

// "enP7s7:192.168.1.10<0>" without the scope number.
std::string without_scope(std::string_view text) { return printable(trim(text.substr(0, text.find('<'))), 80); }

int mtu_bytes(int code) { return code >= 1 && code <= 5 ? 128 << code : 0; }  // IBV_MTU_256 is 1, IBV_MTU_4096 is 5

// The two halves of a GID as NCCL prints them, each a number read from memory in this machine's (little-endian) order.
void read_gid(std::string_view text, spec::NcclQueue& queue) {
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

void read_queue(std::string_view line, spec::NcclHost& host) {
  // Releases before 2.20 merge nothing, and name the device alone: "NET/IB: Dev 0 Port 1 qpn 576 …".
  auto device = number_behind(line, " IbDev ");
  if (!device) device = number_behind(line, ": Dev ");
  const auto mtu = number_behind(line, " mtu ");
  const auto gid = number_behind(line, " GID ");
  if (!device || !mtu || !gid || host.queues.size() >= kMaxList) return;
  spec::NcclQueue queue{.device = *device, .mtu = mtu_bytes(*mtu), .gid_index = *gid, .ipv4 = {}};
  if (const auto text = between(line.substr(line.find(" GID ")), "(", ")")) read_gid(*text, queue);
  if (host.queues.insert(queue).second) host.queue_lines.emplace(queue, printable(trim(line), 200));
}

// The first line of a kind, as it stands.
void keep_line(spec::NcclHost& host, const std::string& kind, std::string_view line) {
  std::string& kept = host.lines[kind];
  if (kept.empty()) kept = printable(trim(line), 200);
}

// "Channel 00/0 : 3[3] -> 11[3] [send] via NET/IB/0": releases before 2.6 print ranks alone, "35 -> 34".
void read_link(std::string_view line, const std::string& way, spec::NcclHost& host) {
  constexpr std::size_t kMaxLinks = 4096;
  const auto from = number_behind(line, " : ");
  const auto to = number_behind(line, " -> ");
  if (!from || !to || host.links.size() >= kMaxLinks) return;
  host.links.insert({*from, *to, way});
  // A rank tells of its own end of a channel.
  host.ranks.insert(line.find("[receive]") == std::string_view::npos ? *from : *to);
}

// "16 coll channels, 16 collnet channels, 16 nvls channels, 16 p2p channels, 2 p2p channels per peer"
void read_channel_counts(std::string_view line, spec::NcclHost& host) {
  const std::size_t at = line.find(" coll channels");
  if (at == std::string_view::npos || host.coll_channels.size() >= kMaxList) return;
  std::size_t begin = at;
  while (begin > 0 && line[begin - 1] >= '0' && line[begin - 1] <= '9') --begin;
  int count = 0;
  const auto [rest, failure] = std::from_chars(line.data() + begin, line.data() + at, count);
  if (failure != std::errc{} || count <= 0) return;
  host.coll_channels.insert(count);
  ++host.coll_lines;
  keep_line(host, "coll-channels", line);
}

// "NCCL_NET_PLUGIN set by environment to aws-ofi"
void read_setting(std::string_view line, spec::NcclHost& host) {
  const std::size_t at = line.find(" set by environment to ");
  if (at == std::string_view::npos || host.set.size() >= kMaxList) return;
  const std::size_t begin = line.rfind(' ', at - 1);
  const std::string_view name = trim(line.substr(begin == std::string_view::npos ? 0 : begin, at - begin));
  std::string_view value = line.substr(at + 23);
  while (!value.empty() && (value.back() == '.' || value.back() == '\r')) value.remove_suffix(1);
  if (name.starts_with("NCCL_")) host.set[printable(name, 60)] = printable(trim(value), 120);
}

// "NET/Plugin: Could not find: libnccl-net-aws-ofi.so", "Plugin load returned 2 : libnccl-net-x.so: cannot open shared
// object file: No such file or directory : when loading libnccl-net-x.so".
void read_plugin_failure(std::string_view line, spec::NcclHost& host) {
  const std::size_t name = line.find("libnccl-net");
  const std::string_view rest = name == std::string_view::npos ? std::string_view("plugin") : line.substr(name);
  if (!host.plugin_failure) host.plugin_failure = printable(rest.substr(0, rest.find_first_of(" :,.")), 80);
  keep_line(host, "plugin", line);
}

void read_channel(std::string_view line, spec::NcclHost& host) {
  const auto via = between(line, " via ", "\n");
  if (!via) return;
  std::string_view words = trim(*via);
  if (words.find("/GDRDMA") != std::string_view::npos) ++host.channels_gpu_direct;
  if (words.starts_with("NET/")) {
    // NET/IB/0/GDRDMA, NET/IB/0(1): the way is the kind and the device.
    const std::size_t kind = words.find('/', 4);
    const std::size_t end = kind == std::string_view::npos ? kind : words.find_first_not_of("0123456789", kind + 1);
    words = words.substr(0, end);
  } else {
    words = words.substr(0, words.find('/'));
  }
  const std::string way = printable(words, 40);
  read_link(line, way, host);
  if (host.channels.size() >= kMaxList && !host.channels.contains(way)) return;
  if (++host.channels[way] == 1) keep_line(host, way, line);
}

// "[0]rocep1s0f1:1/RoCE [1]roceP2p1s0f1:1/RoCE". Releases 2.20 to 2.23 list those that they merged together:
// "[0]={[0] rocep1s0f0:1/RoCE, [1] rocep1s0f1:1/RoCE} [2]roceP2p1s0f0:1/RoCE". There the numbers of single devices are
// what "IbDev" means, and the places in the outer list what channels mean: NET/IB/1 is roceP2p1s0f0.
void read_device_list(std::string_view list, spec::NcclHost& host) {
  std::map<int, std::string> devices;
  std::vector<std::vector<std::string>> places;
  std::size_t merged_end = 0;
  for (const Numbered& item : numbered(list, ":")) {
    if (item.text.starts_with("={")) {
      places.emplace_back();
      merged_end = list.find('}', item.at);
      continue;
    }
    if (item.at >= merged_end) places.emplace_back();
    devices[item.number] = printable(item.text, 80);
    places.back().push_back(devices[item.number]);
  }
  host.devices.clear();
  for (auto& [number, name] : devices) host.devices.push_back(std::move(name));
  if (merged_end == 0) return;
  for (std::size_t i = 0; i < places.size(); ++i) host.virtual_devices[static_cast<int>(i)] = std::move(places[i]);
}

void read_devices(std::string_view line, spec::NcclHost& host) {
  const std::size_t oob = line.find("OOB ");
  read_device_list(line.substr(0, line.find(';')), host);
  if (oob != std::string_view::npos) host.bootstrap = without_scope(line.substr(oob + 4));
}

// "Made virtual device [4] name=rocep1s0f0+rocep1s0f1 speed=400000 ndevs=2"
void read_virtual_device(std::string_view line, spec::NcclHost& host) {
  const auto number = number_behind(line, "virtual device [");
  const auto name = between(line, "name=", " ");
  if (!number || !name || name->empty() || host.virtual_devices.size() >= kMaxList) return;
  std::vector<std::string> parts = split(printable(*name, 200), '+');
  if (parts.size() <= kMaxList) host.virtual_devices[*number] = std::move(parts);
}

// "[1] rocep1s0f1:uverbs1:1/RoCE provider=… pciPath=/sys/devices/pci0000:00/0000:00:00.0/0000:01:00.0 ar=0"
void read_pci_path(std::string_view line, spec::NcclHost& host) {
  const std::vector<Numbered> names = numbered(line, ":");
  const auto path = between(line, "pciPath=", " ");
  if (names.empty() || !path || host.pci.size() >= kMaxList) return;
  host.pci[printable(names.front().text, 80)] = printable(path->substr(path->rfind('/') + 1), 40);
}

// "NET/OFI Selected provider is tcp;ofi_rxm, fabric is …", earlier "Selected Provider is efa (found 4 nics)".
void read_provider(std::string_view line, spec::NcclHost& host) {
  const auto words = between(line, "rovider is ", "\n");
  if (words) host.provider = printable(words->substr(0, words->find_first_of(", ")), 40);
}

}  // namespace

void read_host(std::string_view line, LogWords words, spec::NcclHost& host) {
  using enum LogWord;
  // A plugin's list looks the same: "NET/IBext_v10 : Using [0]rocep1s0f0:1/RoCE …".
  if (words.has(kNetIb) && words.has(kUsingList)) {
    keep_line(host, "devices", line);
    return read_devices(line.substr(line.find("Using [")), host);
  }
  if (words.has(kRank) && words.has(kRanks)) {
    if (const auto rank = number_behind(line, " rank ")) host.ranks.insert(*rank);
  }
  if (words.has(kNoDevice)) {
    host.no_device = true;
    keep_line(host, "no-device", line);
  }
  if (words.has(kSockets)) {
    keep_line(host, "sockets", line);
    host.socket_interfaces.clear();
    for (const Numbered& item : numbered(line.substr(line.find("Using [")), "<")) {
      host.socket_interfaces.push_back(printable(item.text, 80));
    }
  }
  if (words.has(kNetwork)) {
    host.networks.insert(printable(trim(*between(line, "Using network ", "\n")), 40));
    keep_line(host, "network", line);
  }
  if (words.has(kProvider)) {
    keep_line(host, "provider", line);
    read_provider(line, host);
  }
  if (words.has(kVirtualDevice)) read_virtual_device(line, host);
  if (words.has(kPciPath)) read_pci_path(line, host);
  if (words.has(kDirectOn)) host.gpu_direct_enabled = true;
  if (words.has(kNvls)) {
    host.nvls = line.find("is not available") == std::string_view::npos;
    keep_line(host, "nvls", line);
  }
  if (words.has(kCollChannels)) read_channel_counts(line, host);
  if (words.has(kSetting)) read_setting(line, host);
  if (words.has(kPluginFailed)) read_plugin_failure(line, host);
  if (words.has(kDirectOff)) {
    keep_line(host, "gpu-direct", line);
    if (const auto device = between(line, "'", "'")) host.gpu_direct_disabled.insert(printable(*device, 80));
  }
  // Releases before 2.6 call a channel a ring: "Ring 00 : 35 -> 34 [send] via NET/Socket/0".
  if ((words.has(kChannel) || words.has(kRing)) && words.has(kVia)) read_channel(line, host);
  if (words.has(kQueueNumber) && words.has(kGid)) read_queue(line, host);
}

std::optional<std::string> pci_domain(const spec::NcclHost& host, const std::string& device) {
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

}  // namespace yoke::check

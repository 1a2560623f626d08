// What the lines of one host tell: its devices, networks, channels and queues.
#include <algorithm>
#include <charconv>

#include "yoke/base/text.h"
#include "yoke/check/nccl_log_read.h"

namespace yoke {
namespace {

constexpr std::size_t kListMost = 64;  // what claims more is no log of ours

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
  for (std::size_t at = list.find('['); at != std::string_view::npos && items.size() < kListMost;
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
  // Releases before 2.20 merge nothing, and name the device alone: "NET/IB: Dev 0 Port 1 qpn 576 …".
  auto device = number_behind(line, " IbDev ");
  if (!device) device = number_behind(line, ": Dev ");
  const auto mtu = number_behind(line, " mtu ");
  const auto gid = number_behind(line, " GID ");
  if (!device || !mtu || !gid || host.queues.size() >= kListMost) return;
  NcclQueue queue{.device = *device, .mtu = mtu_bytes(*mtu), .gid_index = *gid, .ipv4 = {}};
  if (const auto text = between(line.substr(line.find(" GID ")), "(", ")")) read_gid(*text, queue);
  host.queues.insert(queue);
  host.queue_lines.try_emplace(queue, printable(trim(line), 200));
}

// The first line of a kind, as it stands.
void keep_line(NcclHost& host, const std::string& kind, std::string_view line) {
  host.lines.try_emplace(kind, printable(trim(line), 200));
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
  if (host.channels.size() >= kListMost && !host.channels.contains(std::string(way))) return;
  ++host.channels[printable(way, 40)];
  keep_line(host, printable(way, 40), line);
}

// "[0]rocep1s0f1:1/RoCE [1]roceP2p1s0f1:1/RoCE". Releases 2.20 to 2.23 list those that they merged together:
// "[0]={[0] rocep1s0f0:1/RoCE, [1] rocep1s0f1:1/RoCE} [2]roceP2p1s0f0:1/RoCE". There the numbers of single devices are
// what "IbDev" means, and the places in the outer list what channels mean: NET/IB/1 is roceP2p1s0f0.
void read_device_list(std::string_view list, NcclHost& host) {
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

void read_devices(std::string_view line, NcclHost& host) {
  const std::size_t oob = line.find("OOB ");
  read_device_list(line.substr(0, line.find(';')), host);
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
  const std::vector<Numbered> names = numbered(line, ":");
  const auto path = between(line, "pciPath=", " ");
  if (names.empty() || !path || host.pci.size() >= kListMost) return;
  host.pci[printable(names.front().text, 80)] = printable(path->substr(path->rfind('/') + 1), 40);
}

// "NET/OFI Selected provider is tcp;ofi_rxm, fabric is …", earlier "Selected Provider is efa (found 4 nics)".
void read_provider(std::string_view line, NcclHost& host) {
  const auto words = between(line, "rovider is ", "\n");
  if (words) host.provider = printable(words->substr(0, words->find_first_of(", ")), 40);
}

}  // namespace

void read_host(std::string_view line, NcclHost& host) {
  const auto has = [&](std::string_view text) { return line.find(text) != std::string_view::npos; };
  // A plugin's list looks the same: "NET/IBext_v10 : Using [0]rocep1s0f0:1/RoCE …".
  if (has("NET/IB") && has(" : Using [")) {
    keep_line(host, "devices", line);
    return read_devices(line.substr(line.find("Using [")), host);
  }
  if (const auto rank = number_behind(line, " rank "); rank && has(" nranks ")) host.ranks.insert(*rank);
  if (has("NET/IB : No device found")) {
    host.no_device = true;
    keep_line(host, "no-device", line);
  }
  if (has("NET/Socket : Using [")) {
    keep_line(host, "sockets", line);
    host.socket_interfaces.clear();
    for (const Numbered& item : numbered(line.substr(line.find("Using [")), "<")) {
      host.socket_interfaces.push_back(printable(item.text, 80));
    }
  }
  if (const auto network = between(line, "Using network ", "\n")) {
    host.networks.insert(printable(trim(*network), 40));
    keep_line(host, "network", line);
  }
  if (has("NET/OFI Selected ")) {
    keep_line(host, "provider", line);
    read_provider(line, host);
  }
  if (has("Made virtual device")) read_virtual_device(line, host);
  if (has("pciPath=")) read_pci_path(line, host);
  if (has("GPU Direct RDMA Enabled")) host.gpu_direct_enabled = true;
  if (has("GPU Direct RDMA Disabled")) {
    if (const auto device = between(line, "'", "'")) host.gpu_direct_disabled.insert(printable(*device, 80));
  }
  // Releases before 2.6 call a channel a ring: "Ring 00 : 35 -> 34 [send] via NET/Socket/0".
  if ((has("Channel ") || has("Ring ")) && has(" via ")) read_channel(line, host);
  if (has(" qpn ") && has(" GID ")) read_queue(line, host);
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

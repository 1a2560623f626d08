#include "yoke/lab/hardware.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <set>

#include "yoke/base/check.h"
#include "yoke/base/embedded.h"
#include "yoke/base/error.h"
#include "yoke/base/text.h"
#include "yoke/base/tree_file.h"
#include "yoke/lab/gid_table.h"
#include "yoke/lab/hardware_changes.h"
#include "yoke/lab/hardware_functions.h"

namespace yoke::lab {
namespace {

using Kind = MemoryTree::Entry::Kind;

struct Machine {
  std::string_view name, file;
};
constexpr Machine kMachines[] = {{"spark", "spark-pair/machine.tree"}, {"b300", "b300/machine.tree"}};

// The step leaves room for the 0x20 addresses of a machine, and reads well: 4c:bb:47:0a:30:05 is node 3's.
constexpr std::uint64_t kNodeStep = 0x1000;
constexpr int kMaxNode = 1000;  // so that nothing is carried out of the lower three bytes of any fixture's addresses

// Of an interface's folder below its PCI function: what neither the lab nor a user can change.
constexpr std::array<std::string_view, 6> kFixedNetFiles = {"address",        "type",   "addr_len",
                                                            "phys_port_name", "device", "phy80211"};

constexpr std::array<std::string_view, 4> kHiddenFolders = {"/sys/class/net/", "/sys/devices/virtual/net/",
                                                            "/sys/devices/system/", "/sys/module/"};

std::string read_embedded(std::string_view path) {
  const std::optional<std::string_view> text = embedded_file(path);
  if (!text) throw Error(ErrorCode::kNotFound, fmt::format("the program does not carry '{}'", path));
  return std::string(*text);
}

// ".../net/enp1s0f0np0/speed": the last two names, where the one before them is "net"; else nothing.
std::optional<std::string> net_file_of(const std::string& path) {
  const std::vector<std::string> parts = split(path, '/');
  if (parts.size() < 4 || parts[parts.size() - 3] != "net") return std::nullopt;
  return parts.back();
}

bool belongs_to_lab(const std::string& path) {
  if (path == "/etc/dgx-release" || path.starts_with("/etc/nvidia/")) return true;
  if (!path.starts_with("/sys/")) return false;
  for (const std::string_view folder : kHiddenFolders) {
    if (path.starts_with(folder)) return false;
  }
  const std::optional<std::string> net_file = net_file_of(path);
  return !net_file || std::find(kFixedNetFiles.begin(), kFixedNetFiles.end(), *net_file) != kFixedNetFiles.end();
}

std::string shift_mac(std::string_view text, std::uint64_t step) {
  std::optional<Mac> mac = parse_mac(text);
  YOKE_CHECK(mac.has_value(), "MAC address '{}'", text);
  const std::uint64_t low = ((*mac)[3] << 16U | (*mac)[4] << 8U | (*mac)[5]) + step;
  YOKE_CHECK(low < 1U << 24U, "no address left after {}", text);
  for (unsigned i = 0; i < 3; ++i) (*mac)[3 + i] = static_cast<std::uint8_t>(low >> (16 - 8 * i));
  return to_string(*mac);
}

// "4cbb:4703:000a:1000": as mlx5 makes it, the MAC address with 03:00 in the middle.
std::string shift_guid(std::string_view text, std::uint64_t step) {
  std::string digits(text);
  std::erase(digits, ':');
  std::uint64_t guid = 0;
  const auto [rest, failure] = std::from_chars(digits.data(), digits.data() + digits.size(), guid, 16);
  YOKE_CHECK(failure == std::errc{} && rest == digits.data() + digits.size(), "GUID '{}'", text);
  guid += step;
  return fmt::format("{:04x}:{:04x}:{:04x}:{:04x}", guid >> 48, guid >> 32 & 0xFFFF, guid >> 16 & 0xFFFF,
                     guid & 0xFFFF);
}

std::string shift_identity(const std::string& path, const std::string& content, int node) {
  const std::uint64_t step = static_cast<std::uint64_t>(node - 1) * kNodeStep;
  if (net_file_of(path) == "address") return shift_mac(trim(content), step) + "\n";
  if (path.ends_with("/node_guid") || path.ends_with("/sys_image_guid")) return shift_guid(trim(content), step) + "\n";
  return content;
}

std::string read_mac(const FileTree& tree, const std::string& net_folder) {
  return tree.read_trimmed(net_folder + "/address").value_or("");
}

// "0002:01:00.1" -> ("0002", "01:00.1").
std::pair<std::string, std::string> split_domain(const std::string& pci_address) {
  const std::size_t colon = pci_address.find(':');
  YOKE_CHECK(colon != std::string::npos, "PCI address '{}'", pci_address);
  return {pci_address.substr(0, colon), pci_address.substr(colon + 1)};
}

}  // namespace

MemoryTree lab_hardware(const LabHardwareOptions& options) {
  YOKE_CHECK(options.node >= 1 && options.node <= kMaxNode, "node {}", options.node);
  if (options.machine == "none") return {};
  std::vector<std::string> names = {"none"};
  for (const Machine& machine : kMachines) {
    names.emplace_back(machine.name);
    if (machine.name != options.machine) continue;
    const MemoryTree captured = parse_tree(read_embedded(machine.file), machine.file, read_embedded);
    MemoryTree tree;
    for (const auto& [path, entry] : captured.entries()) {
      if (!belongs_to_lab(path)) continue;
      if (entry.kind == Kind::kLink) {
        tree.add_link(path, entry.content);
      } else {
        tree.add_file(path, shift_identity(path, entry.content, options.node));
      }
    }
    // No interfaces: every port is down, and has only the GIDs that its MAC address makes.
    apply_changes(hardware_changes(tree, {}, {}), tree);
    return tree;
  }
  throw Error(ErrorCode::kNotFound, fmt::format("a lab has no hardware '{}'", printable(options.machine, 60)),
              suggest(options.machine, names, "machines"));
}

std::vector<LabPort> lab_ports(const FileTree& tree) {
  // Sorted by where a function is within its domain, then by domain: 0000:01:00.0, 0002:01:00.0, 0000:01:00.1, …
  std::map<std::pair<std::string, std::string>, RdmaFunction> functions;
  for (RdmaFunction& function : find_rdma_functions(tree)) {
    const auto [domain, place] = split_domain(function.pci_address);
    functions.emplace(std::pair(place, domain), std::move(function));
  }
  std::vector<LabPort> ports;
  std::string previous;
  for (const auto& [key, function] : functions) {
    const bool is_same_port = !ports.empty() && key.first == previous;
    previous = key.first;
    LabPort port{.interface = function.interface,
                 .mac = read_mac(tree, function.net_folder()),
                 .pci_address = function.pci_address,
                 .rdma_device = function.device};
    if (!ports.empty()) port.port = ports.back().port + (is_same_port ? 0 : 1);
    if (is_same_port) port.rail = std::string(1, static_cast<char>(ports.back().rail.front() + 1));
    ports.push_back(std::move(port));
  }
  return ports;
}

std::optional<LabPort> lab_management_port(const FileTree& tree) {
  for (const std::string& address : tree.list("/sys/bus/pci/devices")) {
    const std::string folder = tree.resolve("/sys/bus/pci/devices/" + address).value_or("");
    const bool is_ethernet = tree.read_trimmed(folder + "/class") == "0x020000";
    const std::vector<std::string> interfaces = tree.list(folder + "/net");
    if (!is_ethernet || interfaces.empty() || !tree.list(folder + "/infiniband").empty()) continue;
    return LabPort{.interface = interfaces.front(),
                   .mac = read_mac(tree, folder + "/net/" + interfaces.front()),
                   .pci_address = address};
  }
  return std::nullopt;
}

}  // namespace yoke::lab

#include "yoke/probe/pci.h"

#include <algorithm>
#include <charconv>

#include "yoke/base/text.h"
#include "yoke/probe/tree_values.h"

namespace yoke::probe {
namespace {

constexpr std::string_view kDevices = "/sys/bus/pci/devices";

// "32.0 GT/s PCIe" or "32 GT/s"; "Unknown" where the device does not tell.
std::optional<double> read_speed(const FileTree& files, const std::string& path) {
  const auto text = files.read_trimmed(path);
  if (!text || text->starts_with("Unknown")) return std::nullopt;
  double speed = 0;
  const auto [rest, failure] = std::from_chars(text->data(), text->data() + text->size(), speed);
  const std::string_view unit(rest, static_cast<std::size_t>(text->data() + text->size() - rest));
  if (failure != std::errc{} || !unit.starts_with(" GT/s") || !(speed > 0 && speed < 1e4)) {
    throw broken_file(path, "a speed such as 32.0 GT/s PCIe", *text);
  }
  return speed;
}

// Zero and 255 are what a device without lanes, or one that does not answer, shows.
std::optional<int> read_width(const FileTree& files, const std::string& path) {
  const auto width = read_number(files, path);
  if (!width || *width <= 0 || *width >= 255) return std::nullopt;
  return static_cast<int>(*width);
}

}  // namespace

std::string PciDevice::domain() const { return address.substr(0, address.find(':')); }
std::string PciDevice::place() const { return address.substr(std::min(address.find(':') + 1, address.size())); }

std::map<std::string, PciDevice> read_pci_devices(const FileTree& files) {
  std::map<std::string, PciDevice> devices;
  for (const std::string& address : files.list(kDevices)) {
    const auto folder = files.resolve(std::string(kDevices) + "/" + address);
    if (!folder) continue;
    PciDevice device{.address = address,
                     .folder = *folder,
                     .vendor = files.read_trimmed(*folder + "/vendor").value_or(""),
                     .device = files.read_trimmed(*folder + "/device").value_or(""),
                     .device_class = files.read_trimmed(*folder + "/class").value_or("")};
    const auto node = read_number(files, *folder + "/numa_node");
    if (node && *node >= 0) device.numa_node = static_cast<int>(*node);
    if (const auto driver = files.link(*folder + "/driver")) device.driver = last_part(*driver);
    devices.emplace(address, std::move(device));
  }
  return devices;
}

std::optional<spec::PcieLink> read_pcie_link(const FileTree& files, const PciDevice& device) {
  const auto speed = read_speed(files, device.folder + "/current_link_speed");
  const auto width = read_width(files, device.folder + "/current_link_width");
  auto speed_max = read_speed(files, device.folder + "/max_link_speed");
  auto width_max = read_width(files, device.folder + "/max_link_width");
  if (!speed || !width || !speed_max || !width_max) return std::nullopt;
  // The port above may be able to do less; a card in a slot of an older generation is at its best then.
  const std::string above = device.folder.substr(0, device.folder.rfind('/'));
  if (const auto limit = read_speed(files, above + "/max_link_speed")) speed_max = std::min(*speed_max, *limit);
  if (const auto limit = read_width(files, above + "/max_link_width")) width_max = std::min(*width_max, *limit);
  return spec::PcieLink{
      .speed_gt_per_second = *speed, .width = *width, .speed_gt_per_second_max = *speed_max, .width_max = *width_max};
}

std::optional<std::string> pci_address_of(const FileTree& files, const std::string& class_entry) {
  const auto folder = files.resolve(class_entry + "/device");
  if (!folder || !files.exists(*folder) || !files.exists(std::string(kDevices) + "/" + last_part(*folder))) {
    return std::nullopt;
  }
  return last_part(*folder);
}

std::optional<std::string> read_iommu_type(const FileTree& files, const std::string& pci_address) {
  return read_nonempty(files, std::string(kDevices) + "/" + pci_address + "/iommu_group/type");
}

std::vector<std::string> bridges_above(const PciDevice& device) {
  std::vector<std::string> parts = split(device.folder, '/');
  constexpr std::size_t kFirst = 4;  // "", "sys", "devices", the host bridge
  if (parts.size() <= kFirst) return {};
  return {parts.begin() + kFirst, parts.end() - 1};
}

std::string pci_path(const PciDevice& a, const PciDevice& b) {
  const std::vector<std::string> one = split(a.folder, '/');
  const std::vector<std::string> other = split(b.folder, '/');
  std::size_t common = 0;
  while (common < std::min(one.size(), other.size()) && one[common] == other[common]) ++common;
  // "", "sys", "devices", then the host bridge "pci0000:15", then the bridges down to the device.
  constexpr std::size_t kHostBridge = 3;
  if (common <= kHostBridge) return a.numa_node == b.numa_node ? "NODE" : "SYS";
  if (common == kHostBridge + 1) return "PHB";
  // Below the common bridge a switch has one port for each side, and then the device: more is a second switch.
  const std::size_t farthest = std::max(one.size(), other.size()) - common;
  return farthest <= 2 ? "PIX" : "PXB";
}

}  // namespace yoke::probe

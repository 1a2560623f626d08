#include "yoke/probe/module_eeprom.h"

#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "yoke/base/files.h"
#include "yoke/base/text.h"

namespace yoke::probe {
namespace {

constexpr std::size_t kPage = 256;
using Bytes256 = std::array<std::uint8_t, kPage>;

// Where each standard has its fields.
struct ModuleLayout {
  std::string_view form;
  std::uint8_t identifier;
  std::size_t vendor, part, serial;  // 16 characters each
  enum class Standard { kSff8636, kCmis, kSff8472 } standard;
};
using Standard = ModuleLayout::Standard;
constexpr std::array kLayouts = {
    ModuleLayout{"SFP", 0x03, 20, 40, 68, Standard::kSff8472},
    ModuleLayout{"QSFP", 0x0C, 148, 168, 196, Standard::kSff8636},
    ModuleLayout{"QSFP+", 0x0D, 148, 168, 196, Standard::kSff8636},
    ModuleLayout{"QSFP28", 0x11, 148, 168, 196, Standard::kSff8636},
    ModuleLayout{"QSFP-DD", 0x18, 129, 148, 166, Standard::kCmis},
    ModuleLayout{"OSFP", 0x19, 129, 148, 166, Standard::kCmis},
    ModuleLayout{"QSFP112", 0x1E, 129, 148, 166, Standard::kCmis},
};

const ModuleLayout* layout_of(const Bytes256& bytes) {
  const auto found = std::find_if(kLayouts.begin(), kLayouts.end(),
                                  [&](const ModuleLayout& layout) { return layout.identifier == bytes[0]; });
  return found == kLayouts.end() ? nullptr : &*found;
}

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

std::optional<Bytes256> bytes_of(std::string_view hex) {
  if (hex.size() < 2 * kPage) return std::nullopt;
  Bytes256 bytes{};
  for (std::size_t i = 0; i < kPage; ++i) {
    const int high = hex_digit(hex[2 * i]), low = hex_digit(hex[2 * i + 1]);
    if (high < 0 || low < 0) return std::nullopt;
    bytes[i] = static_cast<std::uint8_t>(high * 16 + low);
  }
  return bytes;
}

std::string text_at(const Bytes256& bytes, std::size_t first) {
  const std::string raw(reinterpret_cast<const char*>(bytes.data()) + first, 16);
  std::string text;
  for (const char c : raw) text += c >= ' ' && c <= '~' ? c : ' ';
  return std::string(trim(text));
}

// Device technologies of both standards: from 0xA on it is copper, passive up to 0xB.
std::string medium_of(unsigned technology) {
  if (technology < 0xA) return "optical";
  return technology <= 0xB ? "copper" : "active copper";
}

std::optional<double> length_of(const Bytes256& bytes, Standard standard) {
  double metres = 0;
  if (standard == Standard::kSff8636) metres = bytes[146];
  if (standard == Standard::kSff8472) metres = bytes[18];
  if (standard == Standard::kCmis) {
    constexpr std::array kUnits = {0.1, 1.0, 10.0, 100.0};
    metres = kUnits[bytes[202] >> 6U] * (bytes[202] & 0x3FU);
  }
  return metres > 0 ? std::optional(metres) : std::nullopt;
}

std::string medium_at(const Bytes256& bytes, Standard standard) {
  switch (standard) {
    case Standard::kSff8636:
      return medium_of(bytes[147] >> 4U);
    case Standard::kCmis:
      return medium_of(bytes[212]);
    case Standard::kSff8472:
      return (bytes[8] & 0x04U) ? "copper" : (bytes[8] & 0x08U) ? "active copper" : "optical";
  }
  return "";
}

std::string hex_of(const Bytes256& bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string hex;
  for (const std::uint8_t byte : bytes) {
    hex += kDigits[byte >> 4U];
    hex += kDigits[byte & 0xFU];
  }
  return hex;
}

std::optional<Bytes256> ask_kernel(const UniqueFd& socket, const std::string& interface) {
  if (interface.size() >= IFNAMSIZ) return std::nullopt;
  std::vector<std::uint8_t> request(sizeof(ethtool_eeprom) + kPage);
  auto* const eeprom = reinterpret_cast<ethtool_eeprom*>(request.data());
  eeprom->cmd = ETHTOOL_GMODULEEEPROM;
  eeprom->len = kPage;
  ifreq question{};
  std::memcpy(question.ifr_name, interface.data(), interface.size());
  question.ifr_data = reinterpret_cast<char*>(eeprom);
  if (ioctl(socket.get(), SIOCETHTOOL, &question) != 0) return std::nullopt;
  Bytes256 bytes{};
  std::copy_n(request.begin() + sizeof(ethtool_eeprom), kPage, bytes.begin());
  return bytes;
}

}  // namespace

std::optional<spec::CableModule> parse_module_eeprom(std::string_view hex) {
  const auto bytes = bytes_of(trim(hex));
  const ModuleLayout* layout = bytes ? layout_of(*bytes) : nullptr;
  if (!layout) return std::nullopt;
  return spec::CableModule{.form = std::string(layout->form),
                           .medium = medium_at(*bytes, layout->standard),
                           .vendor = text_at(*bytes, layout->vendor),
                           .part_number = text_at(*bytes, layout->part),
                           .length_m = length_of(*bytes, layout->standard)};
}

void read_module_eeproms(LinkTable& table) {
  const UniqueFd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (socket.get() < 0) return;
  for (LinkEntry& link : table.links) {
    if (link.parentbus != "pci" || link.link_type != "ether") continue;
    auto bytes = ask_kernel(socket, link.ifname);
    const ModuleLayout* layout = bytes ? layout_of(*bytes) : nullptr;
    if (!layout) continue;
    std::fill_n(bytes->begin() + static_cast<std::ptrdiff_t>(layout->serial), 16, std::uint8_t{' '});
    link.module_eeprom = hex_of(*bytes);
  }
}

}  // namespace yoke::probe

#include "yoke/link/node_answers.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>

#include "yoke/base/error.h"
#include "yoke/base/text.h"
#include "yoke/spec/cluster_rules.h"

namespace yoke::link {
namespace {

constexpr std::array<std::string_view, 5> kKeyTypes = {"ssh-ed25519", "ecdsa-sha2-nistp256", "ecdsa-sha2-nistp384",
                                                       "ecdsa-sha2-nistp521", "ssh-rsa"};
constexpr std::size_t kMaxKeyText = 4096;  // an RSA key of 16,384 bits has 2,800
constexpr std::size_t kMaxRdmaName = 63;   // IB_DEVICE_NAME_MAX - 1

std::optional<std::string> decode_base64(std::string_view text) {
  if (text.empty() || text.size() % 4 != 0) return std::nullopt;
  const std::size_t padding = text.ends_with("==") ? 2 : text.ends_with('=') ? 1 : 0;
  constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string bytes;
  std::uint32_t bits = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    std::size_t digit = kDigits.find(text[i]);
    if (i >= text.size() - padding) digit = 0;
    if (digit == std::string_view::npos) return std::nullopt;
    bits = bits << 6U | static_cast<std::uint32_t>(digit);
    if (i % 4 != 3) continue;
    for (const unsigned shift : {16U, 8U, 0U}) bytes += static_cast<char>(bits >> shift & 0xffU);
    bits = 0;
  }
  bytes.resize(bytes.size() - padding);
  return bytes;
}

// A key begins with its own type, as a length in four bytes and a text (RFC 4253, 6.6).
bool is_of_type(const std::string& key, std::string_view type) {
  if (key.size() < 4) return false;
  std::uint32_t length = 0;
  for (std::size_t i = 0; i < 4; ++i) length = length << 8U | static_cast<unsigned char>(key[i]);
  if (length != type.size() || key.compare(4, type.size(), type) != 0) return false;
  if (type == "ssh-ed25519") return key.size() == 4 + type.size() + 4 + 32;
  return key.size() > 4 + type.size() + 32;
}

[[noreturn]] void refuse(const std::string& node, const std::string& message, const std::string& hint) {
  throw Error(ErrorCode::kInvalid, fmt::format("{} {}", node, message), hint);
}

void check_device_name(const std::string& name, std::size_t size_max, const std::string& node) {
  if (name.empty() || spec::is_device_name(name, size_max)) return;
  refuse(node, fmt::format("has a device named '{}', which yoke does not write into other files", printable(name, 40)),
         "rename it: letters, digits, '_', '.', '@' and '-'");
}

}  // namespace

std::string checked_key(std::string_view line, const std::string& what, const std::string& node) {
  const std::vector<std::string> words = split(line, ' ');
  const bool one_line = line.size() <= kMaxKeyText && std::none_of(line.begin(), line.end(), [](char c) {
                          return static_cast<unsigned char>(c) < ' ' || c == '\x7f';
                        });
  if (one_line && words.size() >= 2 && std::find(kKeyTypes.begin(), kKeyTypes.end(), words[0]) != kKeyTypes.end()) {
    const std::optional<std::string> key = decode_base64(words[1]);
    if (key && is_of_type(*key, words[0])) return words[0] + " " + words[1];
  }
  refuse(node, fmt::format("gives a {} that is none: '{}'", what, printable(line, 60)),
         "one line 'TYPE BASE64 comment' as ssh-keygen writes it, without options, is what the other nodes may take");
}

SetupFacts checked_facts(SetupFacts facts, const std::string& node) {
  if (facts.public_key) {
    const std::string key = checked_key(*facts.public_key, "public key (~/.ssh/id_ed25519.pub)", node);
    if (!key.starts_with("ssh-ed25519 ")) {
      refuse(node, "has a key of another type in ~/.ssh/id_ed25519.pub",
             "put the Ed25519 key there that belongs there");
    }
    facts.public_key = key + " yoke@" + node;
  }
  for (std::string& key : facts.host_keys) key = checked_key(key, "host key", node);
  check_device_name(facts.management_interface, spec::kMaxInterfaceName, node);
  check_device_name(facts.ssh_interface, spec::kMaxInterfaceName, node);
  for (const std::string& device : facts.rdma_devices) check_device_name(device, kMaxRdmaName, node);
  for (const std::string& rail : facts.rails) check_device_name(rail, spec::kMaxInterfaceName, node);
  return facts;
}

}  // namespace yoke::link

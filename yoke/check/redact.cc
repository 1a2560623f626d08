#include "yoke/check/redact.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>

#include "yoke/base/ip.h"
#include "yoke/base/text.h"

namespace yoke::check {
namespace {

// Words are what stands between characters that no address, token or path part holds.
bool is_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '.' || c == ':' || c == '_' || c == '-' || c == '+' ||
         c == '=' || c == '%';
}

bool is_hex(char c) { return std::isxdigit(static_cast<unsigned char>(c)) != 0; }

bool is_private(Ipv4 address) {
  constexpr std::array kPrivate = {Ipv4Prefix{{0x0A000000}, 8},  Ipv4Prefix{{0xAC100000}, 12},
                                   Ipv4Prefix{{0xC0A80000}, 16}, Ipv4Prefix{{0xA9FE0000}, 16},
                                   Ipv4Prefix{{0x7F000000}, 8},  Ipv4Prefix{{0x64400000}, 10}};
  return address.value == 0 ||
         std::any_of(kPrivate.begin(), kPrivate.end(), [&](const Ipv4Prefix& p) { return p.contains(address); });
}

// "4c:bb:47:0a:10:00" keeps its maker's rail.
std::optional<std::string> hide_mac(std::string_view word) {
  if (word.size() != 17) return std::nullopt;
  for (std::size_t i = 0; i < word.size(); ++i) {
    if (i % 3 == 2 ? word[i] != ':' && word[i] != '-' : !is_hex(word[i])) return std::nullopt;
  }
  return std::string(word.substr(0, 8)) + ":xx:xx:xx";
}

// "enx00e04c680001": udev names an adapter on USB by its address.
std::optional<std::string> hide_mac_in_name(std::string_view word) {
  constexpr std::array<std::string_view, 3> kStarts = {"enx", "wlx", "wwx"};
  const bool named = std::any_of(kStarts.begin(), kStarts.end(), [&](auto s) { return word.starts_with(s); });
  if (!named || word.size() < 15 || !std::all_of(word.begin() + 3, word.begin() + 15, is_hex)) return std::nullopt;
  return std::string(word.substr(0, 9)) + "xxxxxx" + std::string(word.substr(15));
}

// Two colons and more with nothing but hexadecimal digits: IPv6 addresses, GIDs and GUIDs hold the MAC address too. An
// IPv4-mapped one is an IPv4 address.
std::optional<std::string> hide_ipv6(std::string_view word) {
  const auto colons = std::count(word.begin(), word.end(), ':');
  if (colons < 2 || word.size() < 5 || word.find_first_not_of("0123456789abcdefABCDEF:.%") != std::string_view::npos) {
    return std::nullopt;
  }
  // A PCI address ("0002:01:00.0") and a time of day ("10:15:02") are not secret.
  const bool short_groups = colons == 2 && word.find("::") == std::string_view::npos;
  if (short_groups) return std::nullopt;
  return word.starts_with("fe80") || word.starts_with("FE80") ? "fe80::x" : "x:x::x";
}

bool looks_like_token(std::string_view word) {
  constexpr std::array<std::string_view, 8> kStarts = {"hf_",         "sk-",    "ghp_",   "gho_",
                                                       "github_pat_", "glpat-", "nvapi-", "eyJ"};
  const bool known = std::any_of(kStarts.begin(), kStarts.end(), [&](auto s) { return word.starts_with(s); });
  if (known && word.size() >= 12) return true;
  if (word.starts_with("GPU-") && word.size() > 20) return true;
  if (word.size() < 24) return false;
  const auto digits = std::count_if(word.begin(), word.end(), [](unsigned char c) { return std::isdigit(c) != 0; });
  const bool plain = std::all_of(word.begin(), word.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '_' || c == '-' || c == '+' || c == '=';
  });
  return plain && digits >= 4;  // long, and no word of a language
}

// "token=…", "HF_TOKEN=…", "password:…": the value goes whatever it looks like.
std::optional<std::string> hide_value(std::string_view word) {
  const std::size_t sign = word.find_first_of("=:");
  if (sign == std::string_view::npos || sign + 1 >= word.size()) return std::nullopt;
  std::string key(word.substr(0, sign));
  std::transform(key.begin(), key.end(), key.begin(), [](unsigned char c) { return std::tolower(c); });
  constexpr std::array<std::string_view, 6> kKeys = {"token", "secret", "passw", "api_key", "apikey", "serial"};
  const bool secret = std::any_of(kKeys.begin(), kKeys.end(), [&](auto k) { return key.find(k) != std::string::npos; });
  return secret ? std::optional(std::string(word.substr(0, sign + 1)) + "(left out)") : std::nullopt;
}

// A word may hold a port, a prefix length or a key before the address: "enP7s7:8.8.8.8", "host=8.8.8.8".
std::string hide_parts(std::string_view word, const std::vector<std::string>& names) {
  std::string out;
  std::size_t start = 0;
  for (std::size_t i = 0; i <= word.size(); ++i) {
    if (i < word.size() && word[i] != ':' && word[i] != '=') continue;
    const std::string_view part = word.substr(start, i - start);
    const auto address = parse_ipv4(part);
    if (address && !is_private(*address)) {
      out += "x.x.x.x";
    } else if (std::find(names.begin(), names.end(), part) != names.end()) {
      out += "user";
    } else if (const auto name = hide_mac_in_name(part)) {
      out += *name;
    } else {
      out += looks_like_token(part) ? "(left out)" : std::string(part);
    }
    if (i < word.size()) out += word[i];
    start = i + 1;
  }
  return out;
}

std::string hide(std::string_view word, const std::vector<std::string>& names) {
  if (const auto mac = hide_mac(word)) return *mac;
  if (const auto value = hide_value(word)) return *value;
  if (const std::size_t sign = word.find('='); sign != std::string_view::npos) {
    return hide_parts(word.substr(0, sign), names) + "=" + hide(word.substr(sign + 1), names);
  }
  if (const auto ipv6 = hide_ipv6(word)) return *ipv6;
  return hide_parts(word, names);
}

}  // namespace

std::string redact(std::string_view text, const std::vector<std::string>& names) {
  std::string out;
  for (std::size_t i = 0; i < text.size();) {
    if (!is_word(text[i])) {
      out += text[i++];
      continue;
    }
    std::size_t end = i;
    while (end < text.size() && is_word(text[end])) ++end;
    // A full stop or colon that ends a sentence is no part of the word.
    std::size_t tail = end;
    while (tail > i && (text[tail - 1] == '.' || text[tail - 1] == ':')) --tail;
    const bool in_home = out.ends_with("/home/") || out.ends_with("/Users/");
    const bool is_login = out.ends_with("://") && text.substr(tail).starts_with('@');
    out += in_home ? "user" : is_login ? "(left out)" : hide(text.substr(i, tail - i), names);
    out += text.substr(tail, end - tail);
    i = end;
  }
  return out;
}

}  // namespace yoke::check

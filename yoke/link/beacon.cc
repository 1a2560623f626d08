#include "yoke/link/beacon.h"

#include <fmt/format.h>

#include <algorithm>

#include "yoke/base/error.h"
#include "yoke/base/fields.h"
#include "yoke/base/json.h"
#include "yoke/base/text.h"
#include "yoke/spec/cluster_rules.h"

namespace yoke::link {
namespace {

constexpr std::string_view kMagic = "YOKEBCN1";
constexpr std::size_t kHeader = kMagic.size() + 2;
constexpr std::size_t kMaxBody = 1024;  // far below any MTU
constexpr int kMaxPort = 63;

bool is_hex(std::string_view text) { return text.find_first_not_of("0123456789abcdef") == std::string_view::npos; }

bool is_mac(std::string_view text) {
  if (text.size() != 17) return false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (i % 3 == 2 ? text[i] != ':' : !is_hex(text.substr(i, 1))) return false;
  }
  return true;
}

// As the kernel has it: 1 to 15 printable bytes without a slash, a colon or white space.
bool is_interface(std::string_view text) {
  return !text.empty() && text.size() <= 15 && text != "." && text != ".." &&
         std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c < '\x7f' && c != '/' && c != ':'; });
}

[[noreturn]] void refuse(std::string_view what, std::string_view value) {
  throw Error(ErrorCode::kInvalid, fmt::format("a beacon's {} cannot be '{}'", what, printable(value, 80)));
}

// All that may later stand in a table, a command line or a file is checked here, as an unknown client may have sent it.
void check(const Beacon& beacon) {
  if (beacon.node.size() != 32 || !is_hex(beacon.node)) refuse("node", beacon.node);
  if (!spec::is_plain_name(beacon.hostname)) refuse("hostname", beacon.hostname);
  if (!is_interface(beacon.interface)) refuse("interface", beacon.interface);
  if (!is_mac(beacon.mac)) refuse("mac", beacon.mac);
  if (beacon.port < 0 || beacon.port > kMaxPort) refuse("port", std::to_string(beacon.port));
  if (beacon.rail.size() != 1 || beacon.rail[0] < 'A' || beacon.rail[0] > 'Z') refuse("rail", beacon.rail);
  if (!spec::is_plain_name(beacon.version)) refuse("version", beacon.version);
}

}  // namespace

template <class Visitor>
void visit_fields(Visitor& visit, Beacon& beacon) {
  visit.required("node", beacon.node);
  visit.required("hostname", beacon.hostname);
  visit.required("interface", beacon.interface);
  visit.required("mac", beacon.mac);
  visit.required("port", beacon.port);
  visit.required("rail", beacon.rail);
  visit.required("version", beacon.version);
  visit.optional("address", beacon.address);
}

Document to_json(const Beacon& beacon) { return write_fields(beacon); }

void from_json(const Document& document, Beacon& beacon) {
  read_fields(document, beacon);
  check(beacon);
}

std::string encode_beacon(const Beacon& beacon) {
  const std::string body = print_json(to_json(beacon), JsonLayout::kOneLine);
  if (body.size() > kMaxBody) refuse("size", std::to_string(body.size()));
  std::string payload(kMagic);
  payload += static_cast<char>(body.size() >> 8U);
  payload += static_cast<char>(body.size() & 0xFFU);
  return payload + body;
}

Beacon parse_beacon(std::string_view payload) {
  if (!payload.starts_with(kMagic)) throw Error(ErrorCode::kInvalid, "this is no beacon of yoke");
  if (payload.size() < kHeader) throw Error(ErrorCode::kInvalid, "the beacon is cut off");
  const auto byte = [&](std::size_t i) { return static_cast<std::size_t>(static_cast<unsigned char>(payload[i])); };
  const std::size_t size = byte(kMagic.size()) << 8U | byte(kMagic.size() + 1);
  if (size > kMaxBody) throw Error(ErrorCode::kInvalid, fmt::format("a beacon of {} bytes is too long", size));
  if (payload.size() - kHeader < size) throw Error(ErrorCode::kInvalid, "the beacon is cut off");
  return from_json<Beacon>(parse_json(payload.substr(kHeader, size), "beacon"));
}

}  // namespace yoke::link

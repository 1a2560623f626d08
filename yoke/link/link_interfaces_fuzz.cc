// Any text as what `ip` printed: read, or refused as kInvalid; what is read writes back the same.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "yoke/base/check.h"
#include "yoke/base/error.h"
#include "yoke/link/address_changes.h"
#include "yoke/link/interfaces.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace yoke;
  using namespace yoke::link;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    for (const LinkInterface& interface : parse_link_interfaces(text)) {
      YOKE_CHECK(!interface.name.empty(), "an interface without a name");
      YOKE_CHECK(from_json<LinkInterface>(to_json(interface)) == interface, "{}", interface.name);
    }
  } catch (const Error& error) {
    YOKE_CHECK(error.code() == ErrorCode::kInvalid, "{}", error.message());
  }
  try {
    parse_route_interface(text);
  } catch (const Error& error) {
    YOKE_CHECK(error.code() == ErrorCode::kInvalid, "{}", error.message());
  }
  try {
    for (const HeldAddress& address : parse_held_addresses(text, "enp1s0f0np0")) {
      const std::string name = address_name(address.words);
      YOKE_CHECK(address_name(name) == name, "{}", address.words);
    }
  } catch (const Error& error) {
    YOKE_CHECK(error.code() == ErrorCode::kInvalid, "{}", error.message());
  }
  // Printed as text, not as JSON: what is there already needs nothing.
  const std::vector<std::string> routes = parse_routes_of(text, "enp1s0f0np0");
  YOKE_CHECK(commands_to_restore_routes(routes, routes, "enp1s0f0np0").empty(), "{}", routes.size());
  return 0;
}

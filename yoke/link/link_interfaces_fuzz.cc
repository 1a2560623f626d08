// Any text as what `ip -json` printed: read, or refused as kInvalid; what is read writes back the same.
#include <cstdint>
#include <string_view>

#include "yoke/base/check.h"
#include "yoke/base/error.h"
#include "yoke/link/interfaces.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace yoke;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    for (const LinkInterface& interface : parse_link_interfaces(text)) {
      YOKE_CHECK(!interface.name.empty(), "an interface without a name");
      YOKE_CHECK(link_interface_from_json(to_json(interface)) == interface, "{}", interface.name);
    }
  } catch (const Error& error) {
    YOKE_CHECK(error.code() == ErrorCode::kInvalid, "{}", error.message());
  }
  try {
    parse_route_interface(text);
  } catch (const Error& error) {
    YOKE_CHECK(error.code() == ErrorCode::kInvalid, "{}", error.message());
  }
  return 0;
}

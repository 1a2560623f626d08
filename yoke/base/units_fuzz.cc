// Any text: refused with a reason, or taken and then printed exactly and read back as the same value.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "yoke/base/check.h"
#include "yoke/base/units.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto round_trip = [](const auto& parsed, auto parse) {
    if (parsed) {
      YOKE_CHECK(parse(exact(*parsed)) && *parse(exact(*parsed)) == *parsed, "{}", exact(*parsed));
      YOKE_CHECK(!to_string(*parsed).empty());
    } else {
      YOKE_CHECK(!parsed.error().message().empty());
    }
  };
  round_trip(yoke::parse_bytes(text), yoke::parse_bytes);
  round_trip(yoke::parse_bits_per_second(text), yoke::parse_bits_per_second);
  round_trip(yoke::parse_bytes_per_second(text), yoke::parse_bytes_per_second);
  round_trip(yoke::parse_seconds(text), yoke::parse_seconds);
  return 0;
}

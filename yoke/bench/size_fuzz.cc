// Any text: refused with a reason and a hint, or a size that a machine could have.
#include <cstdint>
#include <string_view>

#include "yoke/base/check.h"
#include "yoke/bench/size.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto parsed = yoke::bench::parse_size({reinterpret_cast<const char*>(data), size});
  if (parsed) {
    YOKE_CHECK(parsed->value >= 0 && parsed->value <= std::int64_t{1} << 62, "{}", parsed->value);
  } else {
    YOKE_CHECK(!parsed.error().message().empty() && !parsed.error().hint().empty());
  }
  return 0;
}

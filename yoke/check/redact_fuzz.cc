// Any text: what was hidden once stays hidden, and no public IPv4 address is left.
#include <cstdint>
#include <string>
#include <string_view>

#include "yoke/base/check.h"
#include "yoke/check/redact.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const std::string once = yoke::check::redact(text, {"alice"});
  const std::string with_address = yoke::check::redact(std::string(text) + " 8.8.4.4 ", {"alice"});
  YOKE_CHECK(with_address.find("8.8.4.4 ") == std::string::npos || text.find("8.8.4.4") != std::string_view::npos, "{}",
             with_address);
  YOKE_CHECK(once.size() <= text.size() * 4 + 64);
  return 0;
}

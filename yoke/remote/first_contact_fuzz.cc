// Whatever answers a scan of host keys: no line that known_hosts would read as more than one plain key comes of it.
#include <cstdint>
#include <string>
#include <string_view>

#include "yoke/base/check.h"
#include "yoke/remote/first_contact.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  for (const yoke::remote::HostKey& key : yoke::remote::parse_host_keys(text, {.name = "n", .address = "10.0.0.1"})) {
    YOKE_CHECK(key.line.starts_with("10.0.0.1 "));
    YOKE_CHECK(key.line.find_first_of("\n\r*@#") == std::string::npos);
  }
  return 0;
}

// Any bytes as a frame's payload: refused as kInvalid, or read, and then what we would send for it reads back the same.
#include <cstdint>
#include <string_view>

#include "yoke/base/check.h"
#include "yoke/base/error.h"
#include "yoke/link/beacon.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const yoke::link::Beacon beacon = yoke::link::parse_beacon({reinterpret_cast<const char*>(data), size});
    YOKE_CHECK(yoke::link::parse_beacon(yoke::link::encode_beacon(beacon)) == beacon, "{}", beacon.hostname);
  } catch (const yoke::Error& error) {
    YOKE_CHECK(error.code() == yoke::ErrorCode::kInvalid, "{}", error.message());
  }
  return 0;
}

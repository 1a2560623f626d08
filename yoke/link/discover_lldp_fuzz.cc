// Any bytes as lldpcli's answer: refused as kInvalid, or read, and then our own form of it reads back the same.
#include <cstdint>
#include <string_view>

#include "yoke/base/check.h"
#include "yoke/base/error.h"
#include "yoke/base/fields.h"
#include "yoke/link/discover_lldp.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const auto neighbours = yoke::link::parse_lldp_neighbours({reinterpret_cast<const char*>(data), size});
    YOKE_CHECK(from_json<std::vector<yoke::link::LldpNeighbour>>(yoke::to_document(neighbours)) == neighbours, "{}",
               neighbours.size());
  } catch (const yoke::Error& error) {
    YOKE_CHECK(error.code() == yoke::ErrorCode::kInvalid, "{}", error.message());
  }
  return 0;
}

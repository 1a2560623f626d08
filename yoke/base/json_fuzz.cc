// Any bytes: refused as kInvalid, or read, and then the printed form reads back the same.
#include <cstdint>
#include <string_view>

#include "yoke/base/check.h"
#include "yoke/base/error.h"
#include "yoke/base/json.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const yoke::Document document = yoke::parse_json({reinterpret_cast<const char*>(data), size}, "input");
    const std::string printed = yoke::print_json(document);
    const std::string again = yoke::print_json(yoke::parse_json(printed, "printed"));
    YOKE_CHECK(again == printed, "{} became {}", printed, again);
  } catch (const yoke::Error& error) {
    YOKE_CHECK(error.code() == yoke::ErrorCode::kInvalid, "{}", error.message());
  }
  return 0;
}

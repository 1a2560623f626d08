// Any bytes as a plan: refused as kInvalid, or read, and then what is written of it reads back and writes the same.
#include <cstdint>
#include <string_view>

#include "yoke/base/check.h"
#include "yoke/base/error.h"
#include "yoke/engine/plan.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const yoke::engine::StepPlan plan = yoke::engine::decode_plan({reinterpret_cast<const char*>(data), size});
    const std::string bytes = yoke::engine::encode(plan);
    YOKE_CHECK(yoke::engine::encode(yoke::engine::decode_plan(bytes)) == bytes);
  } catch (const yoke::Error& error) {
    YOKE_CHECK(error.code() == yoke::ErrorCode::kInvalid, "{}", error.message());
  }
  return 0;
}

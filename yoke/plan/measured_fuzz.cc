// Any bytes as a file of measurements: refused as an Error, or rows that are predicted with a finite number or
// declined.
#include <cmath>
#include <cstdint>

#include "yoke/base/check.h"
#include "yoke/base/error.h"
#include "yoke/plan/measured.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const auto rows = yoke::plan::parse_measured({reinterpret_cast<const char*>(data), size}, "input");
    const yoke::plan::Constants constants = yoke::plan::shipped_constants();
    for (const auto& row : rows) {
      const yoke::plan::Question question = yoke::plan::question_of(row);
      YOKE_CHECK(question.answer || !question.why.empty());
      if (question.answer) YOKE_CHECK(!std::isnan(question.answer(constants)), "{}", row.id);
    }
  } catch (const yoke::Error& error) {
    YOKE_CHECK(error.code() == yoke::ErrorCode::kInvalid, "{}", error.message());
  }
  return 0;
}

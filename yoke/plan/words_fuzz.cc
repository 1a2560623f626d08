// Any bytes as --on, as a count, as a size and as a claim: refused as an Error, or numbers that make sense.
#include <cmath>
#include <cstdint>

#include "yoke/base/check.h"
#include "yoke/base/error.h"
#include "yoke/plan/explain.h"
#include "yoke/plan/words.h"

namespace {

template <class Function>
void must_refuse_or_answer(Function function) {
  try {
    function();
  } catch (const yoke::Error& error) {
    YOKE_CHECK(error.code() == yoke::ErrorCode::kUsage, "{}", error.message());
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text{reinterpret_cast<const char*>(data), size};
  must_refuse_or_answer([&] {
    const yoke::plan::Machines machines = yoke::plan::parse_machines(text);
    YOKE_CHECK(machines.nodes >= 1 && machines.gpus_per_node >= 1 && machines.gpu.bandwidth > 0);
  });
  must_refuse_or_answer([&] { YOKE_CHECK(yoke::plan::parse_count(text, "--context") >= 1); });
  must_refuse_or_answer([&] { YOKE_CHECK(yoke::plan::parse_image_size(text).first >= 64); });
  must_refuse_or_answer([&] {
    const auto explained = yoke::plan::explain_claim(text, yoke::plan::shipped_constants());
    YOKE_CHECK(std::isfinite(explained.expected.value) && explained.expected.value >= 0);
  });
  return 0;
}

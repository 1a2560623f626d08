// Any bytes as a config.json of any family: refused as an Error, or facts whose sums make sense.
#include <cstdint>

#include "yoke/base/check.h"
#include "yoke/base/error.h"
#include "yoke/base/json.h"
#include "yoke/spec/model_facts.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text{reinterpret_cast<const char*>(data), size};
  if (const auto sized = yoke::facts_from_size(text)) YOKE_CHECK(yoke::count_model(*sized).total > 0);
  static_cast<void>(yoke::find_model_facts(text));
  try {
    const yoke::ModelFacts model = yoke::facts_from_config(yoke::parse_json(text, "input"));
    const yoke::ModelCount count = yoke::count_model(model);
    YOKE_CHECK(count.total > 0 && count.active <= count.total && count.rest > 0, "{} {}", count.total, count.active);
    YOKE_CHECK(count.embedding_only + count.head + count.rest + model.experts * count.expert == count.total);
    YOKE_CHECK(yoke::cache_values(model, 4096) <= yoke::cache_values(model, 4096, yoke::CacheRule::kAllocated));
  } catch (const yoke::Error& error) {
    YOKE_CHECK(error.code() == yoke::ErrorCode::kInvalid, "{}", error.message());
  }
  return 0;
}

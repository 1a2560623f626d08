// Any bytes as a config.json of any family: refused as an Error, or facts whose sums make sense.
#include <cstdint>

#include "yoke/base/check.h"
#include "yoke/base/error.h"
#include "yoke/base/json.h"
#include "yoke/spec/model_facts.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text{reinterpret_cast<const char*>(data), size};
  if (const auto sized = yoke::spec::facts_from_size(text)) YOKE_CHECK(yoke::spec::count_model(*sized).total > 0);
  static_cast<void>(yoke::spec::find_model_facts(text));
  try {
    const yoke::spec::ModelFacts model = yoke::spec::facts_from_config(yoke::parse_json(text, "input"));
    const yoke::spec::ModelCount count = yoke::spec::count_model(model);
    YOKE_CHECK(count.total > 0 && count.active <= count.total && count.rest > 0, "{} {}", count.total, count.active);
    YOKE_CHECK(count.embedding_only + count.head + count.rest + model.experts * count.expert == count.total);
    YOKE_CHECK(yoke::spec::cache_values(model, 4096) <=
               yoke::spec::cache_values(model, 4096, yoke::spec::CacheRule::kAllocated));
  } catch (const yoke::Error& error) {
    YOKE_CHECK(error.code() == yoke::ErrorCode::kInvalid, "{}", error.message());
  }
  return 0;
}

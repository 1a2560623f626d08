// Any bytes as a config.json: refused as an Error, or a shape with sane sizes that survives being written and read.
#include <cstdint>

#include "yoke/base/check.h"
#include "yoke/base/error.h"
#include "yoke/base/json.h"
#include "yoke/spec/model_config.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const yoke::Document config = yoke::parse_json({reinterpret_cast<const char*>(data), size}, "input");
    const yoke::spec::ModelShape shape = yoke::spec::model_shape_from_config(config);
    YOKE_CHECK(shape.layers > 0 && shape.heads % shape.kv_heads == 0 && shape.head_width % 2 == 0);
    yoke::spec::ModelShape again = yoke::spec::model_shape_from_config(yoke::spec::config_of_model_shape(shape));
    again.qkv_bias = shape.qkv_bias;  // Mistral's config has no key for it
    YOKE_CHECK(again == shape);
  } catch (const yoke::Error& error) {
    YOKE_CHECK(error.code() == yoke::ErrorCode::kInvalid || error.code() == yoke::ErrorCode::kUnsupported, "{}",
               error.message());
  }
  return 0;
}

// Any JSON as a Hub's description of a model: every name that is accepted stays below the folder.
#include <cstdint>
#include <cstdlib>

#include "yoke/base/error.h"
#include "yoke/base/json.h"
#include "yoke/launch/hub.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const auto model =
        yoke::launch::parse_hub_model(yoke::parse_json({reinterpret_cast<const char*>(data), size}, "fuzz"), "a/b");
    for (const auto& file : model.files) {
      if (file.path.starts_with('/') || file.path.starts_with("../")) std::abort();
    }
  } catch (const yoke::Error&) {
  }
  return 0;
}

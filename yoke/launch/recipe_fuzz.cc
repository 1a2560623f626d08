// Any bytes as a recipe: converted into a description that is read again, or refused with an Error.
#include <cstdint>

#include "yoke/base/error.h"
#include "yoke/launch/recipe.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    yoke::launch::convert_recipe({reinterpret_cast<const char*>(data), size}, "fuzz");
  } catch (const yoke::Error&) {
  }
  return 0;
}

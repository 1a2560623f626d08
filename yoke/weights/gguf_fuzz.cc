// Any bytes as a GGUF file: refused as kInvalid or kUnsupported, or every tensor lies in the file and has the size of
// its shape.
#include <cstdint>

#include "yoke/base/check.h"
#include "yoke/base/error.h"
#include "yoke/weights/gguf_file.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  try {
    for (const yoke::weights::GgufTensor& tensor : yoke::weights::parse_gguf(bytes, "input").tensors) {
      const yoke::weights::GgufBlock block = yoke::weights::block_of(tensor.type);
      YOKE_CHECK_EQ(std::ssize(tensor.bytes), tensor.rows * (tensor.columns / block.values) * block.bytes);
      YOKE_CHECK(tensor.bytes.data() >= bytes.data() &&
                     tensor.bytes.data() + tensor.bytes.size() <= bytes.data() + bytes.size(),
                 "{}", tensor.bytes.size());
    }
  } catch (const yoke::Error& error) {
    YOKE_CHECK(error.code() == yoke::ErrorCode::kInvalid || error.code() == yoke::ErrorCode::kUnsupported, "{}",
               error.message());
  }
  return 0;
}

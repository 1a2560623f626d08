// Any bytes as a safetensors file: refused as kInvalid, or every entry lies in the file and has the size of its shape.
#include <cstdint>
#include <string_view>

#include "yoke/base/check.h"
#include "yoke/base/error.h"
#include "yoke/tensor/tensor.h"
#include "yoke/weights/header.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view file(reinterpret_cast<const char*>(data), size);
  try {
    const std::uint64_t length = yoke::weights::header_length(file.substr(0, 8), size, "input");
    const yoke::weights::SafetensorsHeader header = yoke::weights::parse_header(file.substr(8, length), size, "input");
    std::uint64_t at = 8 + length;
    for (const yoke::weights::TensorEntry& entry : header.entries) {
      YOKE_CHECK_EQ(entry.begin, at);
      at = entry.end;
      if (!entry.type) continue;
      const auto bytes = std::as_bytes(std::span(file)).subspan(entry.begin, entry.bytes());
      const yoke::tensor::Tensor tensor(yoke::tensor::Storage::mapped(bytes, nullptr), entry.shape, *entry.type);
      YOKE_CHECK_EQ(entry.bytes(), tensor.bytes());
      YOKE_CHECK(tensor.is_contiguous() && tensor.copied().bytes() == bytes.size());
    }
    YOKE_CHECK_EQ(at, size);
  } catch (const yoke::Error& error) {
    YOKE_CHECK(error.code() == yoke::ErrorCode::kInvalid, "{}", error.message());
  }
  return 0;
}

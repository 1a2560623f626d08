// The header of a safetensors file: which tensors it holds, and where. It comes from outside and is believed in
// nothing: a parsed header has unique names, known element types, sizes that match shapes, and data that cover the file
// exactly, without holes or overlaps. Pure: bytes in, entries out (fuzzed by safetensors_fuzz.cc).
//
// The format: u64 little-endian length N, N bytes of JSON, data. An entry's offsets count from the data's start.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "yoke/tensor/dtype.h"
#include "yoke/tensor/shape.h"

namespace yoke::weights {

struct TensorEntry {
  std::string name;
  std::string stored_type;            // as the file names it: "BF16"
  std::optional<tensor::DType> type;  // nothing: a type the format knows, but yoke does not read (F4, C64 …)
  tensor::Shape shape;
  std::uint64_t begin = 0;  // in the file, not in its data
  std::uint64_t end = 0;

  std::uint64_t bytes() const { return end - begin; }
};

struct SafetensorsHeader {
  std::vector<TensorEntry> entries;  // in the order of their data
  std::map<std::string, std::string> metadata;
};

inline constexpr std::uint64_t kHeaderPrefixBytes = 8;
inline constexpr std::uint64_t kMaxHeaderBytes = 100'000'000;  // the reference implementation's limit

// The length of the JSON that the first 8 bytes announce; Error where the file cannot hold it.
std::uint64_t header_length(std::string_view first_bytes, std::uint64_t file_size, const std::string& file);
// `json` is the header_length() bytes after the first 8.
SafetensorsHeader parse_header(std::string_view json, std::uint64_t file_size, const std::string& file);

// kInvalid beyond limits::kTensorNameBytes.
void check_tensor_name(const std::string& name, const std::string& file);

// The format's name of a type: "F8_E4M3".
std::string_view safetensors_name(tensor::DType type);

}  // namespace yoke::weights

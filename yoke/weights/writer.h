// Writes a safetensors file piece by piece, in memory that does not depend on its size.
//
//   SafetensorsWriter writer("model.safetensors", {{"a", DType::kF32, {2, 3}}, {"b", DType::kBf16, {5}}});
//   writer.append(bytes_of_a);  writer.append(bytes_of_b);   // in that order, in pieces of any size
//   writer.finish();
//
// The file appears whole with finish() or not at all: it grows under a temporary name beside its place, which goes
// when the writer goes. Room for all of it is reserved first, so that a disk that is too small is reported before the
// work. One thread at a time.
#pragma once
#include <cstddef>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "yoke/base/files.h"
#include "yoke/tensor/dtype.h"
#include "yoke/tensor/shape.h"

namespace yoke::weights {

struct TensorDeclaration {
  std::string name;
  tensor::DType type = tensor::DType::kF32;
  tensor::Shape shape;

  Bytes size() const { return Bytes{shape.count() * static_cast<std::int64_t>(tensor::size_of(type))}; }
};

class SafetensorsWriter {
 public:
  // Error(kConflict) where the file exists, kExhausted where the disk has no room.
  SafetensorsWriter(std::filesystem::path file, const std::vector<TensorDeclaration>& tensors,
                    const std::map<std::string, std::string>& metadata = {{"format", "pt"}});
  ~SafetensorsWriter();
  SafetensorsWriter(const SafetensorsWriter&) = delete;
  SafetensorsWriter& operator=(const SafetensorsWriter&) = delete;

  void append(std::span<const std::byte> data);
  void finish();  // all declared bytes must have come

 private:
  void flush();

  std::filesystem::path file_;
  std::string temporary_;  // empty once it is gone
  UniqueFd fd_;
  std::string buffer_;
  std::uint64_t expected_ = 0;  // bytes of data
  std::uint64_t appended_ = 0;
};

}  // namespace yoke::weights

// Small model folders for the tests of this folder: tensors by name, written by the real writer.
#pragma once
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "yoke/base/files.h"
#include "yoke/weights/writer.h"

namespace yoke::weights {

struct StoredTensor {
  TensorDeclaration declaration;
  std::vector<std::byte> bytes;
};

template <class T>
StoredTensor stored(std::string name, tensor::DType type, tensor::Shape shape, const std::vector<T>& values) {
  StoredTensor tensor{{std::move(name), type, shape}, std::vector<std::byte>(values.size() * sizeof(T))};
  if (!values.empty()) std::memcpy(tensor.bytes.data(), values.data(), tensor.bytes.size());
  return tensor;
}

inline StoredTensor stored_f32(std::string name, tensor::Shape shape) {
  std::vector<float> values(static_cast<std::size_t>(shape.count()));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  return stored(std::move(name), tensor::DType::kF32, shape, values);
}

inline void write_tensors(const std::filesystem::path& file, const std::vector<StoredTensor>& tensors) {
  std::vector<TensorDeclaration> declarations;
  for (const StoredTensor& tensor : tensors) declarations.push_back(tensor.declaration);
  SafetensorsWriter writer(file, declarations);
  for (const StoredTensor& tensor : tensors) writer.append(tensor.bytes);
  writer.finish();
}

inline void write_model(const std::filesystem::path& folder, const std::string& config,
                        const std::vector<StoredTensor>& tensors) {
  write_file_atomically(folder / "config.json", config);
  write_tensors(folder / "model.safetensors", tensors);
}

}  // namespace yoke::weights

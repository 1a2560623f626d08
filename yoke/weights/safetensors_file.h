// One safetensors file, mapped: its tensors as views of the mapping. Nothing but the header is read until somebody
// reads a view. Any thread may use it.
#pragma once
#include <map>
#include <memory>
#include <string>

#include "yoke/tensor/tensor.h"
#include "yoke/weights/header.h"
#include "yoke/weights/mapped_file.h"

namespace yoke::weights {

class SafetensorsFile {
 public:
  explicit SafetensorsFile(const std::filesystem::path& file);

  const std::filesystem::path& path() const { return mapping_->path(); }
  const SafetensorsHeader& header() const { return header_; }
  const TensorEntry* find(const std::string& name) const;  // null pointer when absent
  const MappedFile& mapping() const { return *mapping_; }

  // The whole tensor, as it lies in the file: perhaps misaligned. Error(kUnsupported) for a type that yoke does not
  // read.
  tensor::Tensor view(const TensorEntry& entry) const;

 private:
  std::shared_ptr<const MappedFile> mapping_;
  SafetensorsHeader header_;
  std::map<std::string, std::size_t> places_;  // name to index in header_.entries
};

}  // namespace yoke::weights

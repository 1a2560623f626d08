// A model folder: config.json and the weights beside it, in one safetensors file or in shards. Files are mapped; a
// matrix is returned as views, and only what describes it is read at once (shapes, scalars, column orders).
//
//   ModelFiles files("/models/llama-3.1-8b-w4a16");
//   Matrix q = files.load_matrix("model.layers.0.self_attn.q_proj", Slice::rows({0, 2048}));
//   auto packed = backend.pack(q);    // copies what this rank holds
//   files.drop(q);                    // the source pages go
//   …
//   files.check_unchanged();          // nobody wrote to the files meanwhile
//
// The folder is only read, never written to. Views keep their file mapped when this is gone. Any thread may load; what
// happens when somebody changes a file meanwhile is described in mapped_file.h.
#pragma once
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "yoke/base/document.h"
#include "yoke/base/units.h"
#include "yoke/tensor/matrix.h"
#include "yoke/weights/quantization.h"
#include "yoke/weights/safetensors_file.h"
#include "yoke/weights/weight_source.h"

namespace yoke::weights {

struct ModelFilesOptions {
  std::string stem = "model";  // of "model.safetensors" and "model.safetensors.index.json"
};

class ModelFiles : public WeightSource {
 public:
  // Opens every file and checks all headers and the index against each other.
  explicit ModelFiles(std::filesystem::path folder, const ModelFilesOptions& options = {});

  const std::filesystem::path& folder() const { return folder_; }
  const Document& config() const override { return config_; }
  const Quantization& quantization() const { return quantization_; }

  std::vector<std::string> tensor_names() const;  // sorted
  bool has_tensor(const std::string& name) const { return places_.contains(name); }
  const TensorEntry& entry(const std::string& name) const;              // Error(kNotFound) suggests the nearest name
  const std::filesystem::path& file_of(const std::string& name) const;  // that holds the tensor
  Bytes bytes() const;                                                  // of all tensors

  // A copy of the slice, for small things that are kept: norms, biases.
  tensor::Tensor load_tensor(const std::string& name, const tensor::Slice& slice = {}) const;

  // A module's weight in whatever format it is stored: "lm_head", not "lm_head.weight". A slice that would cut a
  // quantization group is an Error whose hint names the numbers of ranks that work.
  bool has_matrix(const std::string& module) const;
  tensor::Matrix load_matrix(const std::string& module, const tensor::Slice& slice = {}) const;

  // The tensor as it lies in the file, whole and perhaps misaligned.
  tensor::Tensor view(const std::string& name) const;

  // A number in hex that two folders share only where they hold the same model: of config.json, the sizes and headers
  // of all files, and a little of the data of many tensors. It reads some hundred pages, whatever the model's size, so
  // it notices another model, and not a single changed weight.
  std::string fingerprint() const override;

  void drop(const tensor::Tensor& view, PageCache cache = PageCache::kDropped) const;
  void drop(const tensor::Matrix& view, PageCache cache = PageCache::kDropped) const;
  void check_unchanged() const override;

  // What done_with() does about the page cache. It is kept unless memory is scarce: then the next start, or a rank that
  // is started again, reads from memory, and ranks of one node read each page once.
  void set_page_cache(PageCache cache) { page_cache_ = cache; }

  // ---- WeightSource
  std::string where() const override { return folder_.native(); }
  tensor::MatrixInfo describe(const std::string& module, const tensor::Slice& slice = {}) const override {
    return tensor::describe(load_matrix(module, slice));
  }
  std::int64_t row_step(const std::string& module) const override { return load_matrix(module).row_step(); }
  tensor::Matrix matrix(const std::string& module, const tensor::Slice& slice = {}) const override {
    return load_matrix(module, slice);
  }
  tensor::Shape vector_shape(const std::string& name) const override { return entry(name).shape; }
  tensor::Tensor vector(const std::string& name, const tensor::Slice& slice = {}) const override {
    return load_tensor(name, slice);
  }
  void will_need(const std::string& module, const tensor::Slice& slice = {}) const override;
  void done_with(const tensor::Matrix& matrix) const override { drop(matrix, page_cache_); }

 private:
  struct Place {
    const SafetensorsFile* file;
    const TensorEntry* entry;
  };
  void open_single(const std::filesystem::path& file);
  void open_shards(const std::filesystem::path& index);
  const Place& place(const std::string& name) const;
  // Calls with the file and the bytes of a view, if it looks into one of these files.
  void for_bytes_of(const tensor::Tensor& view,
                    const std::function<void(const MappedFile&, std::span<const std::byte>)>& take) const;

  std::filesystem::path folder_;
  Document config_;
  Document legacy_;  // quantize_config.json; null where there is none
  Quantization quantization_;
  PageCache page_cache_ = PageCache::kKept;
  std::map<std::string, std::unique_ptr<SafetensorsFile>> files_;  // by file name
  std::map<std::string, Place> places_;                            // by tensor name
};

}  // namespace yoke::weights

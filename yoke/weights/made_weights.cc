#include "yoke/weights/made_weights.h"

#include <fmt/format.h>

#include "yoke/base/error.h"
#include "yoke/base/hash.h"
#include "yoke/base/json.h"
#include "yoke/spec/model_config.h"

namespace yoke::weights {

MadeWeights::MadeWeights(const MakeModelOptions& options)
    : options_(options), config_(spec::config_of_model_shape(options.shape)) {
  for (MadeTensor& tensor : made_tensors(options_)) {
    const std::string name = tensor.declaration.name;
    tensors_.emplace(name, std::move(tensor));
  }
}

const MadeTensor& MadeWeights::entry(const std::string& name) const {
  const auto found = tensors_.find(name);
  if (found != tensors_.end()) return found->second;
  throw Error(ErrorCode::kNotFound, fmt::format("a made model has no tensor '{}'", name));
}

// Without content only the address space is taken, not the memory.
tensor::Tensor MadeWeights::tensor(const std::string& name, Content content) const {
  const MadeTensor& made = entry(name);
  tensor::Tensor tensor = tensor::Tensor::empty(made.declaration.shape, made.declaration.type);
  if (content == Content::kMade) made.fill(0, {tensor.mutable_raw(), tensor.bytes()});
  return tensor;
}

tensor::Matrix MadeWeights::whole(const std::string& module, Content content) const {
  if (tensors_.contains(module + ".weight") && !tensors_.contains(module + ".weight_scale")) {
    return plain_matrix(tensor(module + ".weight", content));
  }
  const bool is_packed = tensors_.contains(module + ".weight_packed");
  const bool is_fp8 = !is_packed && options_.format == MakeFormat::kFp8;
  tensor::Matrix matrix;
  matrix.values = tensor(module + (is_fp8 ? ".weight" : ".weight_packed"), content);
  matrix.scales = tensor(module + ".weight_scale", content);
  matrix.rows = matrix.values.extent(0);
  if (is_fp8) {
    matrix.format = tensor::MatrixFormat::kFp8;
    matrix.columns = matrix.values.extent(1);
  } else if (tensors_.contains(module + ".weight_global_scale")) {
    matrix.format = tensor::MatrixFormat::kNvfp4;
    matrix.columns = matrix.values.extent(1) * 2;
    // The file holds the divisor.
    matrix.global_scale = 1 / tensor(module + ".weight_global_scale", Content::kMade).data<float>()[0];
  } else {
    const bool is_head = module == "model.embed_tokens" || module == "lm_head";
    const bool is_int8 = is_head ? options_.head == HeadFormat::kInt8 : options_.format == MakeFormat::kW8a16;
    matrix.format = is_int8 ? tensor::MatrixFormat::kInt8 : tensor::MatrixFormat::kInt4;
    matrix.columns = matrix.values.extent(1) * (is_int8 ? 4 : tensor::kNibblesPerWord);
    if (is_int8) {
      matrix.values = {matrix.values.storage(), {matrix.rows, matrix.columns}, tensor::DType::kU8};
    }
  }
  matrix.scale_columns = matrix.columns / matrix.scales.extent(1);
  matrix.check();
  return matrix;
}

tensor::MatrixInfo MadeWeights::describe(const std::string& module, const tensor::Slice& slice) const {
  return tensor::describe(whole(module, Content::kNone).sliced(slice));
}

std::int64_t MadeWeights::row_step(const std::string& module) const { return whole(module, Content::kNone).row_step(); }

tensor::Matrix MadeWeights::matrix(const std::string& module, const tensor::Slice& slice) const {
  return whole(module, Content::kMade).sliced(slice);
}

tensor::Shape MadeWeights::vector_shape(const std::string& name) const { return entry(name).declaration.shape; }

tensor::Tensor MadeWeights::vector(const std::string& name, const tensor::Slice& slice) const {
  const tensor::Tensor whole = tensor(name, Content::kMade);
  return slice.axis == tensor::Slice::Axis::kRows ? whole.slice(0, slice.range).copied() : whole;
}

std::string MadeWeights::fingerprint() const {
  std::string all = yoke::print_json(config_, yoke::JsonLayout::kOneLine);
  all += fmt::format(" {} {} {}", static_cast<int>(options_.format), static_cast<int>(options_.head), options_.seed);
  return yoke::sha256_hex(all);
}

}  // namespace yoke::weights

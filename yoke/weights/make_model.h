// Makes a model folder of a shape with random weights: what a real one is in every way but what it says. For tests,
// demonstrations and measurements, where speed and memory count and the words do not.
//
//   make_model("/models/made", {.shape = *find_model_shape("llama-3.2-1b"), .format = MakeFormat::kW4a16});
//
// Every matrix has a deviation of 1 / sqrt(inputs), queries and keys twice that, and norms are 1: activations stay near
// 1 through any depth, and greedy text is varied. What a tensor holds depends on the seed and its name alone: a model
// of fewer layers is the beginning of the larger one.
#pragma once
#include <array>
#include <cstdint>
#include <filesystem>
#include <utility>

#include "yoke/spec/model_catalogue.h"
#include "yoke/weights/model_folder_writer.h"

namespace yoke::weights {

// As the weights of the layers' linears are stored; norms stay bf16 beside quantized ones, and so do embedding and head
// unless HeadFormat says otherwise.
enum class MakeFormat {
  kF32,
  kBf16,
  kF16,
  kW4a16,  // compressed-tensors pack-quantized: symmetric int4 in groups of 128 columns (32 in narrow models)
  kW8a16,  // the same with int8
  kFp8,    // compressed-tensors float-quantized: e4m3 with one scale for each row
  kNvfp4,  // compressed-tensors nvfp4-pack-quantized: e2m1 in blocks of 16
};
constexpr auto enum_names(MakeFormat) {
  using F = MakeFormat;
  return std::array{std::pair{"w4a16", F::kW4a16}, std::pair{"w8a16", F::kW8a16}, std::pair{"bf16", F::kBf16},
                    std::pair{"f16", F::kF16},     std::pair{"f32", F::kF32},     std::pair{"fp8", F::kFp8},
                    std::pair{"nvfp4", F::kNvfp4}};
}
// Of embedding and head: plain, or as the linears of kW4a16 and kW8a16, as the files of other programs have them.
enum class HeadFormat { kPlain, kInt4, kInt8 };

struct MakeModelOptions {
  spec::ModelShape shape;  // as many layers as it says
  MakeFormat format = MakeFormat::kBf16;
  HeadFormat head = HeadFormat::kPlain;
  std::uint64_t seed = 1;
  std::int64_t int4_group = 0;  // columns that share a scale (of int8 too); 0: 128, or 32 in narrow models
  Bytes shard_size = kShardSizeUsual;
};

Bytes made_model_size(const MakeModelOptions& options);  // of its tensors, before anything is written

// Errors as ModelFolderWriter's. Where it fails or is interrupted, nothing is left.
WrittenModel make_model(const std::filesystem::path& folder, const MakeModelOptions& options);

}  // namespace yoke::weights

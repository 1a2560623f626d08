// The same model with more layers that change nothing: copies of the last layer whose two output projections (o_proj,
// down_proj) are exactly zero, so that each adds zero to the stream, and logits keep every bit. What grows is memory
// and work. So the model that answers well can be made one that no single machine holds.
//
// Works on every stored format that ModelFiles reads. The source is only read.
#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>

#include "yoke/base/document.h"
#include "yoke/weights/model_files.h"
#include "yoke/weights/model_folder_writer.h"

namespace yoke::weights {

struct GrowOptions {
  std::int64_t layers = 0;  // in all, more than there are
  Bytes shard_size = kShardSizeUsual;
};

inline constexpr std::int64_t kMaxLayers = 100'000;

std::int64_t layers_of(const ModelFiles& files);
// How many layers in all make the tensors `size` at least.
std::int64_t layers_for_size(const ModelFiles& files, Bytes size);
Bytes size_with_layers(const ModelFiles& files, std::int64_t layers);

// Everything beside the weights is copied along: tokenizer, template, goldens (they stay right). Errors as
// ModelFolderWriter's; kInvalid where the layers are not more than there are. Where it fails, nothing is left.
WrittenModel grow_model(const ModelFiles& files, const std::filesystem::path& folder, const GrowOptions& options);

// config.json for more layers: their number, and every list that names layers or has one entry for each.
Document grown_config(const Document& config, std::int64_t layers);

}  // namespace yoke::weights

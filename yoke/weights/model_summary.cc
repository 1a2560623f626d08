#include "yoke/weights/model_summary.h"

#include <algorithm>
#include <map>
#include <set>

#include "yoke/spec/model_config.h"
#include "yoke/tensor/matrix.h"

namespace yoke::weights {
namespace {

constexpr std::int64_t kNibblesPerByte = 2;

struct Stored {
  std::string kind;
  std::int64_t parameters_per_element = 0;
};

// By the names and types that the formats use: see load_matrix.cc, which reads them.
Stored classify(const ModelFiles& files, const std::string& name, const TensorEntry& entry) {
  const std::size_t dot = name.rfind('.');
  const std::string part = dot == std::string::npos ? name : name.substr(dot + 1);
  const std::string module = name.substr(0, dot == std::string::npos ? 0 : dot);
  const std::string plain(entry.type ? tensor::to_string(*entry.type) : std::string_view(entry.stored_type));
  if (part == "weight_packed" && entry.type == tensor::DType::kI32) {
    if (files.quantization().scheme(module).bits == 8) return {"int8", 4};
    return {"int4", tensor::kNibblesPerWord};
  }
  if (part == "weight" && entry.type == tensor::DType::kI8) return {"int8", 1};
  if (part == "qweight") return {"int4", tensor::kNibblesPerWord};
  if (part == "weight_packed") return {"nvfp4", kNibblesPerByte};
  if (part == "weight" && entry.type == tensor::DType::kU8 && files.has_tensor(module + ".weight_scale_2")) {
    return {"nvfp4", kNibblesPerByte};
  }
  if (part == "weight" && entry.type == tensor::DType::kF8E4m3) return {"fp8", 1};
  if (part == "weight" || part == "bias") return {plain, 1};
  return {"scales", 0};
}

std::string catalogue_names(spec::ModelShape shape) {
  std::string names;
  for (spec::ModelShape known : spec::model_catalogue()) {
    shape.name = known.name;
    known.layers = shape.layers;  // a grown or shortened one is of the same make
    if (known == shape) names += (names.empty() ? "" : ", ") + std::string(known.name);
  }
  return names;
}

}  // namespace

ModelSummary summarize_model(const ModelFiles& files) {
  ModelSummary summary{.shape = spec::model_shape_from_config(files.config()),
                       .quantization = files.quantization().method()};
  summary.catalogued = catalogue_names(summary.shape);
  std::map<std::string, StoredKind> kinds;
  std::set<std::string> weight_files;
  for (const std::string& name : files.tensor_names()) {
    const TensorEntry& entry = files.entry(name);
    const Stored stored = classify(files, name, entry);
    StoredKind& kind = kinds[stored.kind];
    const Bytes bytes{static_cast<std::int64_t>(entry.bytes())};
    kind.name = stored.kind;
    ++kind.tensors;
    kind.parameters += entry.shape.count() * stored.parameters_per_element;
    kind.bytes += bytes;
    summary.parameters += entry.shape.count() * stored.parameters_per_element;
    summary.bytes += bytes;
    weight_files.insert(files.file_of(name).filename());
  }
  for (const auto& [name, kind] : kinds) summary.kinds.push_back(kind);
  std::stable_sort(summary.kinds.begin(), summary.kinds.end(),
                   [](const StoredKind& a, const StoredKind& b) { return a.bytes > b.bytes; });
  for (const std::string& name : weight_files) {
    const auto size = std::filesystem::file_size(files.folder() / name);
    summary.files.push_back({name, {static_cast<std::int64_t>(size)}});
  }
  return summary;
}

}  // namespace yoke::weights

#include "yoke/weights/model_files.h"

#include <fmt/format.h>

#include <algorithm>

#include "yoke/base/error.h"
#include "yoke/base/fields.h"
#include "yoke/base/files.h"
#include "yoke/base/json.h"
#include "yoke/base/limits.h"
#include "yoke/base/text.h"

namespace yoke::weights {
namespace fs = std::filesystem;
namespace {

Document read_json_file(const fs::path& file) { return parse_json(read_file(file), file.native()); }

Document read_config(const fs::path& folder) {
  std::error_code ignored;
  if (!fs::is_directory(folder, ignored)) {
    throw Error(ErrorCode::kNotFound, fmt::format("there is no model folder '{}'", folder.native()),
                "give a folder that holds config.json and model.safetensors");
  }
  const fs::path file = folder / "config.json";
  if (!fs::exists(file, ignored)) {
    throw Error(ErrorCode::kInvalid, fmt::format("{} is not a model folder: it holds no config.json", folder.native()),
                "give a folder in the Hugging Face layout: config.json, model.safetensors, tokenizer.json");
  }
  Document config = read_json_file(file);
  if (config.kind != Document::Kind::kMap) refuse_field(config, "a JSON object");
  return config;
}

Error no_weights(const fs::path& folder, const std::string& stem) {
  std::string other;
  for (const auto& entry : fs::directory_iterator(folder)) {
    const std::string extension = entry.path().extension();
    if (extension == ".bin" || extension == ".gguf" || extension == ".pth" || extension == ".pt") {
      other = entry.path().filename();
    }
  }
  return {ErrorCode::kNotFound,
          fmt::format("{} holds neither {}.safetensors nor {}.safetensors.index.json", folder.native(), stem, stem),
          other.empty() ? "fetch the weights again"
                        : fmt::format("{} is another format: yoke reads safetensors", printable(other, 80))};
}

// A shard lies beside the index: a name that leads elsewhere is refused.
void check_shard_name(const std::string& shard, const Document& place) {
  if (shard.empty() || shard == "." || shard == ".." || shard.find('/') != std::string::npos ||
      shard.find('\0') != std::string::npos) {
    refuse_field(place, "the name of a file beside the index");
  }
}

}  // namespace

ModelFiles::ModelFiles(fs::path folder, const ModelFilesOptions& options)
    : folder_(std::move(folder)), config_(read_config(folder_)) {
  std::error_code ignored;
  const fs::path legacy = folder_ / "quantize_config.json";
  legacy_ = fs::exists(legacy, ignored) ? read_json_file(legacy) : Document::null();
  quantization_ = Quantization(config_, legacy_);
  const fs::path index = folder_ / (options.stem + ".safetensors.index.json");
  const fs::path single = folder_ / (options.stem + ".safetensors");
  // The whole before its parts: an index may have been left behind where shards were joined.
  if (fs::exists(single, ignored)) {
    open_single(single);
  } else if (fs::exists(index, ignored)) {
    open_shards(index);
  } else {
    throw no_weights(folder_, options.stem);
  }
}

void ModelFiles::open_single(const fs::path& file) {
  auto opened = std::make_unique<SafetensorsFile>(file);
  for (const TensorEntry& entry : opened->header().entries) places_.emplace(entry.name, Place{opened.get(), &entry});
  files_.emplace(file.filename(), std::move(opened));
}

void ModelFiles::open_shards(const fs::path& index) {
  const Document document = read_json_file(index);
  const Document* const map = document.find("weight_map");
  if (map == nullptr || map->kind != Document::Kind::kMap || map->fields.empty()) {
    throw Error(ErrorCode::kInvalid, fmt::format("{} has no weight_map", index.native()), "fetch the index again");
  }
  for (const auto& [name, value] : map->fields) {
    const auto shard = from_json<std::string>(value);
    check_shard_name(shard, value);
    check_tensor_name(name, index.native());
    auto& file = files_[shard];
    if (!file) {
      if (files_.size() > limits::kModelShards) {
        throw Error(ErrorCode::kInvalid,
                    fmt::format("{} names more than {} shards", index.native(), limits::kModelShards));
      }
      std::error_code ignored;
      if (!fs::exists(folder_ / shard, ignored)) {
        throw Error(ErrorCode::kNotFound,
                    fmt::format("{} names the shard {}, which is not there", index.native(), printable(shard, 120)),
                    "the download is not complete: fetch the model again");
      }
      file = std::make_unique<SafetensorsFile>(folder_ / shard);
    }
    places_.emplace(name, Place{file.get(), file->find(name)});
  }
  for (const auto& [name, place] : places_) {
    if (place.entry != nullptr) continue;
    const auto holder = std::find_if(files_.begin(), files_.end(),
                                     [&](const auto& file) { return file.second->find(name) != nullptr; });
    throw Error(ErrorCode::kInvalid,
                fmt::format("the tensor '{}' is not in {}, where the index has it{}", printable(name, 120),
                            place.file->path().native(),
                            holder == files_.end() ? "" : fmt::format(": it is in {}", printable(holder->first, 120))),
                "index and shards are not of one model: fetch them again");
  }
}

std::vector<std::string> ModelFiles::tensor_names() const {
  std::vector<std::string> names;
  for (const auto& [name, place] : places_) names.push_back(name);
  return names;
}

const ModelFiles::Place& ModelFiles::place(const std::string& name) const {
  const auto found = places_.find(name);
  if (found != places_.end()) return found->second;
  const auto meant = nearest(name, tensor_names());
  throw Error(ErrorCode::kNotFound, fmt::format("{} holds no tensor '{}'", folder_.native(), printable(name, 120)),
              meant ? fmt::format("there is one named '{}'", printable(*meant, 120))
                    : "the model is not complete, or of another kind");
}

const TensorEntry& ModelFiles::entry(const std::string& name) const { return *place(name).entry; }

const fs::path& ModelFiles::file_of(const std::string& name) const { return place(name).file->path(); }

Bytes ModelFiles::bytes() const {
  std::uint64_t sum = 0;
  for (const auto& [name, place] : places_) sum += place.entry->bytes();
  return {static_cast<std::int64_t>(sum)};
}

tensor::Tensor ModelFiles::view(const std::string& name) const {
  const Place& found = place(name);
  return found.file->view(*found.entry);
}

tensor::Tensor ModelFiles::load_tensor(const std::string& name, const tensor::Slice& slice) const {
  tensor::Tensor tensor = view(name);
  if (slice.axis != tensor::Slice::Axis::kWhole) {
    const std::size_t axis = slice.axis == tensor::Slice::Axis::kRows ? 0 : 1;
    if (axis >= tensor.shape().rank()) {
      throw Error(ErrorCode::kInvalid,
                  fmt::format("{}: the tensor '{}' is {}: it has no such axis to split", file_of(name).native(),
                              printable(name, 120), tensor::to_string(tensor.shape())));
    }
    try {
      tensor::check_cut(slice.range, tensor.extent(axis), 1, axis == 0 ? "rows" : "columns");
    } catch (Error& error) {
      throw std::move(error).in(fmt::format("loading '{}'", printable(name, 120)));
    }
    tensor = tensor.slice(axis, slice.range);
  }
  tensor::Tensor copy = tensor.copied();
  place(name).file->mapping().check_unchanged();  // else the copy may be of two files
  return copy;
}

void ModelFiles::for_bytes_of(const tensor::Tensor& view,
                              const std::function<void(const MappedFile&, std::span<const std::byte>)>& take) const {
  if (view.storage().kind() != tensor::Storage::Kind::kMapped || view.count() == 0) return;
  std::int64_t last = 0;
  for (std::size_t axis = 0; axis < view.shape().rank(); ++axis) last += (view.extent(axis) - 1) * view.stride(axis);
  const std::size_t size = (static_cast<std::size_t>(last) + 1) * tensor::size_of(view.type());
  for (const auto& [name, file] : files_) {
    const std::span<const std::byte> bytes = file->mapping().bytes();
    if (view.raw() < bytes.data() || view.raw() >= bytes.data() + bytes.size()) continue;
    take(file->mapping(), {view.raw(), size});
  }
}

void ModelFiles::drop(const tensor::Tensor& view, PageCache cache) const {
  for_bytes_of(view, [&](const MappedFile& file, std::span<const std::byte> bytes) { file.drop(bytes, cache); });
}

void ModelFiles::drop(const tensor::Matrix& view, PageCache cache) const {
  for (const tensor::Tensor* part : {&view.values, &view.scales, &view.zeros, &view.order}) drop(*part, cache);
}

void ModelFiles::will_need(const std::string& module, const tensor::Slice& slice) const {
  const tensor::Matrix view = load_matrix(module, slice);
  for (const tensor::Tensor* part : {&view.values, &view.scales, &view.zeros, &view.order}) {
    for_bytes_of(*part, [](const MappedFile& file, std::span<const std::byte> bytes) { file.will_need(bytes); });
  }
}

void ModelFiles::check_unchanged() const {
  for (const auto& [name, file] : files_) file->mapping().check_unchanged();
}

}  // namespace yoke::weights

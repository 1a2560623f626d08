#include "yoke/weights/grow_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <set>

#include "yoke/base/error.h"
#include "yoke/base/fields.h"
#include "yoke/base/json.h"

namespace yoke::weights {
namespace fs = std::filesystem;
namespace {

constexpr const char* kLayersKey = "num_hidden_layers";
constexpr std::size_t kCopyBytes = 4 << 20;

std::string layer_prefix(std::int64_t layer) { return fmt::format("model.layers.{}.", layer); }

// A tensor of the new model: one of the old, under its own name or a new layer's, as it is or with every byte the same.
struct Part {
  std::string name;
  std::string source;
  std::optional<std::byte> every_byte = std::nullopt;
};

bool is_output(const std::string& name) {
  return name.find(".self_attn.o_proj.") != std::string::npos || name.find(".mlp.down_proj.") != std::string::npos;
}

// What makes an output projection exactly zero in each format: numbers of zero, or codes that are their own zero
// point. Scales, shapes and column orders stay. Nothing: the tensor is copied.
std::optional<std::byte> zeroing_byte(const ModelFiles& files, const std::string& name) {
  const std::string part = name.substr(name.rfind('.') + 1);
  const std::byte middle =
      files.quantization().scheme(name.substr(0, name.rfind('.'))).bits == 8 ? std::byte{0x80} : std::byte{0x88};
  const bool is_words = files.entry(name).type == tensor::DType::kI32;
  if (part == "weight" || part == "bias") return std::byte{0};
  if (part == "weight_packed") return is_words ? middle : std::byte{0};
  if (part == "weight_zero_point") return is_words ? middle : std::byte{0};  // of whole bytes the codes are zero too
  if (part == "qweight") return std::byte{0x88};
  // The first GPTQ stored its zeros less one.
  if (part == "qzeros") return files.quantization().gptq_zero_offset() == 1 ? std::byte{0x77} : std::byte{0x88};
  return std::nullopt;
}

// In the order of the files, so that they are read from front to back.
std::vector<std::string> names_in_file_order(const ModelFiles& files) {
  std::vector<std::string> names = files.tensor_names();
  std::sort(names.begin(), names.end(), [&](const std::string& a, const std::string& b) {
    return std::pair(files.file_of(a), files.entry(a).begin) < std::pair(files.file_of(b), files.entry(b).begin);
  });
  return names;
}

std::vector<std::string> last_layer_names(const ModelFiles& files) {
  const std::string prefix = layer_prefix(layers_of(files) - 1);
  std::vector<std::string> names = names_in_file_order(files);
  std::erase_if(names, [&](const std::string& name) { return !name.starts_with(prefix); });
  for (const char* module : {"self_attn.o_proj", "mlp.down_proj"}) {
    if (files.has_matrix(prefix + module)) {
      files.load_matrix(prefix + module);  // a format that yoke does not read, it cannot make zero
      continue;
    }
    throw Error(
        ErrorCode::kUnsupported,
        fmt::format("{} has no '{}{}', which a grown model makes zero", files.folder().native(), prefix, module),
        "yoke grows dense models of the Llama family");
  }
  return names;
}

Bytes layer_size(const ModelFiles& files) {
  std::uint64_t size = 0;
  for (const std::string& name : last_layer_names(files)) size += files.entry(name).bytes();
  return Bytes{static_cast<std::int64_t>(size)};
}

std::vector<Part> plan_parts(const ModelFiles& files, std::int64_t layers) {
  std::vector<Part> parts;
  for (const std::string& name : names_in_file_order(files)) parts.push_back({name, name});
  const std::vector<std::string> last = last_layer_names(files);
  const std::int64_t present = layers_of(files);
  const std::size_t prefix = layer_prefix(present - 1).size();
  for (std::int64_t layer = present; layer < layers; ++layer) {
    for (const std::string& source : last) {
      Part part{layer_prefix(layer) + source.substr(prefix), source};
      if (is_output(source)) part.every_byte = zeroing_byte(files, source);
      parts.push_back(std::move(part));
    }
  }
  return parts;
}

TensorDeclaration declare(const ModelFiles& files, const Part& part) {
  const TensorEntry& entry = files.entry(part.source);
  if (!entry.type) {
    throw Error(ErrorCode::kUnsupported,
                fmt::format("{}: the tensor '{}' holds {}, which yoke does not read",
                            files.file_of(part.source).native(), part.source, entry.stored_type));
  }
  return {part.name, *entry.type, entry.shape};
}

void write_part(const ModelFiles& files, const Part& part, ModelFolderWriter& writer) {
  const tensor::Tensor source = files.view(part.source);
  const std::size_t bytes = source.bytes();
  std::vector<std::byte> same;
  if (part.every_byte) same.assign(std::min(kCopyBytes, bytes), *part.every_byte);
  for (std::size_t offset = 0; offset < bytes; offset += kCopyBytes) {
    const std::size_t size = std::min(kCopyBytes, bytes - offset);
    writer.append({part.every_byte ? same.data() : source.raw() + offset, size});
  }
  // An original is not needed again; the last layer's pages are, as often as there are new layers.
  if (part.name == part.source) files.drop(source);
}

// What lies beside the weights. Other forms of the same weights stay behind, and so do folders.
std::vector<fs::path> other_files(const ModelFiles& files) {
  std::set<fs::path> left_behind = {"config.json", "model.safetensors.index.json"};
  for (const std::string& name : files.tensor_names()) left_behind.insert(files.file_of(name).filename());
  std::vector<fs::path> others;
  for (const auto& entry : fs::directory_iterator(files.folder())) {
    const std::string extension = entry.path().extension();
    const bool is_weights = extension == ".bin" || extension == ".gguf" || extension == ".pth" || extension == ".pt" ||
                            entry.path().filename().native().starts_with("consolidated");
    if (!entry.is_regular_file() || is_weights || left_behind.contains(entry.path().filename())) continue;
    others.push_back(entry.path());
  }
  std::sort(others.begin(), others.end());
  return others;
}

void check_layers(const ModelFiles& files, std::int64_t layers) {
  const std::int64_t present = layers_of(files);
  if (layers > present && layers <= kMaxLayers) return;
  throw Error(ErrorCode::kInvalid,
              fmt::format("{} has {} layers; it cannot be grown to {}", files.folder().native(), present, layers),
              fmt::format("give the number of layers in all: {} to {}", present + 1, kMaxLayers));
}

// A folder inside the model's would be written into it.
void check_outside(const ModelFiles& files, const fs::path& folder) {
  const fs::path model = fs::weakly_canonical(files.folder());
  for (fs::path place = fs::weakly_canonical(fs::absolute(folder)); place.has_relative_path();
       place = place.parent_path()) {
    if (place == model) {
      throw Error(ErrorCode::kConflict,
                  fmt::format("{} is inside the model's folder, which is never written to", folder.native()),
                  "choose a folder elsewhere");
    }
  }
}

// Lists of module names, such as those left unquantized, get the new layers' names beside the last one's.
void add_module_names(Document& document, std::int64_t present, std::int64_t layers) {
  const std::string last = layer_prefix(present - 1);
  for (auto& [key, value] : document.fields) add_module_names(value, present, layers);
  std::vector<Document> added;
  for (Document& item : document.items) {
    add_module_names(item, present, layers);
    if (item.kind != Document::Kind::kText || !item.text.starts_with(last)) continue;
    for (std::int64_t layer = present; layer < layers; ++layer) {
      added.push_back(Document::string(layer_prefix(layer) + item.text.substr(last.size())));
    }
  }
  document.items.insert(document.items.end(), added.begin(), added.end());
}

}  // namespace

std::int64_t layers_of(const ModelFiles& files) {
  const Document* const found = files.config().find(kLayersKey);
  if (found == nullptr) {
    throw Error(ErrorCode::kInvalid, fmt::format("{}: the key '{}' is missing", files.config().where, kLayersKey),
                "is this the folder of a language model?");
  }
  const auto layers = from_json<std::int64_t>(*found);
  if (layers < 1 || layers > kMaxLayers) refuse_field(*found, fmt::format("a number from 1 to {}", kMaxLayers));
  return layers;
}

Bytes size_with_layers(const ModelFiles& files, std::int64_t layers) {
  return files.bytes() + Bytes{(layers - layers_of(files)) * layer_size(files).value};
}

std::int64_t layers_for_size(const ModelFiles& files, Bytes size) {
  const Bytes layer = layer_size(files);
  const Bytes present = files.bytes();
  if (size <= present) {
    throw Error(ErrorCode::kInvalid,
                fmt::format("{} has {} already, which is not less than {}", files.folder().native(), to_string(present),
                            to_string(size)),
                "give a larger size");
  }
  const std::int64_t layers = layers_of(files) + tensor::ceil_divide(size.value - present.value, layer.value);
  if (layers > kMaxLayers) {
    throw Error(ErrorCode::kInvalid,
                fmt::format("{} would need {} layers of {}", to_string(size), layers, to_string(layer)),
                fmt::format("at most {} layers are written: give a smaller size, or a larger model", kMaxLayers));
  }
  return layers;
}

Document grown_config(const Document& config, std::int64_t layers) {
  Document deep = config;
  std::int64_t present = 0;
  for (auto& [key, value] : deep.fields) {
    if (key != kLayersKey) continue;
    present = from_json<std::int64_t>(value);
    value = Document::number(layers);
  }
  for (auto& [key, value] : deep.fields) {
    if (key == "quantization_config" || key == "compression_config") add_module_names(value, present, layers);
    const bool is_by_layer = key == "layer_types" && !value.items.empty() && std::ssize(value.items) == present;
    if (is_by_layer) value.items.resize(static_cast<std::size_t>(layers), Document(value.items.back()));
  }
  return deep;
}

WrittenModel grow_model(const ModelFiles& files, const fs::path& folder, const GrowOptions& options) {
  check_layers(files, options.layers);
  check_outside(files, folder);
  const std::vector<Part> parts = plan_parts(files, options.layers);
  std::vector<TensorDeclaration> declarations;
  for (const Part& part : parts) declarations.push_back(declare(files, part));
  const std::vector<fs::path> others = other_files(files);
  Bytes others_size{0};
  for (const fs::path& file : others) others_size += Bytes{static_cast<std::int64_t>(fs::file_size(file))};
  ModelFolderWriter writer(folder, std::move(declarations),
                           {.shard_size = options.shard_size, .other_files = others_size});
  try {
    writer.write_file("config.json", print_json(grown_config(files.config(), options.layers)) + "\n");
    for (const fs::path& file : others) writer.copy_file(file);
    for (const Part& part : parts) write_part(files, part, writer);
    files.check_unchanged();
    return writer.finish();
  } catch (Error& error) {
    throw std::move(error).in(fmt::format("writing {}: what was written of it is removed", folder.native()));
  }
}

}  // namespace yoke::weights

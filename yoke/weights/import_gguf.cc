#include "yoke/weights/import_gguf.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <map>

#include "yoke/base/error.h"
#include "yoke/base/json.h"
#include "yoke/base/text.h"
#include "yoke/spec/model_config.h"

namespace yoke::weights {
namespace {

constexpr std::int64_t kGgufGroup = 32;  // columns of a block
constexpr std::size_t kImportPiece = 4 << 20;

// Where a tensor of GGUF goes: "blk.3.attn_q.weight" is "model.layers.3.self_attn.q_proj" and its "weight".
struct TargetName {
  std::string module;
  std::string part;  // "weight" or "bias"
  bool is_norm = false;
};

std::optional<TargetName> target_of(std::string_view name) {
  static const std::map<std::string_view, const char*> modules = {
      {"attn_q", "self_attn.q_proj"},      {"attn_k", "self_attn.k_proj"},     {"attn_v", "self_attn.v_proj"},
      {"attn_output", "self_attn.o_proj"}, {"ffn_gate", "mlp.gate_proj"},      {"ffn_up", "mlp.up_proj"},
      {"ffn_down", "mlp.down_proj"},       {"attn_norm", "input_layernorm"},   {"ffn_norm", "post_attention_layernorm"},
      {"attn_q_norm", "self_attn.q_norm"}, {"attn_k_norm", "self_attn.k_norm"}};
  if (name == "token_embd.weight") return TargetName{"model.embed_tokens", "weight"};
  if (name == "output.weight") return TargetName{"lm_head", "weight"};
  if (name == "output_norm.weight") return TargetName{"model.norm", "weight", true};
  const std::vector<std::string> parts = split(std::string(name), '.');
  if (parts.size() != 4 || parts[0] != "blk" || (parts[3] != "weight" && parts[3] != "bias")) return std::nullopt;
  std::uint32_t layer = 0;
  const char* const end = parts[1].data() + parts[1].size();
  const auto read = std::from_chars(parts[1].data(), end, layer);
  const auto found = modules.find(parts[2]);
  if (read.ec != std::errc{} || read.ptr != end || found == modules.end()) return std::nullopt;
  return TargetName{fmt::format("model.layers.{}.{}", layer, found->second), parts[3],
                    std::string_view(found->second).ends_with("norm")};
}

// A tensor of GGUF with the tensors that it becomes.
struct ImportTensor {
  const GgufTensor* from = nullptr;
  TargetName target;
  std::int64_t heads = 0;  // of q and k of the family llama: their rows are ordered otherwise
};

// llama.cpp turns neighbours, transformers halves: row 2 i + j of a head there is row j D/2 + i here.
std::int64_t source_row(const ImportTensor& tensor, std::int64_t row, std::int64_t rows) {
  if (tensor.heads == 0) return row;
  const std::int64_t width = rows / tensor.heads;
  const std::int64_t at = row % width;
  return row - at + at % (width / 2) * 2 + at / (width / 2);
}

class Importer {
 public:
  Importer(const GgufFile& file, const Document& config) : file_(file), shape_(spec::model_shape_from_config(config)) {
    const bool is_llama = shape_.architecture == spec::ModelArchitecture::kLlama;
    for (const GgufTensor& tensor : file.tensors()) {
      if (tensor.name == "rope_freqs.weight") continue;
      const auto target = target_of(tensor.name);
      if (!target) {
        throw Error(ErrorCode::kUnsupported,
                    fmt::format("{}: yoke does not know its tensor '{}'", file.source(),
                                printable(std::string(tensor.name), 60)),
                    "yoke imports the families llama, qwen2 and qwen3, without experts and adapters");
      }
      ImportTensor entry{.from = &tensor, .target = *target};
      if (is_llama && target->module.ends_with("self_attn.q_proj")) entry.heads = shape_.heads;
      if (is_llama && target->module.ends_with("self_attn.k_proj")) entry.heads = shape_.kv_heads;
      if (entry.heads > 0 && extent(tensor, target->part) != entry.heads * shape_.head_width) {
        throw Error(ErrorCode::kInvalid,
                    fmt::format("{}: '{}' has {} rows for {} heads of {}", file.source(), tensor.name,
                                extent(tensor, target->part), entry.heads, shape_.head_width));
      }
      declare(entry);
      tensors_.push_back(std::move(entry));
    }
  }

  const std::vector<TensorDeclaration>& declarations() const { return declarations_; }
  Document quantization() const;
  const char* plain_type() const { return has_bf16_ ? "bfloat16" : has_f16_ ? "float16" : "float32"; }

  void write(ModelFolderWriter& writer) const {
    for (const ImportTensor& tensor : tensors_) {
      const GgufType type = tensor.from->type;
      if (type == GgufType::kQ4_0 || type == GgufType::kQ8_0) {
        write_blocks(tensor, writer);
      } else {
        write_plain(tensor, writer);
      }
      file_.check_unchanged();
    }
  }

 private:
  // A vector has its elements in the fastest axis.
  static std::int64_t extent(const GgufTensor& tensor, const std::string& part) {
    return part == "bias" ? tensor.columns : tensor.rows;
  }
  static tensor::DType type_of(GgufType type) {
    return type == GgufType::kF32   ? tensor::DType::kF32
           : type == GgufType::kF16 ? tensor::DType::kF16
                                    : tensor::DType::kBf16;
  }

  void declare(const ImportTensor& tensor) {
    const GgufTensor& from = *tensor.from;
    const std::string name = tensor.target.module + "." + tensor.target.part;
    const bool is_vector = tensor.target.is_norm || tensor.target.part == "bias";
    if (from.axes != (is_vector ? 1 : 2)) {
      throw Error(ErrorCode::kInvalid, fmt::format("{}: '{}' has {} axes", file_.source(), from.name, from.axes));
    }
    const bool is_int4 = from.type == GgufType::kQ4_0;
    if (!is_int4 && from.type != GgufType::kQ8_0) {
      has_bf16_ = has_bf16_ || from.type == GgufType::kBf16;
      has_f16_ = has_f16_ || from.type == GgufType::kF16;
      declarations_.push_back(
          {name, type_of(from.type), is_vector ? tensor::Shape{from.columns} : tensor::Shape{from.rows, from.columns}});
      if (!is_vector) plain_.push_back(tensor.target.module);
      return;
    }
    if (is_vector)
      throw Error(ErrorCode::kInvalid, fmt::format("{}: '{}' is a quantized vector", file_.source(), from.name));
    (is_int4 ? int4_ : int8_).push_back(tensor.target.module);
    declarations_.push_back(
        {tensor.target.module + ".weight_packed", tensor::DType::kI32, {from.rows, from.columns / (is_int4 ? 8 : 4)}});
    declarations_.push_back(
        {tensor.target.module + ".weight_scale", tensor::DType::kF16, {from.rows, from.columns / kGgufGroup}});
    declarations_.push_back({tensor.target.module + ".weight_shape", tensor::DType::kI64, {2}});
  }

  // Row after row, in pieces.
  template <class Fill>
  static void write_rows(std::int64_t rows, std::size_t row_bytes, ModelFolderWriter& writer, const Fill& fill) {
    const auto at_once = static_cast<std::int64_t>(std::max<std::size_t>(1, kImportPiece / row_bytes));
    std::vector<std::byte> piece;
    for (std::int64_t first = 0; first < rows; first += at_once) {
      const std::int64_t count = std::min(at_once, rows - first);
      piece.resize(static_cast<std::size_t>(count) * row_bytes);
      for (std::int64_t i = 0; i < count; ++i) fill(first + i, piece.data() + static_cast<std::size_t>(i) * row_bytes);
      writer.append(piece);
    }
  }

  static void write_plain(const ImportTensor& tensor, ModelFolderWriter& writer) {
    const GgufTensor& from = *tensor.from;
    const bool is_vector = from.axes == 1;
    const std::int64_t rows = is_vector ? from.columns : from.rows;  // of a bias, its elements
    const std::size_t row_bytes = from.bytes.size() / static_cast<std::size_t>(rows);
    write_rows(rows, row_bytes, writer, [&](std::int64_t row, std::byte* to) {
      std::memcpy(to, from.bytes.data() + static_cast<std::size_t>(source_row(tensor, row, rows)) * row_bytes,
                  row_bytes);
    });
  }

  // Blocks of a scale (f16) and 32 codes. Of Q4_0, byte j holds code j below and code j + 16 above, 8 for zero; of Q8_0
  // codes are signed bytes.
  static void write_blocks(const ImportTensor& tensor, ModelFolderWriter& writer) {
    const GgufTensor& from = *tensor.from;
    const auto block = static_cast<std::size_t>(block_of(from.type).bytes);
    const auto blocks = static_cast<std::size_t>(from.columns / kGgufGroup);
    const auto row_at = [&](std::int64_t row) {
      return from.bytes.data() + static_cast<std::size_t>(source_row(tensor, row, from.rows)) * blocks * block;
    };
    const bool is_int4 = from.type == GgufType::kQ4_0;
    const std::size_t codes = is_int4 ? 16 : 32;  // bytes of a block
    write_rows(from.rows, blocks * codes, writer, [&](std::int64_t row, std::byte* to) {
      const std::byte* at = row_at(row) + 2;
      for (std::size_t b = 0; b < blocks; ++b, at += block, to += codes) {
        for (std::size_t j = 0; j < codes; ++j) {
          if (is_int4) {
            const auto nibble = [&](std::size_t i) { return at[i % 16] >> (i < 16 ? 0 : 4) & std::byte{15}; };
            to[j] = nibble(2 * j) | nibble(2 * j + 1) << 4;
          } else {
            to[j] = at[j] ^ std::byte{0x80};  // 128 is added
          }
        }
      }
    });
    write_rows(from.rows, blocks * 2, writer, [&](std::int64_t row, std::byte* to) {
      const std::byte* at = row_at(row);
      for (std::size_t b = 0; b < blocks; ++b, at += block) std::memcpy(to + 2 * b, at, 2);
    });
    const std::int64_t shape[] = {from.rows, from.columns};
    writer.append(std::as_bytes(std::span(shape)));
  }

  const GgufFile& file_;
  spec::ModelShape shape_;
  std::vector<ImportTensor> tensors_;
  std::vector<TensorDeclaration> declarations_;
  std::vector<std::string> plain_, int4_, int8_;  // modules
  bool has_bf16_ = false, has_f16_ = false;
};

Document names_of(const std::vector<std::string>& names) {
  Document list = Document::list({});
  for (const std::string& name : names) list.items.push_back(Document::string(name));
  return list;
}

Document import_group(int bits, Document targets) {
  Document scheme = Document::map({{"num_bits", Document::number(std::int64_t{bits})},
                                   {"type", Document::string("int")},
                                   {"symmetric", Document::boolean(true)},
                                   {"strategy", Document::string("group")},
                                   {"group_size", Document::number(kGgufGroup)},
                                   {"dynamic", Document::boolean(false)},
                                   {"actorder", Document::null()}});
  return Document::map({{"targets", std::move(targets)},
                        {"weights", std::move(scheme)},
                        {"input_activations", Document::null()},
                        {"output_activations", Document::null()}});
}

// Null where nothing is quantized. The first group that names a module decides.
Document Importer::quantization() const {
  if (int4_.empty() && int8_.empty()) return {};
  Document groups = Document::map();
  if (!int8_.empty() && !int4_.empty()) groups.add("group_0", import_group(8, names_of(int8_)));
  const char* const last = groups.fields.empty() ? "group_0" : "group_1";
  groups.add(last, import_group(int4_.empty() ? 8 : 4, names_of({"Linear"})));
  return Document::map({{"quant_method", Document::string("compressed-tensors")},
                        {"format", Document::string("pack-quantized")},
                        {"quantization_status", Document::string("compressed")},
                        {"kv_cache_scheme", Document::null()},
                        {"global_compression_ratio", Document::null()},
                        {"ignore", names_of(plain_)},
                        {"config_groups", std::move(groups)}});
}

}  // namespace

WrittenModel import_gguf(const std::filesystem::path& file, const std::filesystem::path& folder,
                         const ImportOptions& options) {
  const GgufFile source(file);
  Document config = gguf_config(source);
  const Importer importer(source, config);
  const GgufTokenizer tokenizer = gguf_tokenizer(source);
  for (const char* const key : {"dtype", "torch_dtype"}) config.add(key, Document::string(importer.plain_type()));
  for (const char* const key : {"bos_token_id", "eos_token_id"}) {
    if (const auto id = source.integer(std::string("tokenizer.ggml.") + key)) config.add(key, Document::number(*id));
  }
  if (Document quantization = importer.quantization(); quantization.kind != Document::Kind::kNull) {
    config.add("quantization_config", std::move(quantization));
  }
  ModelFolderWriter writer(
      folder, importer.declarations(),
      {.shard_size = options.shard_size, .other_files = Bytes{static_cast<std::int64_t>(tokenizer.tokenizer.size())}});
  try {
    writer.write_file("config.json", print_json(config) + "\n");
    writer.write_file("generation_config.json", tokenizer.generation);
    writer.write_file("tokenizer.json", tokenizer.tokenizer);
    writer.write_file("tokenizer_config.json", tokenizer.tokenizer_config);
    importer.write(writer);
    return writer.finish();
  } catch (Error& error) {
    throw std::move(error).in(fmt::format("importing into {}: what was written of it is removed", folder.native()));
  }
}

}  // namespace yoke::weights

#include "yoke/weights/make_model.h"

#include <fmt/format.h>

#include "yoke/base/error.h"
#include "yoke/base/json.h"
#include "yoke/spec/model_config.h"
#include "yoke/weights/made_tensors.h"
#include "yoke/weights/made_tokenizer.h"

namespace yoke::weights {
namespace {

constexpr std::size_t kPieceBytes = 4 << 20;
static_assert(kPieceBytes % kFillStep == 0);

std::string config_json(const MakeModelOptions& options, const MadeTokenizer& tokenizer) {
  Document config = spec::config_of_model_shape(options.shape);
  // The first is what transformers 5 reads, the second what it was called before.
  for (const char* key : {"dtype", "torch_dtype"}) {
    config.add(key, Document::string(std::string(torch_name(options.format))));
  }
  config.add("bos_token_id", Document::number(tokenizer.begin));
  config.add("eos_token_id", Document::number(tokenizer.end));
  config.add("pad_token_id", Document::number(tokenizer.pad));
  Document quantization = quantization_config(options);
  if (quantization.kind != Document::Kind::kNull) config.add("quantization_config", std::move(quantization));
  return print_json(config) + "\n";
}

std::string generation_json(const MadeTokenizer& tokenizer) {
  Document config = Document::map();
  config.add("bos_token_id", Document::number(tokenizer.begin));
  config.add("eos_token_id", Document::number(tokenizer.end));
  config.add("pad_token_id", Document::number(tokenizer.pad));
  config.add("do_sample", Document::boolean(false));
  return print_json(config) + "\n";
}

void write_tensor(ModelFolderWriter& writer, const MadeTensor& tensor, std::vector<std::byte>& piece) {
  const auto bytes = static_cast<std::size_t>(tensor.declaration.size().value);
  for (std::size_t offset = 0; offset < bytes; offset += kPieceBytes) {
    const std::span<std::byte> part(piece.data(), std::min(kPieceBytes, bytes - offset));
    tensor.fill(offset, part);
    writer.append(part);
  }
}

}  // namespace

Bytes made_model_size(const MakeModelOptions& options) {
  Bytes size{0};
  for (const MadeTensor& tensor : made_tensors(options)) size += tensor.declaration.size();
  return size;
}

WrittenModel make_model(const std::filesystem::path& folder, const MakeModelOptions& options) {
  const std::vector<MadeTensor> tensors = made_tensors(options);
  const MadeTokenizer tokenizer = make_tokenizer(options.shape.vocabulary, options.shape.context);
  std::vector<TensorDeclaration> declarations;
  for (const MadeTensor& tensor : tensors) declarations.push_back(tensor.declaration);
  ModelFolderWriter writer(
      folder, std::move(declarations),
      {.shard_size = options.shard_size, .other_files = Bytes{static_cast<std::int64_t>(tokenizer.tokenizer.size())}});
  try {
    writer.write_file("config.json", config_json(options, tokenizer));
    writer.write_file("generation_config.json", generation_json(tokenizer));
    writer.write_file("tokenizer.json", tokenizer.tokenizer);
    writer.write_file("tokenizer_config.json", tokenizer.tokenizer_config);
    std::vector<std::byte> piece(kPieceBytes);
    for (const MadeTensor& tensor : tensors) write_tensor(writer, tensor, piece);
    return writer.finish();
  } catch (Error& error) {
    throw std::move(error).in(fmt::format("writing {}: what was written of it is removed", folder.native()));
  }
}

}  // namespace yoke::weights

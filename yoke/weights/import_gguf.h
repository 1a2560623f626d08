// Turns a GGUF file of llama.cpp into a model folder: the same numbers, to the bit, in the form of transformers. Q4_0
// becomes int4 and Q8_0 int8 of compressed-tensors in groups of 32 columns with f16 scales; F32, F16 and BF16 stay.
//
//   import_gguf("model.gguf", "/models/imported", {});
//
// Families: llama (Llama and Mistral), qwen2 and qwen3, dense ones. Tokenizer and chat template come along. What is not
// supported is an Error(kUnsupported) that names it, before anything is written.
#pragma once
#include <filesystem>
#include <string>

#include "yoke/base/document.h"
#include "yoke/weights/gguf_file.h"
#include "yoke/weights/model_folder_writer.h"

namespace yoke::weights {

struct ImportOptions {
  Bytes shard_size = kShardSizeUsual;
};

WrittenModel import_gguf(const std::filesystem::path& file, const std::filesystem::path& folder,
                         const ImportOptions& options);

// The parts of it: config.json without the quantization section, and the files of the tokenizer.
Document gguf_config(const GgufFile& file);
struct GgufTokenizer {
  std::string tokenizer;         // tokenizer.json
  std::string tokenizer_config;  // tokenizer_config.json
  std::string generation;        // generation_config.json
};
GgufTokenizer gguf_tokenizer(const GgufFile& file);

}  // namespace yoke::weights

// The answers that another implementation gave for a model: golden.json and golden.safetensors in its folder.
//
//   golden.json: {"cases": [{"prompt", "ids", "greedy"}…], "chat": [{"messages", "ids", "greedy"}…]}
//   golden.safetensors: "logits.N" of case N, f32 [tokens, vocabulary]; "logits.long_last" of the last case with
//   neither "greedy" nor logits of its own
//
// Everything but "ids" may be missing, though not from all cases; logits may be of the last tokens only.
#pragma once
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "yoke/base/document.h"
#include "yoke/tensor/tensor.h"
#include "yoke/text/vocabulary.h"

namespace yoke::engine {

struct GoldenCase {
  std::string name;                   // "case 0", "chat 2"
  std::optional<std::string> prompt;  // whose ids are those of the tokenizer
  Document messages;                  // of a chat, else null
  std::vector<text::TokenId> ids;
  std::vector<text::TokenId> greedy;     // what follows, always the likeliest
  std::optional<tensor::Tensor> logits;  // f32 [rows, V] of the last tokens of the prompt
};

// kNotFound where there is none; kInvalid where it is not of this form, or says nothing that an engine computes.
std::vector<GoldenCase> load_golden(const std::filesystem::path& model);

}  // namespace yoke::engine

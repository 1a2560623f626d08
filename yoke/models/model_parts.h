// What a model folder holds besides its weights, and what each of several ranks would hold of them: from headers alone,
// and without an error where a part is missing.
#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "yoke/base/units.h"
#include "yoke/weights/model_files.h"

namespace yoke::models {

struct ModelTextParts {
  std::string tokenizer;               // for people: "2048 tokens", or why there is none
  std::optional<std::int64_t> tokens;  // of a tokenizer that can be read
  std::string chat_template;           // "present", "none", or why it cannot be read
  bool has_chat_template = false;
};
ModelTextParts inspect_text(const std::filesystem::path& folder);

// What one of so many ranks would hold.
struct RankShare {
  int ranks = 1;
  Bytes weights;
  Bytes cache_per_token;  // in f32
};
std::vector<RankShare> rank_shares(const weights::ModelFiles& files, int ranks_max);

}  // namespace yoke::models

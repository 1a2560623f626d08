#include "yoke/models/model_parts.h"

#include <fmt/format.h>

#include "yoke/base/error.h"
#include "yoke/base/result.h"
#include "yoke/models/llama/llama.h"
#include "yoke/text/chat.h"
#include "yoke/text/tokenizer.h"

namespace yoke {

ModelTextParts look_at_text(const std::filesystem::path& folder) {
  ModelTextParts parts;
  const std::filesystem::path file = folder / "tokenizer.json";
  if (!std::filesystem::exists(file)) {
    parts.tokenizer = "none: there is no tokenizer.json";
  } else if (const auto tokenizer = try_to([&] { return Tokenizer::load(file); })) {
    parts.tokens = tokenizer->size();
    parts.tokenizer = fmt::format("{} tokens", *parts.tokens);
  } else {
    parts.tokenizer = fmt::format("unreadable: {}", tokenizer.error().message());
  }
  const auto chat = try_to([&] { return ChatTemplate::load(folder); });
  parts.has_chat_template = chat.has_value();
  if (chat) {
    parts.chat_template = "present";
  } else {
    const bool is_absent = chat.error().code() == ErrorCode::kNotFound;
    parts.chat_template = is_absent ? "none" : fmt::format("unreadable: {}", chat.error().message());
  }
  return parts;
}

std::vector<RankShare> rank_shares(const ModelFiles& files, int ranks_most) {
  const LlamaConfig config = read_llama_config(files.config());
  std::vector<RankShare> shares;
  for (const int ranks : llama_rank_counts(files, config, ranks_most)) {
    shares.push_back(
        {ranks, llama_weight_bytes(files, config, ranks), llama_cache_bytes_per_token(config, ranks, DType::kF32)});
  }
  return shares;
}

}  // namespace yoke

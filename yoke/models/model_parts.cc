#include "yoke/models/model_parts.h"

#include <fmt/format.h>

#include "yoke/base/error.h"
#include "yoke/base/result.h"
#include "yoke/models/families.h"
#include "yoke/ops/backends.h"
#include "yoke/text/chat.h"
#include "yoke/text/tokenizer.h"

namespace yoke::models {

ModelTextParts inspect_text(const std::filesystem::path& folder) {
  ModelTextParts parts;
  const std::filesystem::path file = folder / "tokenizer.json";
  if (!std::filesystem::exists(file)) {
    parts.tokenizer = "none: there is no tokenizer.json";
  } else if (const auto tokenizer = try_to([&] { return text::Tokenizer::load(file); })) {
    parts.tokens = tokenizer->size();
    parts.tokenizer = fmt::format("{} tokens", *parts.tokens);
  } else {
    parts.tokenizer = fmt::format("unreadable: {}", tokenizer.error().message());
  }
  const auto chat = try_to([&] { return text::ChatTemplate::load(folder); });
  parts.has_chat_template = chat.has_value();
  if (chat) {
    parts.chat_template = "present";
  } else {
    const bool is_absent = chat.error().code() == ErrorCode::kNotFound;
    parts.chat_template = is_absent ? "none" : fmt::format("unreadable: {}", chat.error().message());
  }
  return parts;
}

std::vector<RankShare> rank_shares(const weights::ModelFiles& files, int ranks_max) {
  const auto outline = outline_model(files.config());
  const auto ops = ops::make_backend("ref", {.threads = 1});
  std::vector<RankShare> shares;
  for (const int ranks : outline->rank_counts(files, *ops, ranks_max)) {
    const Mesh mesh{.rank = ranks - 1, .size = ranks};  // the last part of a vocabulary is the largest
    shares.push_back(
        {ranks, outline->weight_bytes(files, mesh, *ops), outline->cache_bytes_per_token(mesh, tensor::DType::kF32)});
  }
  return shares;
}

}  // namespace yoke::models

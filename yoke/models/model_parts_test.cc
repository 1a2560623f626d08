#include "yoke/models/model_parts.h"

#include <gtest/gtest.h>

#include "yoke/base/files.h"

namespace yoke::models {
namespace {

const std::filesystem::path kNanoModel = std::filesystem::path(YOKE_SOURCE_DIR) / "models/nano";

TEST(ModelParts, SayWhatThereIsOfText) {
  const ModelTextParts parts = inspect_text(kNanoModel);
  ASSERT_TRUE(parts.tokens);
  EXPECT_EQ(parts.tokenizer, std::to_string(*parts.tokens) + " tokens");
  EXPECT_TRUE(parts.has_chat_template);
  EXPECT_EQ(parts.chat_template, "present");
}

TEST(ModelParts, SayWhyThereIsNoText) {
  const ScratchDir folder;
  EXPECT_EQ(inspect_text(folder.path()).tokenizer, "none: there is no tokenizer.json");
  EXPECT_EQ(inspect_text(folder.path()).chat_template, "none");
  write_file_atomically(folder.path() / "tokenizer.json", "{");
  const ModelTextParts parts = inspect_text(folder.path());
  EXPECT_TRUE(parts.tokenizer.starts_with("unreadable: ")) << parts.tokenizer;
  EXPECT_FALSE(parts.tokens);
}

// Embedding and norms are held whole: so shares add up to more than the model, but each becomes smaller.
TEST(ModelParts, ARanksShareShrinksWithTheirNumber) {
  const weights::ModelFiles files(kNanoModel);
  const std::vector<RankShare> shares = rank_shares(files, 16);
  ASSERT_GE(shares.size(), 2U);
  EXPECT_EQ(shares.front().ranks, 1);
  for (std::size_t i = 1; i < shares.size(); ++i) {
    EXPECT_GT(shares[i].ranks, shares[i - 1].ranks);
    EXPECT_LE(shares[i].ranks, 16);
    EXPECT_LT(shares[i].weights.value, shares[i - 1].weights.value);
    EXPECT_LE(shares[i].cache_per_token.value, shares[i - 1].cache_per_token.value);
  }
}

}  // namespace
}  // namespace yoke::models

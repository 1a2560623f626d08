#include "yoke/serve/answer_text.h"

#include <gtest/gtest.h>

namespace yoke::serve {
namespace {

const std::filesystem::path kNanoFolder = std::filesystem::path(YOKE_SOURCE_DIR) / "models/nano";

std::string all_of(AnswerText& words, const std::vector<text::TokenId>& ids) {
  std::string said;
  for (const text::TokenId id : ids) said += words.add(id);
  said += words.finish();
  EXPECT_EQ(said, words.all());
  return said;
}

TEST(AnswerText, IsTheTextOfItsTokens) {
  const ModelText text = ModelText::load(kNanoFolder);
  AnswerText words(text, {});
  const std::string spoken = "a cable, 40 µm";
  EXPECT_EQ(all_of(words, text.tokenizer->encode(spoken)), spoken);
  EXPECT_FALSE(words.found_stop());
}

TEST(AnswerText, EndsBeforeAStopTextAndATokenThatEndsAnswers) {
  const ModelText text = ModelText::load(kNanoFolder);
  ASSERT_FALSE(text.stop_ids.empty());
  AnswerText stopped(text, {"two"});
  EXPECT_EQ(all_of(stopped, text.tokenizer->encode("one two three")), "one ");
  EXPECT_TRUE(stopped.found_stop());
  AnswerText ended(text, {});
  std::vector<text::TokenId> ids = text.tokenizer->encode("one");
  ids.push_back(text.stop_ids.front());
  EXPECT_EQ(all_of(ended, ids), "one");
}

TEST(AnswerText, MarksAPlaceBeyondTheVocabulary) {
  const ModelText text = ModelText::load(kNanoFolder);
  AnswerText words(text, {});
  EXPECT_EQ(all_of(words, {1'000'000}), "\uFFFD");
}

TEST(AnswerText, OfAModelWithoutTokenizerIsItsIds) {
  const ModelText no_text;
  AnswerText words(no_text, {});
  EXPECT_EQ(all_of(words, {5, 12, 7}), "5 12 7");
}

}  // namespace
}  // namespace yoke::serve

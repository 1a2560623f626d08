#include "yoke/serve/model_text.h"

#include <gtest/gtest.h>

#include "yoke/base/error.h"
#include "yoke/base/error_testing.h"
#include "yoke/base/files.h"

namespace yoke::serve {
namespace {

namespace fs = std::filesystem;

const fs::path kNano = fs::path(YOKE_SOURCE_DIR) / "models/nano";

struct ModelTextTest : testing::Test {
  ScratchDir scratch;
  const fs::path& folder = scratch.path();
  void write(const char* name, std::string_view text) { write_file_atomically(folder / name, text); }
  ModelText load() { return ModelText::load(folder, ModelText::Need::kNothing); }
};

TEST_F(ModelTextTest, ANumberOrAListOfEndsFromAllFilesIsTaken) {
  write("config.json", R"({"eos_token_id": 7})");
  EXPECT_EQ(load().stop_ids, (std::vector<text::TokenId>{7}));
  write("generation_config.json", R"({"eos_token_id": [9, 7, 3]})");
  EXPECT_EQ(load().stop_ids, (std::vector<text::TokenId>{3, 7, 9}));
  write("generation_config.json", R"({"eos_token_id": null})");
  EXPECT_EQ(load().stop_ids, (std::vector<text::TokenId>{7}));
  EXPECT_EQ(ModelText::load(kNano).stop_ids, (std::vector<text::TokenId>{2044}));
}

TEST_F(ModelTextTest, SamplingIsWhatTheMakersWantAndElseTheBestToken) {
  write("config.json", "{}");
  EXPECT_EQ(load().sampling.temperature, 0);
  write("generation_config.json", R"({"do_sample": true, "temperature": 0.5, "top_p": 0.75, "top_k": 20})");
  EXPECT_EQ(load().sampling.temperature, 0.5F);
  EXPECT_EQ(load().sampling.top_p, 0.75F);
  EXPECT_EQ(load().sampling.top_k, 20);
  write("generation_config.json", R"({"do_sample": true})");
  EXPECT_EQ(load().sampling.temperature, 1);
  write("generation_config.json", R"({"do_sample": false, "temperature": 0.5, "top_k": 20, "max_new_tokens": 5})");
  EXPECT_EQ(load().sampling.temperature, 0);
  EXPECT_EQ(load().sampling.top_k, 0);
  EXPECT_EQ(load().answer_max, 5);
}

TEST_F(ModelTextTest, AMistakeOfTheMakersIsReportedWithItsPlace) {
  write("config.json", "{}");
  write("generation_config.json", R"({"do_sample": true, "top_k": -1})");
  EXPECT_EQ(load().sampling.top_k, 0) << "how others write: all of them";
  for (const auto& [wrong, key] : std::initializer_list<std::pair<const char*, const char*>>{
           {R"({"do_sample": true, "top_k": -2})", "top_k is -2"},
           {R"({"do_sample": true, "top_p": 1.5})", "top_p is 1.5"},
           {R"({"temperature": -1})", "temperature is -1"},
           {R"({"repetition_penalty": 0})", "repetition_penalty is 0"},
           {R"({"max_new_tokens": -5})", "max_new_tokens is -5"}}) {
    write("generation_config.json", wrong);
    EXPECT_ERROR(load(), ErrorCode::kInvalid, std::string("generation_config.json: ") + key) << wrong;
  }
}

TEST_F(ModelTextTest, OlderFoldersNameTheEndInSpecialTokensMap) {
  write("config.json", "{}");
  fs::copy(kNano / "tokenizer.json", folder / "tokenizer.json");
  EXPECT_TRUE(load().stop_ids.empty());
  const ModelText nano = ModelText::load(kNano);
  ASSERT_EQ(nano.stop_ids.size(), 1U);
  const std::string end(nano.tokenizer->token(nano.stop_ids[0]));
  write("special_tokens_map.json", R"({"eos_token": {"content": ")" + end + R"("}})");
  EXPECT_EQ(load().stop_ids, nano.stop_ids);
}

TEST_F(ModelTextTest, WhatCannotBeReadIsThrownWhereItIsUsed) {
  write("config.json", "{}");
  fs::copy(kNano / "tokenizer.json", folder / "tokenizer.json");
  write("chat_template.jinja", "{% include 'x' %}");
  const ModelText text = ModelText::load(folder);
  EXPECT_FALSE(text.encode_raw("MTU").empty());
  EXPECT_ERROR(text.encode_chat(Document::list()), ErrorCode::kUnsupported, "the statement 'include' is not supported");
  write("tokenizer.json", R"({"model": {"type": "Unigram", "vocab": []}})");
  EXPECT_ERROR(ModelText::load(folder), ErrorCode::kUnsupported, "the model 'Unigram' is not supported");
  EXPECT_ERROR(load().encode_raw("MTU"), ErrorCode::kUnsupported, "the model 'Unigram' is not supported");
}

TEST_F(ModelTextTest, WhatIsNoModelFolderIsSaid) {
  EXPECT_ERROR(ModelText::load(folder / "no"), ErrorCode::kNotFound, "there is no model folder");
  EXPECT_ERROR(ModelText::load(folder), ErrorCode::kNotFound, "is no model folder: there is no config.json");
  write("config.json", "{}");
  EXPECT_ERROR(ModelText::load(folder), ErrorCode::kNotFound, "there is no tokenizer.json");
  write("generation_config.json", R"({"eos_token_id": "seven"})");
  EXPECT_ERROR(load(), ErrorCode::kInvalid, "generation_config.json");
}

TEST(ModelTextPrompt, ChatsAreFramedByTheTemplateAndPlainTextsByTheTokenizer) {
  const ModelText text = ModelText::load(kNano);
  const auto chat = text.encode_chat(Document::list({chat_message("user", "What command launches existing engines?")}));
  EXPECT_EQ(chat, (std::vector<text::TokenId>{2043, 2045, 347, 569, 903, 1292, 472, 293, 1063, 1938, 30, 2044, 2046}));
  const auto raw = text.encode_raw("MTU 9000");
  ASSERT_GE(raw.size(), 3U);
  EXPECT_EQ(raw[0], 2043);
  EXPECT_EQ(raw[1], 44);
  EXPECT_ERROR(text.encode_raw("\xff"), ErrorCode::kInvalid, "the prompt is not UTF-8");
}

}  // namespace
}  // namespace yoke::serve

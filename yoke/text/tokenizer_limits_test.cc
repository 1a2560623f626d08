// A tokenizer.json comes from outside: what its parts may make of a text, and how long that may take.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include "yoke/base/error.h"
#include "yoke/base/json.h"
#include "yoke/base/limits.h"
#include "yoke/text/tokenizer.h"

namespace yoke::text {
namespace {

using testing::HasSubstr;

// A vocabulary of a few letters with these other parts.
Tokenizer made(const std::string& parts, const std::string& model = "") {
  return Tokenizer::parse(fmt::format(R"({{{}"model": {{"type": "BPE", {}"unk_token": "a", "merges": [],
      "vocab": {{"a": 0, "b": 1, " ": 2}}}}}})",
                                      parts.empty() ? "" : parts + ", ", model),
                          "t.json");
}

template <class Do>
std::string refusal(Do action) {
  try {
    action();
  } catch (const Error& error) {
    return fmt::format("{}: {}", info(error.code()).name, error.message());
  }
  return "none";
}

std::string repeated(const std::string& part, std::size_t times) {
  std::string list = part;
  for (std::size_t i = 1; i < times; ++i) list += "," + part;
  return "[" + list + "]";
}

const char* const kDoubles = R"({"type": "Replace", "pattern": {"String": "a"}, "content": "aa"})";

TEST(TokenizerLimits, ANormalizerThatDoublesIsStopped) {
  const std::string normalizer = R"("normalizer": {"type": "Sequence", "normalizers": )" + repeated(kDoubles, 40) + "}";
  const Tokenizer tokenizer = made(normalizer);
  EXPECT_THAT(refusal([&] { tokenizer.encode("a"); }), HasSubstr("exhausted: "));
  // Also at load, where an added token is normalized.
  const std::string added = R"(, "added_tokens": [{"id": 5, "content": "a", "normalized": true, "special": false}])";
  EXPECT_THAT(refusal([&] { made(normalizer + added); }), HasSubstr("exhausted: "));
}

TEST(TokenizerLimits, ADecoderThatDoublesIsStopped) {
  const Tokenizer tokenizer = made(R"("decoder": {"type": "Sequence", "decoders": )" + repeated(kDoubles, 40) + "}");
  const TokenId id = 0;
  EXPECT_THAT(refusal([&] { tokenizer.decode(std::span(&id, 1)); }), HasSubstr("exhausted: "));
}

TEST(TokenizerLimits, ByteLevelsThatGrowAreStopped) {
  const Tokenizer tokenizer =
      made(R"("pre_tokenizer": {"type": "Sequence", "pretokenizers": )" +
           repeated(R"({"type": "ByteLevel", "add_prefix_space": false, "use_regex": false})", 40) + "}");
  EXPECT_THAT(refusal([&] { tokenizer.encode("é"); }), HasSubstr("exhausted: the tokenizer makes more than"));
}

TEST(TokenizerLimits, MarksAreShort) {
  const auto with_mark = [](std::size_t bytes) {
    return fmt::format(R"("pre_tokenizer": {{"type": "Metaspace", "replacement": "{}", "split": false}})",
                       std::string(bytes, 'b'));
  };
  EXPECT_EQ(refusal([&] { made(with_mark(1024)); }), "none");
  EXPECT_THAT(refusal([&] { made(with_mark(1025)); }), HasSubstr("the text 'replacement' has more than 1024 bytes"));
  const Tokenizer tokenizer = made(with_mark(1024));
  EXPECT_THAT(refusal([&] { tokenizer.encode(std::string(50'000, ' ')); }), HasSubstr("exhausted: a replacement"));
  EXPECT_THAT(refusal([&] { made("", R"("end_of_word_suffix": ")" + std::string(1025, 's') + "\","); }),
              HasSubstr("'end_of_word_suffix' has more than 1024 bytes"));
}

TEST(TokenizerLimits, StepsAreFew) {
  const auto with_steps = [](std::size_t steps) {
    return R"("normalizer": {"type": "Sequence", "normalizers": )" + repeated(R"({"type": "NFC"})", steps) + "}";
  };
  EXPECT_EQ(refusal([&] { made(with_steps(256)); }), "none");
  EXPECT_THAT(refusal([&] { made(with_steps(257)); }), HasSubstr("more than 256 steps"));
}

TEST(TokenizerLimits, AddedTokensAreShort) {
  const auto with_token = [](std::size_t bytes) {
    return fmt::format(R"("added_tokens": [{{"id": 5, "content": "{}", "special": false, "normalized": false}}])",
                       std::string(bytes, 'a'));
  };
  EXPECT_EQ(refusal([&] { made(with_token(1024)); }), "none");
  EXPECT_THAT(refusal([&] { made(with_token(1025)); }), HasSubstr("an added token has 1025 bytes, more than 1024"));
}

TEST(TokenizerLimits, ATokenThatSwallowsBlanksTakesLinearTime) {
  const Tokenizer tokenizer =
      made(R"("added_tokens": [{"id": 5, "content": " ", "special": false, "normalized": false, "lstrip": true}])");
  EXPECT_EQ(tokenizer.encode(std::string(400'000, ' ')).size(), 400'000U);
}

TEST(TokenizerLimits, TokensAroundATextAreFew) {
  const auto with_pairs = [](std::size_t pairs) {
    return R"("post_processor": {"type": "Sequence", "processors": )" +
           repeated(R"({"type": "BertProcessing", "cls": ["a", 0], "sep": ["b", 1]})", pairs) + "}";
  };
  EXPECT_EQ(made(with_pairs(512)).encode("", {.frame = Frame::kAdd}).size(), 1024U);
  EXPECT_THAT(refusal([&] { made(with_pairs(513)); }), HasSubstr("more than 1024 tokens are put around a text"));
}

TEST(TokenizerLimits, ASlowPatternIsStopped) {
  const Tokenizer tokenizer =
      made(R"("pre_tokenizer": {"type": "Split", "pattern": {"Regex": "(?:a|a)+b|a"}, "behavior": "Isolated"})");
  // A sanitized program is given ten times as long (text_budget.cc), and PCRE2's machine code is as fast there.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  constexpr int kWords = 4000;
#else
  constexpr int kWords = 400;
#endif
  std::string text;
  for (int i = 0; i < kWords; ++i) text += std::string(22, 'a') + "!";
  EXPECT_THAT(refusal([&] { tokenizer.encode(text); }), HasSubstr("exhausted: the tokenizer takes more than 2"));
}

TEST(TokenizerLimits, AMatchThatMakesNoSenseIsRefused) {
  const Tokenizer tokenizer = made(
      R"json("pre_tokenizer": {"type": "Split", "pattern": {"Regex": "(?(DEFINE)(?<k>ab\\K))(?=(?&k))"},
                               "behavior": "Isolated"})json");
  EXPECT_THAT(refusal([&] { tokenizer.encode("bbabab"); }),
              HasSubstr("invalid: t.json: pre_tokenizer.pattern: the pattern"));
}

TEST(TokenizerFile, PartsMayStandInAnyOrderAndEachOnce) {
  const Tokenizer tokenizer = Tokenizer::parse(
      R"({"model": {"merges": ["a b", ["ab", "c"]], "vocab": {"a": 0, "b": 1, "c": 2, "ab": 3, "abc": 4}},
          "normalizer": {"type": "Lowercase"}})",
      "t.json");
  EXPECT_EQ(tokenizer.encode("ABC"), std::vector<TokenId>{4});
  const auto parse = [](const char* text) { return refusal([&] { Tokenizer::parse(text, "t.json"); }); };
  EXPECT_THAT(parse(R"({"model": {"vocab": {}, "merges": []}, "model": {}})"), HasSubstr("'model' stands twice"));
  EXPECT_THAT(parse(R"({"model": {"vocab": {}, "vocab": {}, "merges": []}})"), HasSubstr("'vocab' stands twice"));
  EXPECT_THAT(parse(R"({"decoder": null, "decoder": null, "model": {}})"), HasSubstr("'decoder' stands twice"));
  EXPECT_THAT(parse(R"({"model": {"vocab": {"a": 0, "b": 0}, "merges": []}})"),
              HasSubstr("t.json: model.vocab.b: the token 'b' or its id 0 stands twice"));
  EXPECT_THAT(parse(R"({"model": {"vocab": {"a": -1}, "merges": []}})"), HasSubstr("a token's id must be from 0"));
  EXPECT_THAT(parse(R"({"model": {"vocab": {"a": 1.5}, "merges": []}})"), HasSubstr("must be a whole number"));
  EXPECT_THAT(parse(R"({"model": {"vocab": {"a": 0}, "merges": ["a b"]}})"),
              HasSubstr("t.json: model.merges[0]: a merge needs 'b', which is not in the vocabulary"));
  EXPECT_THAT(parse(R"({"model": {"vocab": {"a": 0}, "merges": [["a", "a", "a"]]}})"), HasSubstr("of two tokens"));
  EXPECT_THAT(parse(R"({"model": 3})"), HasSubstr("t.json: model: this must be a map of keys"));
  EXPECT_THAT(parse("[1]"), HasSubstr("t.json: this must be a map of keys"));
  EXPECT_THAT(parse("{}"), HasSubstr("the key 'model' is missing"));
}

TEST(TokenizerFile, HasALimitOfValuesForPartsThatNobodyReads) {
  EXPECT_THAT(refusal([&] { made(R"("zzz": )" + repeated("0", limits::kJsonValues)); }),
              HasSubstr("more than 1000000 values"));
}

}  // namespace
}  // namespace yoke::text

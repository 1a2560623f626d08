// The pieces that tokenizers are made of, other than those of the golden one.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "yoke/base/error.h"
#include "yoke/base/text.h"
#include "yoke/text/detokenizer.h"
#include "yoke/text/tokenizers_testing.h"

namespace yoke::text {
namespace {

using Ids = std::vector<TokenId>;

Tokenizer llama_2(const std::string& steps = kLlama2Steps) {
  return Tokenizer::parse(llama_2_kind(steps), "test.json");
}

TEST(ByteFallback, EncodesWithAMarkForSpacesAndBytesForTheRest) {
  const Tokenizer tokenizer = llama_2();
  EXPECT_EQ(tokenizer.encode("ab c"), (Ids{266, 267}));
  EXPECT_EQ(tokenizer.encode("ab c", {.frame = Frame::kAdd}), (Ids{1, 266, 267}));
  EXPECT_EQ(tokenizer.encode("é"), (Ids{259, 3 + 0xC3, 3 + 0xA9}));
  EXPECT_EQ(tokenizer.encode(" ab"), (Ids{259, 266}));
  EXPECT_EQ(tokenizer.encode(""), Ids{});
  EXPECT_EQ(tokenizer.encode("\n"), (Ids{259, 3 + 0x0A}));
}

TEST(ByteFallback, DecodesWithoutTheSpaceBeforeTheFirstWord) {
  const Tokenizer tokenizer = llama_2();
  for (const char* text : {"ab c", " ab", "é 👩 c", "", "a\nb", "dddd"}) {
    EXPECT_EQ(tokenizer.decode(tokenizer.encode(text, {.frame = Frame::kAdd})), text);
  }
  EXPECT_EQ(tokenizer.decode(Ids{1, 266, 267, 2}, {.special_tokens = SpecialTokens::kShow}), "<s> ab c</s>");
  EXPECT_EQ(tokenizer.decode(Ids{260, 3 + 0xC3, 260}), "a\uFFFDa");
}

TEST(ByteFallback, SpecialTokensAreFoundAlsoWhereTheySayNormalized) {
  const Tokenizer tokenizer = llama_2();
  EXPECT_EQ(tokenizer.encode("<s>ab</s>", {.origin = Origin::kTemplate}), (Ids{1, 266, 2}));
  const Ids as_user = tokenizer.encode("<s>ab");
  EXPECT_EQ(std::count(as_user.begin(), as_user.end(), 1), 0);
}

TEST(Metaspace, PrependsAsItsSchemeSays) {
  const auto steps = [](const std::string& scheme) {
    return fmt::format(
        R"("pre_tokenizer": {{"type": "Metaspace", "replacement": "▁", "prepend_scheme": "{0}", "split": true}},
      "decoder": {{"type": "Metaspace", "replacement": "▁", "prepend_scheme": "{0}"}})",
        scheme);
  };
  EXPECT_EQ(llama_2(steps("always")).encode("ab c"), (Ids{266, 267}));
  EXPECT_EQ(llama_2(steps("never")).encode("ab c"), (Ids{265, 267}));
  const EncodeOptions with_marks{.origin = Origin::kTemplate};
  EXPECT_EQ(llama_2(steps("first")).encode("ab</s>ab", with_marks), (Ids{266, 2, 265}));
  EXPECT_EQ(llama_2(steps("always")).encode("ab</s>ab", with_marks), (Ids{266, 2, 266}));
  EXPECT_EQ(llama_2(steps("always")).decode(Ids{266, 267}), "ab c");
  EXPECT_EQ(llama_2(steps("never")).decode(Ids{266, 267}), " ab c");
}

// A byte-level vocabulary without merges, in which each letter of a text is a token of its own.
Tokenizer letters(const std::string& steps, const std::string& added = "[]") {
  Document vocabulary = Document::map();
  std::string alphabet = "abcdefghijklmnopqrstuvwxyzABC0123456789.,<>|_-";
  TokenId next = 0;
  for (const char letter : alphabet) vocabulary.add(std::string(1, letter), Document::number(std::int64_t{next++}));
  for (const char* letter : {"Ġ", "Ċ", "Ã", "©"}) vocabulary.add(letter, Document::number(std::int64_t{next++}));
  return Tokenizer::parse(fmt::format(R"({{"added_tokens": {}, {}, "decoder": {{"type": "ByteLevel"}},
      "model": {{"type": "BPE", "merges": [], "vocab": {}}}}})",
                                      added, steps, print_json(vocabulary)),
                          "test.json");
}

std::string spelled(const Tokenizer& tokenizer, const Ids& ids) {
  std::string text;
  for (const TokenId id : ids) text += tokenizer.token(id);
  return text;
}

TEST(ByteLevel, APrefixSpaceIsAddedWhereTheFileSaysSo) {
  const Tokenizer with = letters(R"("pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": true})");
  EXPECT_EQ(spelled(with, with.encode("ab")), "Ġab");
  EXPECT_EQ(spelled(with, with.encode(" ab")), "Ġab");
  EXPECT_EQ(spelled(with, with.encode("é")), "ĠÃ©");
}

TEST(Normalizer, ChangesTheTextButNotSpecialTokens) {
  const Tokenizer tokenizer = letters(
      R"("normalizer": {"type": "Sequence", "normalizers": [{"type": "NFC"}, {"type": "Lowercase"},
        {"type": "Replace", "pattern": {"Regex": "[0-9]+"}, "content": "0"}, {"type": "Strip"}]},
      "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false})",
      R"([{"id": 60, "content": "<A1>", "special": true}, {"id": 61, "content": "BB", "normalized": true}])");
  EXPECT_EQ(spelled(tokenizer, tokenizer.encode(" Ae\u0301 42 ")), "aÃ©Ġ0");
  EXPECT_EQ(tokenizer.encode("<A1>", {.origin = Origin::kTemplate}), (Ids{60}));
  EXPECT_EQ(tokenizer.encode("xbbBb").back(), 61) << "looked for in the normalized text, normalized itself";
}

TEST(AddedTokens, TheLongestWinsAndNeighboursAreHonoured) {
  const Tokenizer tokenizer = letters(R"("pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false})",
                                      R"([{"id": 60, "content": "<a>"}, {"id": 61, "content": "<a><b>"}, {"id": 62,
          "content": "word", "single_word": true},
          {"id": 63, "content": "<m>", "lstrip": true, "rstrip": true}])");
  EXPECT_EQ(tokenizer.encode("<a><b><a>"), (Ids{61, 60}));
  EXPECT_EQ(tokenizer.encode("word"), (Ids{62}));
  EXPECT_EQ(spelled(tokenizer, tokenizer.encode("words")), "words");
  EXPECT_EQ(tokenizer.encode("words").size(), 5U);
  EXPECT_EQ(tokenizer.encode("-word,")[1], 62);
  EXPECT_EQ(spelled(tokenizer, tokenizer.encode("a \n<m>  b")), "a<m>b");
  EXPECT_EQ(spelled(tokenizer, tokenizer.encode("<m> <m>")), "<m><m>");
}

// As tokenizers 0.23 has them.
TEST(AddedTokens, SwallowedSpaceBeginsTheNextToken) {
  const Tokenizer tokenizer =
      letters(R"("pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false})",
              R"([{"id": 60, "content": "<m>", "rstrip": true}, {"id": 61, "content": " <a>"}])");
  EXPECT_EQ(tokenizer.encode("<m> <a>"), (Ids{60, 61}));
  EXPECT_EQ(tokenizer.encode("<m>  <a> <a>"), (Ids{60, 61, 61}));
}

TEST(AddedTokens, ThoseOfTheNormalizedTextAreLookedForBetweenTheOthers) {
  const Tokenizer tokenizer =
      letters(R"("pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false})",
              R"([{"id": 60, "content": "b>a"}, {"id": 61, "content": "<b>", "normalized": true},
                  {"id": 62, "content": "c", "normalized": true, "single_word": true}])");
  EXPECT_EQ(tokenizer.encode("<b>"), (Ids{61}));
  EXPECT_EQ(tokenizer.encode("<b>a").back(), 60) << "looked for first, though <b> stands before it";
  EXPECT_EQ(tokenizer.encode("b>ac"), (Ids{60, 62})) << "a piece begins behind it, so this is no word's inside";
}

TEST(PreTokenizer, SplitsAsEachBehaviorAsks) {
  // A piece is seen by the space that add_prefix_space puts before each.
  const auto pieces = [](const std::string& behavior, const std::string& invert = "false") {
    const Tokenizer tokenizer = letters(fmt::format(
        R"("pre_tokenizer": {{"type": "Sequence", "pretokenizers": [{{"type": "Split", "pattern": {{"String": "-"}},
          "behavior": "{}", "invert": {}}}, {{"type": "ByteLevel", "add_prefix_space": true, "use_regex": false}}]}})",
        behavior, invert));
    return spelled(tokenizer, tokenizer.encode("a--b-c"));
  };
  EXPECT_EQ(pieces("Isolated"), "ĠaĠ-Ġ-ĠbĠ-Ġc");
  EXPECT_EQ(pieces("Removed"), "ĠaĠbĠc");
  EXPECT_EQ(pieces("Removed", "true"), "Ġ-Ġ-Ġ-");
  EXPECT_EQ(pieces("MergedWithPrevious"), "Ġa-Ġ-Ġb-Ġc");
  EXPECT_EQ(pieces("MergedWithNext"), "ĠaĠ-Ġ-bĠ-c");
  EXPECT_EQ(pieces("Contiguous"), "ĠaĠ--ĠbĠ-Ġc");
  const Tokenizer digits = letters(
      R"("pre_tokenizer": {"type": "Sequence", "pretokenizers": [{"type": "Digits", "individual_digits": true},
        {"type": "ByteLevel", "add_prefix_space": true, "use_regex": false}]})");
  EXPECT_EQ(spelled(digits, digits.encode("a12")), "ĠaĠ1Ġ2");
}

std::string message_of(const std::string& json) {
  try {
    Tokenizer::parse(json, "t.json");
  } catch (const Error& error) {
    return error.message();
  }
  return "no error";
}

TEST(TokenizerFile, NamesThePieceThatIsNotSupported) {
  const auto with = [](const std::string& part) {
    return fmt::format(R"({{{}, "model": {{"type": "BPE", "vocab": {{"a": 0}}, "merges": []}}}})", part);
  };
  EXPECT_EQ(message_of(with(R"("normalizer": {"type": "BertNormalizer"})")),
            "t.json: normalizer: the normalizer 'BertNormalizer' is not supported");
  EXPECT_NE(message_of(with(R"("pre_tokenizer": {"type": "Sequence", "pretokenizers": [{"type": "UnicodeScripts"}]})"))
                .find("the pre-tokenizer 'UnicodeScripts' is not supported"),
            std::string::npos);
  EXPECT_NE(message_of(with(R"("decoder": {"type": "CTC"})")).find("the decoder 'CTC'"), std::string::npos);
  EXPECT_NE(message_of(with(R"("post_processor": {"type": "Odd"})")).find("the post-processor 'Odd'"),
            std::string::npos);
  EXPECT_EQ(message_of(R"({"model": {"type": "Unigram", "vocab": [["a", -1.5]]}})"),
            "t.json: model: the model 'Unigram' is not supported");
}

TEST(TokenizerFile, NamesWhatIsWrong) {
  EXPECT_EQ(message_of("{}"), "t.json: the key 'model' is missing");
  EXPECT_EQ(message_of(R"({"model": {"vocab": {"a": 0}, "merges": [
      "a b"]}})"),
            "t.json: model.merges[0]: a merge needs 'b', which is not in the vocabulary");
  EXPECT_EQ(message_of(R"({"model": {"vocab": {"a": 0, "b": 0}, "merges": []}})"),
            "t.json: model.vocab.b: the token 'b' or its id 0 stands twice");
  EXPECT_EQ(message_of(R"({"model": {"vocab": {"a": -1}, "merges": []}})"),
            "t.json: model.vocab.a: a token's id must be from 0 to 4194303");
  EXPECT_EQ(message_of(R"({"model": {"vocab": {"a": 1.5}, "merges": []}})"),
            "t.json: model.vocab.a: a token's id must be a whole number");
  EXPECT_EQ(message_of(R"({"model": {"vocab": {"a": 0}}})"), "t.json: a BPE model needs 'vocab' and 'merges'");
  EXPECT_EQ(message_of(R"({"model": {"vocab": {"a": 0}, "merges": [["a"]]}})"),
            "t.json: model.merges[0][0]: a merge must be of two tokens");
  EXPECT_NE(message_of(R"({"model": {"vocab": {"a": 0)").find("t.json is not JSON"), std::string::npos);
}

TEST(TokenizerFile, MergesMayStandBeforeTheVocabulary) {
  const Tokenizer tokenizer = Tokenizer::parse(
      R"({"model": {"merges": ["a \u00e9", ["a\u00e9", "\ud83d\ude00"]],
        "vocab": {"a": 0, "é": 1, "😀": 2, "aé": 3, "aé😀": 4}}})",
      "t.json");
  EXPECT_EQ(tokenizer.encode("aé😀a"), (Ids{4, 0}));
}

TEST(Detokenizer, NeverSplitsACharacter) {
  for (const Tokenizer& tokenizer : {llama_2(), Tokenizer::load(kTokenizerGolden / "tokenizer.json")}) {
    const std::string text = "é👩‍👧 c 二つ";
    Detokenizer detokenizer(tokenizer);
    std::string streamed;
    for (const TokenId id : tokenizer.encode(text)) {
      const std::string part = detokenizer.add(id);
      EXPECT_FALSE(find_invalid_utf8(part));
      EXPECT_EQ(part.find("\uFFFD"), std::string::npos);
      streamed += part;
    }
    EXPECT_EQ(streamed, text);
    EXPECT_EQ(detokenizer.finish(), "");
  }
}

TEST(Detokenizer, AnUnfinishedCharacterIsReplacedAtTheEnd) {
  const Tokenizer tokenizer = llama_2();
  Detokenizer detokenizer(tokenizer);
  EXPECT_EQ(detokenizer.add(260), "a");
  EXPECT_EQ(detokenizer.add(3 + 0xF0), "");
  EXPECT_EQ(detokenizer.add(3 + 0x9F), "");
  EXPECT_EQ(detokenizer.add(261), "\uFFFDb") << "the character will not be finished any more";
  EXPECT_EQ(detokenizer.add(3 + 0xC3), "");
  EXPECT_EQ(detokenizer.finish(), "\uFFFD");
  EXPECT_EQ(detokenizer.add(266), "ab") << "a new text starts";
}

TEST(Detokenizer, HidesOrShowsSpecialTokens) {
  const Tokenizer& tokenizer = golden_tokenizer();
  Detokenizer hiding(tokenizer);
  Detokenizer showing(tokenizer, {.special_tokens = SpecialTokens::kShow});
  EXPECT_EQ(hiding.add(767), "");
  EXPECT_EQ(showing.add(767), "<|eot_id|>");
}

}  // namespace
}  // namespace yoke::text

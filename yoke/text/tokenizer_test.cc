#include "yoke/text/tokenizer.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "tests/emulation.h"
#include "yoke/base/clock.h"
#include "yoke/base/error.h"
#include "yoke/base/error_testing.h"
#include "yoke/base/fields.h"
#include "yoke/text/tokenizers_testing.h"
#include "yoke/text/unicode.h"

namespace yoke::text {
namespace {

using Ids = std::vector<TokenId>;

Ids golden_ids(const Document& entry, std::string_view key) { return from_json<Ids>(*entry.find(key)); }

TEST(Tokenizer, GivesTheGoldenIdsAndTexts) {
  const Tokenizer& tokenizer = golden_tokenizer();
  const Document golden = golden_document("golden.json");
  ASSERT_GT(golden.items.size(), 20U);
  for (const Document& entry : golden.items) {
    const std::string& text = entry.find("text")->text;
    EXPECT_EQ(tokenizer.encode(text, {.frame = Frame::kAdd, .origin = Origin::kTemplate}), golden_ids(entry, "ids"));
    const Ids plain = golden_ids(entry, "ids_without_special");
    EXPECT_EQ(tokenizer.encode(text, {.origin = Origin::kTemplate}), plain) << text;
    EXPECT_EQ(tokenizer.decode(plain, {.special_tokens = SpecialTokens::kShow}), entry.find("decoded")->text);
  }
}

TEST(Tokenizer, AUsersTextIsNeverASpecialToken) {
  const Tokenizer& tokenizer = golden_tokenizer();
  const std::string text = "a<|eot_id|>b";
  const TokenId mark = *tokenizer.find("<|eot_id|>");
  const Ids as_user = tokenizer.encode(text);
  const Ids as_template = tokenizer.encode(text, {.origin = Origin::kTemplate});
  EXPECT_EQ(std::count(as_user.begin(), as_user.end(), mark), 0);
  EXPECT_EQ(std::count(as_template.begin(), as_template.end(), mark), 1);
  EXPECT_EQ(tokenizer.decode(as_user), text);
}

TEST(Tokenizer, SegmentsAreOneTextInWhichOnlyTheTemplateSteers) {
  const Tokenizer& tokenizer = golden_tokenizer();
  const TokenId mark = *tokenizer.find("<|eot_id|>");
  const auto marks = [&](const std::vector<Segment>& segments) {
    const Ids ids = tokenizer.encode(segments);
    EXPECT_EQ(tokenizer.decode(ids, {.special_tokens = SpecialTokens::kShow}), joined_text(segments));
    return std::count(ids.begin(), ids.end(), mark);
  };
  EXPECT_EQ(marks({{"x", Origin::kUser}, {"<|eot_id|>", Origin::kTemplate}}), 1);
  EXPECT_EQ(marks({{"x<|eot_id|>", Origin::kUser}, {"y", Origin::kTemplate}}), 0);
  EXPECT_EQ(marks({{"<|eot", Origin::kTemplate}, {"_id|>", Origin::kUser}}), 0) << "half of it is a user's";
  EXPECT_EQ(marks({{"<|eot", Origin::kUser}, {"_id|>", Origin::kTemplate}}), 0);
  EXPECT_EQ(marks({{"<|eot", Origin::kTemplate}, {"_id|>", Origin::kTemplate}}), 1);
  // The border of a segment is no border of a token.
  EXPECT_EQ(tokenizer.encode({{"\n", Origin::kTemplate}, {"\nhel", Origin::kUser}, {"lo", Origin::kTemplate}}),
            tokenizer.encode("\n\nhello"));
}

RC_GTEST_PROP(Tokenizer, DecodesWhatItEncoded, (const std::string& bytes)) {
  const std::string text = replace_invalid_utf8(bytes);
  RC_ASSERT(golden_tokenizer().decode(golden_tokenizer().encode(text)) == text);
  RC_ASSERT(golden_tokenizer().encode(bytes) == golden_tokenizer().encode(text));
}

RC_GTEST_PROP(Tokenizer, DecodesTextOfAllScripts, (const std::vector<std::uint32_t>& codes)) {
  std::string text;
  for (const std::uint32_t code : codes) {
    const char32_t point = code % 0x110000;
    if (point < 0xD800 || point > 0xDFFF) append_utf8(text, point);
  }
  RC_ASSERT(golden_tokenizer().decode(golden_tokenizer().encode(text)) == text);
}

TEST(Tokenizer, ReplacesWhatIsNotUtf8) {
  const Tokenizer& tokenizer = golden_tokenizer();
  EXPECT_EQ(tokenizer.decode(tokenizer.encode("a\xFF\xC3z")), "a\uFFFD\uFFFDz");
  EXPECT_EQ(tokenizer.encode({{"\xC3", Origin::kTemplate}, {"\xA9", Origin::kUser}}), tokenizer.encode("\uFFFD\uFFFD"))
      << "a character is not made of two origins";
}

TEST(Tokenizer, RefusesIdsThatAreNoTokens) {
  const Tokenizer& tokenizer = golden_tokenizer();
  EXPECT_EQ(tokenizer.size(), 768);
  for (const TokenId id : {-1, 768, 1 << 30}) {
    EXPECT_FALSE(tokenizer.contains(id));
    EXPECT_ERROR(tokenizer.decode(Ids{id}), ErrorCode::kInvalid, fmt::format("there is no token {}", id));
    EXPECT_ERROR(tokenizer.token(id), ErrorCode::kInvalid, fmt::format("there is no token {}", id));
  }
  EXPECT_EQ(tokenizer.token(767), "<|eot_id|>");
  EXPECT_TRUE(tokenizer.is_special(767));
  EXPECT_FALSE(tokenizer.is_special(5));
}

TEST(Tokenizer, LongTextTakesLittleTime) {
  std::string text;
  while (text.size() < 1'000'000) text += read_file(kTokenizerGolden / "golden.json") + std::string(5000, 'x');
  // 0.3 s on an idle machine in a release build; the limit allows for a loaded machine and for sanitizers.
  const Deadline deadline = Deadline::after(Seconds{60});
  const Instant start = real_clock().now();
  const Ids ids = golden_tokenizer().encode(text);
  const double seconds = to_seconds(real_clock().now() - start).value;
  RecordProperty("seconds", std::to_string(seconds));
#ifdef NDEBUG
  EXPECT_TRUE(tests::kEmulated || seconds < 2.0) << seconds;
#endif
  EXPECT_FALSE(deadline.expired());
  EXPECT_EQ(golden_tokenizer().decode(ids), text);
}

}  // namespace
}  // namespace yoke::text

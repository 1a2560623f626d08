#include "yoke/base/json.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "yoke/base/clock.h"
#include "yoke/base/error.h"
#include "yoke/base/error_testing.h"
#include "yoke/base/limits.h"

namespace yoke {
namespace {

TEST(Json, KeepsOrderKindsAndPlaces) {
  const Document document = parse_json(R"({"b": [1, 2.5, "x"], "a": {"c": null, "d": true}})", "test.json");
  EXPECT_EQ(document.fields[0].first, "b");
  EXPECT_EQ(document.find("b")->items[1].text, "2.5");
  EXPECT_EQ(document.find("b")->items[2].where, "test.json: b[2]");
  EXPECT_EQ(document.find("a")->find("d")->where, "test.json: a.d");
  EXPECT_EQ(document.where, "test.json");
  EXPECT_EQ(document.find("a")->find("c")->kind, Document::Kind::kNull);
  EXPECT_EQ(print_json(document, JsonLayout::kOneLine), R"({"b":[1,2.5,"x"],"a":{"c":null,"d":true}})");
}

TEST(Json, RefusesWhatTheStandardDoesNotKnow) {
  EXPECT_ERROR(parse_json("{\"a\": 1,}", "test.json"), ErrorCode::kInvalid, "line 1, column 9");
  EXPECT_ERROR(parse_json("{\"a\": 1 // no\n}", "test.json"), ErrorCode::kInvalid, "line 1, column 9");
  EXPECT_ERROR(parse_json("[1] 2", "test.json"), ErrorCode::kInvalid, "expected end of input");
  EXPECT_ERROR(parse_json("", "test.json"), ErrorCode::kInvalid, "unexpected end of input");
  EXPECT_ERROR(parse_json("\"\xff\"", "test.json"), ErrorCode::kInvalid, "ill-formed UTF-8 byte");
  EXPECT_ERROR(parse_json("[NaN]", "test.json"), ErrorCode::kInvalid, "invalid literal");
  EXPECT_ERROR(parse_json("[1e999]", "test.json"), ErrorCode::kInvalid, "number overflow parsing '1e999'");
  EXPECT_ERROR(parse_json(R"({"a": 1, "a": 2})", "test.json"), ErrorCode::kInvalid, "'a' stands twice");
}

TEST(Json, ItsSyntaxIsCheckedWithoutAnError) {
  for (const char* text : {"{}", "[1, 2.5, \"x\"]", " null ", "{\"a\": 1, \"a\": 2}"})
    EXPECT_TRUE(is_json(text)) << text;
  for (const char* text : {"", "{\"log\"}", "[1] 2", "{\"a\": 1,}", "{", "\"\xff\""})
    EXPECT_FALSE(is_json(text)) << text;
}

TEST(Json, RefusesDepthInsteadOfOverflowingTheStack) {
  EXPECT_ERROR(parse_json(std::string(1000000, '['), "test.json"), ErrorCode::kInvalid, "nested more than");
}

TEST(Json, PrintsWhatIsNotUtf8ReplacedAndInfinityAsNull) {
  EXPECT_EQ(print_json(Document::string("a\xff"), JsonLayout::kOneLine), "\"a\xEF\xBF\xBD\"");
  EXPECT_EQ(print_json(Document::number(1.0 / 0.0), JsonLayout::kOneLine), "null");
  EXPECT_EQ(print_json(Document::number(INT64_MIN), JsonLayout::kOneLine), "-9223372036854775808");
}

Document random_document(int depth) {
  const int kind = *rc::gen::inRange(0, depth > 0 ? 6 : 4);
  switch (kind) {
    case 0:
      return Document::null();
    case 1:
      return Document::boolean(*rc::gen::arbitrary<bool>());
    case 2:
      return Document::number(*rc::gen::arbitrary<std::int64_t>());
    case 3:
      return Document::string(*rc::gen::container<std::string>(rc::gen::inRange<char>(0, 127)));
    case 4: {
      Document list = Document::list();
      for (int n = *rc::gen::inRange(0, 4); n > 0; --n) list.items.push_back(random_document(depth - 1));
      return list;
    }
    default: {
      Document map = Document::map();
      for (int n = *rc::gen::inRange(0, 4); n > 0; --n) map.add("key" + std::to_string(n), random_document(depth - 1));
      return map;
    }
  }
}

RC_GTEST_PROP(Json, PrintedIsReadBackTheSame, ()) {
  const Document document = random_document(4);
  RC_ASSERT(parse_json(print_json(document), "x") == document);
  RC_ASSERT(parse_json(print_json(document, JsonLayout::kOneLine), "x") == document);
}

RC_GTEST_PROP(Json, DoublesArePrintedExactly, (double value)) {
  RC_PRE(std::isfinite(value));
  const Document read = parse_json(print_json(Document::number(value)), "x");
  RC_ASSERT(std::stod(read.text) == value);
}

TEST(Json, ReadsAndPrintsAsManyKeysAsAVocabularyHas) {
  std::string text = "{\"k\": 0";
  for (int i = 0; i < 200000; ++i) text += fmt::format(",\"{}\":{}", i, i);
  const Instant start = real_clock().now();
  const Document document = parse_json(text + "}", "test");
  EXPECT_EQ(document.fields.size(), 200001U);
  EXPECT_EQ(parse_json(print_json(document), "test"), document);
  EXPECT_LT(to_seconds(real_clock().now() - start).value, 30.0) << "quadratic time would be minutes";
}

// nlohmann takes a NUL byte for the end of the text.
TEST(Json, ANulByteIsNoEnd) {
  using namespace std::string_literals;
  EXPECT_ERROR(parse_json("{\"a\":1}\0, \"b\": nonsense"s, "test"), ErrorCode::kInvalid, "NUL byte in line 1");
  EXPECT_ERROR(parse_json("[1]\n\0\0"s, "test"), ErrorCode::kInvalid, "NUL byte in line 2");
  EXPECT_ERROR(parse_json("123\0"s, "test"), ErrorCode::kInvalid, "NUL byte");
  EXPECT_NO_THROW(parse_json(R"(["\u0000"])", "test"));
}

TEST(Json, HasALimitOfValues) {
  std::string numbers = "[0";
  for (std::uint64_t i = 0; i < limits::kJsonValues; ++i) numbers += ",0";
  EXPECT_ERROR(parse_json(numbers + "]", "test"), ErrorCode::kInvalid, "holds more than 1000000 values");
  EXPECT_NO_THROW(parse_json(numbers.substr(0, numbers.size() - 4) + "]", "test"));
}

TEST(Json, PlacesAreThoseOfTheValues) {
  const Document document = parse_json(R"([[], {"a": {"b\u001b": [0, {"c": 1}]}}, 7])", "t");
  EXPECT_EQ(document.items[0].where, "t: [0]");
  EXPECT_EQ(document.items[2].where, "t: [2]");
  const Document& list = *document.items[1].find("a")->find("b\x1b");
  EXPECT_EQ(list.where, "t: [1].a.b\\x1b");
  EXPECT_EQ(list.items[1].find("c")->where, "t: [1].a.b\\x1b[1].c");
  EXPECT_EQ(fmt::format("{}", Document().where), "");
}

TEST(Json, ManyKeysTakeLittleTimeAndOneTwiceIsFound) {
  std::string text = "{";
  for (int i = 0; i < 100'000; ++i) text += fmt::format("\"k{}\":0,", i);
  EXPECT_NO_THROW(parse_json(text + "\"x\":0}", "test"));
  EXPECT_ERROR(parse_json(text + "\"k17\":0}", "test"), ErrorCode::kInvalid, "'k17' stands twice");
}

TEST(Json, PrintsNothingThatSteersATerminal) {
  EXPECT_EQ(print_json(Document::string("\x1b\x7f\u009b\u00a0é"), JsonLayout::kOneLine),
            "\"\\u001b\\u007f\\u009b\u00a0é\"");
}

}  // namespace
}  // namespace yoke

// Grammars of answers: which texts a schema lets through, and which tokens a mask.
#include <gtest/gtest.h>

#include <bit>
#include <chrono>

#include "yoke/base/error_testing.h"
#include "yoke/base/json.h"
#include "yoke/base/rng.h"
#include "yoke/text/grammar_cache.h"
#include "yoke/text/tokenizers_testing.h"

namespace yoke::text {
namespace {

const std::filesystem::path kNanoTokenizer = std::filesystem::path(YOKE_SOURCE_DIR) / "models/nano/tokenizer.json";

std::shared_ptr<const TokenTries> nano_tries() {
  static const auto tries = std::make_shared<const TokenTries>(Tokenizer::load(kNanoTokenizer));
  return tries;
}

bool lets_through(const std::string& source, std::string_view text) {
  GrammarMasks masks(read_grammar(source), nano_tries());
  const auto state = masks.step(masks.start(), text);
  return state != GrammarMasks::kDead && masks.accepts(state);
}
bool schema_takes(const std::string& schema, std::string_view text) {
  return lets_through(R"({"schema":)" + schema + "}", text);
}

struct SchemaCase {
  std::string schema;
  std::vector<std::string> taken, refused;
};

TEST(JsonSchema, TakesWhatSatisfiesItAndNothingElse) {
  const std::string person =
      R"({"type":"object","properties":{"name":{"type":"string"},"age":{"type":"integer","minimum":0,"maximum":120}},)"
      R"("required":["name"],"additionalProperties":false})";
  const std::vector<SchemaCase> cases = {
      {person,
       {R"({"name":"Ada"})", R"({"name": "Ada", "age": 36})", "{\n  \"name\": \"\\u00e9\\n\"\n}"},
       {R"({})", R"({"age":36})", R"({"name":"Ada","age":121})", R"({"name":"Ada","x":1})", R"({"name":"Ada",})",
        "{\"name\":\"a\nb\"}", "{\"name\":\"\xff\"}", R"({"name":"\ud800"})", R"({"name":"Ada")"}},
      {R"({"type":"object"})", {"{}", R"({"a":[1,2.5e3,{"b":null}],"c":true})"}, {"[]", "{1:2}", "{\"a\":01}"}},
      {"true", {"1", "\"x\"", "[[],{}]", "-0.5"}, {"", "nul", "+1", ".5"}},
      {R"({"type":["string","null"]})", {"null", "\"\""}, {"0"}},
      {R"({"enum":["red",3,null,{"a":1}]})", {"\"red\"", "3", "null", "{\"a\":1}"}, {"\"blue\"", "4"}},
      {R"({"const":"yes"})", {"\"yes\""}, {"\"no\""}},
      {R"({"anyOf":[{"type":"integer"},{"type":"boolean"}]})", {"12", "false"}, {"1.5", "\"a\""}},
      {R"({"type":"array","items":{"type":"integer"},"minItems":1,"maxItems":3})",
       {"[1]", "[1, 2, 3]"},
       {"[]", "[1,2,3,4]", "[1,]"}},
      {R"({"type":"array","items":{"type":"boolean"}})", {"[]", "[true,false,true,true]"}, {"[1]", "[true true]"}},
      {R"({"type":"array","prefixItems":[{"type":"string"},{"type":"integer"}],"items":false,"minItems":2})",
       {R"(["a",1])"},
       {R"(["a"])", R"(["a",1,2])", R"([1,"a"])"}},
      {R"({"type":"string","minLength":2,"maxLength":3})", {"\"ab\"", "\"äöü\"", R"("\n\"\\")"}, {"\"a\"", "\"abcd\""}},
      {R"({"type":"string","pattern":"^[A-Z]{2}-\\d+$"})",
       {"\"AB-1\"", "\"ZZ-007\""},
       {"\"Ab-1\"", "\"AB-\"", "\"xAB-1\""}},
      {R"({"type":"string","pattern":"b+"})", {"\"b\"", "\"abbc\""}, {"\"\"", "\"ac\""}},
      {R"({"type":"string","pattern":"^(a|b\"|[^x-z])?.$"})", {"\"a1\"", R"("b\"1")", "\"€1\""}, {"\"x1\"", "\"\""}},
      {R"({"type":"string","format":"date"})", {"\"2026-02-28\""}, {"\"2026-13-01\"", "\"today\""}},
      {R"({"type":"integer","minimum":-5,"maximum":123})",
       {"-5", "-1", "0", "9", "99", "100", "123"},
       {"-6", "124", "1230", "00", "-0"}},
      {R"({"type":"integer","exclusiveMinimum":7})", {"8", "70", "123456"}, {"7", "0", "-8"}},
      {R"({"type":"number","minimum":0,"maximum":1})", {"0", "0.25", "1"}, {"1.5", "-0.5", "2"}},
      {R"({"allOf":[{"$ref":"#/$defs/a"},{"properties":{"y":{"type":"null"}},"required":["y"]}],)"
       R"("$defs":{"a":{"type":"object","properties":{"x":{"type":"integer"}},"required":["x"]}}})",
       {R"({"x":1,"y":null})"},
       {R"({"x":1})", R"({"y":null})"}},
      {R"({"$ref":"#/$defs/tree","$defs":{"tree":{"type":"object","properties":{"next":)"
       R"({"anyOf":[{"$ref":"#/$defs/tree"},)"
       R"({"type":"null"}]}},"required":["next"],"additionalProperties":false}}})",
       {R"({"next":null})", R"({"next":{"next":{"next":null}}})"},
       {R"({"next":{}})", R"({"next":{"next":null})"}},
      {R"({"type":"object","additionalProperties":{"type":"integer"}})", {"{}", R"({"a":1,"b":2})"}, {R"({"a":"b"})"}},
      {R"({"type":"object","properties":{"a":{},"b":{}}})",
       {"{}", R"({"a":1})", R"({"b":1})", R"({"a":1,"b":2})"},
       {R"({"b":1,"a":2})", R"({"c":1})"}},
  };
  for (const SchemaCase& one : cases) {
    for (const std::string& text : one.taken) EXPECT_TRUE(schema_takes(one.schema, text)) << one.schema << "\n" << text;
    for (const std::string& text : one.refused)
      EXPECT_FALSE(schema_takes(one.schema, text)) << one.schema << "\n" << text;
  }
}

TEST(JsonSchema, NamesTheKeywordThatItLacks) {
  EXPECT_ERROR(read_grammar(R"({"schema":{"type":"array","uniqueItems":true}})"), ErrorCode::kUnsupported,
               "uniqueItems");
  EXPECT_ERROR(read_grammar(R"x({"schema":{"type":"string","pattern":"(?=a)"}})x"), ErrorCode::kUnsupported, "(?=a)");
  EXPECT_ERROR(read_grammar(R"({"schema":{"type":"date"}})"), ErrorCode::kInvalid, "date");
  EXPECT_ERROR(read_grammar(R"({"schema":{"$ref":"#/$defs/none"}})"), ErrorCode::kInvalid, "none");
  EXPECT_ERROR(read_grammar(R"({"schema":{"$ref":"https://example.com/a"}})"), ErrorCode::kUnsupported, "example.com");
  EXPECT_ERROR(read_grammar(R"({"schema":{"type":"string","maxLength":1000000}})"), ErrorCode::kUnsupported,
               "maxLength");
  EXPECT_ERROR(read_grammar(R"({"unknown":1})"), ErrorCode::kInvalid, "unknown");
  EXPECT_ERROR(GrammarMasks(read_grammar(R"({"schema":{"$ref":"#"}})"), nano_tries()), ErrorCode::kInvalid,
               "no answer");
}

TEST(Grammar, HasLiteralsChoicesAndTextUpToAMark) {
  const std::string source =
      R"({"any_of":[{"sequence":[{"until":"</t>"},{"literal":"!"}]},{"repeat":{"literal":"ab"}},)"
      R"({"special":"<|end|>"}]})";
  EXPECT_TRUE(lets_through(source, "thought</t</t>!"));
  EXPECT_FALSE(lets_through(source, "thought</t>"));
  EXPECT_TRUE(lets_through(source, "ababab"));
  EXPECT_FALSE(lets_through(source, "aba"));
  EXPECT_TRUE(lets_through(source, std::string(1, kSpecialMark) + "<|end|>"));
}

// The mask against its definition: a token is allowed where its bytes go on to a state that is not dead.
TEST(GrammarMatcher, AllowsTheTokensWhoseBytesTheGrammarTakes) {
  const Tokenizer tokenizer = Tokenizer::load(kNanoTokenizer);
  const auto masks = std::make_shared<GrammarMasks>(
      read_grammar(R"({"schema":{"type":"object","properties":{"cable":{"type":"string"}},"required":["cable"]}})"),
      nano_tries());
  const TokenId end = *tokenizer.find("<|end|>");
  GrammarMatcher matcher(masks);
  std::string text;
  for (const TokenId id : tokenizer.encode("{\"cable\": \"QSFP é\"}")) {
    const auto allowed = matcher.allowed(std::span(&end, 1));
    const auto is_allowed = [&](TokenId one) {
      return (allowed[static_cast<std::size_t>(one) / 32] >> one % 32 & 1U) != 0;
    };
    for (TokenId one = 0; one < tokenizer.size(); ++one) {
      const bool should =
          tokenizer.contains(one) && !tokenizer.is_special(one) && !nano_tries()->later.bytes(one).empty() &&
          masks->step(masks->step(masks->start(), text), nano_tries()->later.bytes(one)) != GrammarMasks::kDead;
      ASSERT_EQ(is_allowed(one), should) << text << " + " << tokenizer.token(one);
    }
    EXPECT_FALSE(matcher.may_end());
    matcher.add(id);
    text += nano_tries()->later.bytes(id);
  }
  EXPECT_TRUE(matcher.may_end());
  const auto last = matcher.allowed(std::span(&end, 1));
  int count = 0;
  for (const std::uint32_t word : last) count += std::popcount(word);
  EXPECT_EQ(count, 1);  // nothing but the end
  EXPECT_ERROR(matcher.add(*tokenizer.find("a")), ErrorCode::kInvalid, "does not allow");
}

// A mask is made while all other answers wait: what would take too long is refused instead.
TEST(GrammarMatcher, RefusesASchemaWhoseMasksTakeTooLong) {
  std::string choices;
  for (int i = 0; i < 150; ++i) {
    choices +=
        fmt::format(R"({}{{"type":"string","pattern":"[a-z0-9 ]*{}[a-z0-9 ]{{0,400}}b"}})", i == 0 ? "" : ",", i);
  }
  const auto masks =
      std::make_shared<GrammarMasks>(read_grammar(R"({"schema":{"anyOf":[)" + choices + "]}}"), nano_tries());
  GrammarMatcher matcher(masks);
  const Tokenizer tokenizer = Tokenizer::load(kNanoTokenizer);
  const auto write = [&] {
    for (const TokenId id : tokenizer.encode("\"0123456789 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28")) {
      matcher.allowed({});
      matcher.add(id);
    }
  };
  const auto start = std::chrono::steady_clock::now();
  try {
    write();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalid);
  }
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20));
}

// Whatever is chosen of the allowed tokens, the answer is JSON of the schema when it may end.
TEST(GrammarMatcher, MakesJsonOfRandomChoices) {
  GrammarCache cache(kNanoTokenizer);
  const Tokenizer tokenizer = Tokenizer::load(kNanoTokenizer);
  const TokenId end = *tokenizer.find("<|end|>");
  const std::string source =
      R"({"schema":{"type":"object","properties":{"a":{"type":"integer"},"b":{"enum":["x","y"]},"c":{"type":"array",)"
      R"("items":{"type":"boolean"},"maxItems":2}},"required":["a","b","c"],"additionalProperties":false}})";
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    GrammarMatcher matcher = cache.matcher(source);
    std::vector<TokenId> answer;
    while (answer.size() < 400) {
      const auto allowed = matcher.allowed(std::span(&end, 1));
      std::vector<TokenId> choices;
      for (TokenId id = 0; id < tokenizer.size(); ++id) {
        if ((allowed[static_cast<std::size_t>(id) / 32] >> id % 32 & 1U) != 0) choices.push_back(id);
      }
      ASSERT_FALSE(choices.empty());
      const TokenId chosen = choices[philox(seed, answer.size())[0] % choices.size()];
      if (chosen == end) break;
      matcher.add(chosen);
      answer.push_back(chosen);
    }
    const std::string text = tokenizer.decode(answer);
    ASSERT_TRUE(matcher.may_end()) << text;
    const Document read = parse_json(text, "answer");
    EXPECT_EQ(read.fields.size(), 3U) << text;
    EXPECT_EQ(read.find("a")->kind, Document::Kind::kNumber) << text;
  }
}

}  // namespace
}  // namespace yoke::text

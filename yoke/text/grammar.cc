#include "yoke/text/grammar.h"

#include <fmt/format.h>

#include "yoke/base/error.h"
#include "yoke/base/json.h"
#include "yoke/base/text.h"
#include "yoke/text/json_schema.h"

namespace yoke::text {
namespace {

constexpr std::size_t kMaxGrammarNodes = 200'000;
constexpr int kMaxGrammarDepth = 64;

using At = GrammarBuilder::At;

[[noreturn]] void refuse_grammar(const std::string& why) {
  throw Error(ErrorCode::kInvalid, fmt::format("the grammar of an answer {}", why));
}

class GrammarReader {
 public:
  explicit GrammarReader(GrammarBuilder& builder) : builder_(builder) {}

  At read(At from, const Document& source, int depth = 0) {
    if (depth > kMaxGrammarDepth) refuse_grammar("is nested too deep");
    if (source.kind != Document::Kind::kMap || source.fields.size() != 1) refuse_grammar("has a part of no known kind");
    const auto& [kind, value] = source.fields.front();
    if (kind == "schema") return add_json_schema(builder_, from, value);
    if (kind == "repeat") {
      return builder_.repeat(from, 1, -1, [&](At at) { return read(at, value, depth + 1); });
    }
    if (kind == "sequence" && value.kind == Document::Kind::kList) {
      for (const Document& item : value.items) from = read(from, item, depth + 1);
      return from;
    }
    if (kind == "any_of" && value.kind == Document::Kind::kList) {
      const At end = builder_.node();
      for (const Document& item : value.items) builder_.join(read(from, item, depth + 1), end);
      return end;
    }
    if (value.kind != Document::Kind::kText)
      refuse_grammar(fmt::format("has a '{}' that is no text", printable(kind, 40)));
    if (kind == "literal") return builder_.literal(from, value.text);
    if (kind == "special") return builder_.literal(from, kSpecialMark + value.text);
    if (kind == "until_special") {
      from = builder_.repeat(from, 0, -1, [&](At at) { return builder_.range(at, 0, 0xFE); });
      return builder_.literal(from, kSpecialMark + value.text);
    }
    if (kind == "until" && !value.text.empty()) return builder_.until(from, value.text);
    refuse_grammar(fmt::format("has the unknown kind '{}'", printable(kind, 40)));
  }

 private:
  GrammarBuilder& builder_;
};

}  // namespace

Grammar read_grammar(const Document& source) {
  GrammarBuilder builder;
  const std::int32_t root = builder.reserve_rule();
  builder.end_rule(GrammarReader(builder).read(builder.begin(root), source));
  return builder.take();
}

Grammar read_grammar(std::string_view source) { return read_grammar(parse_json(source, "grammar")); }

At GrammarBuilder::node() {
  if (grammar_.nodes.size() >= kMaxGrammarNodes) {
    throw Error(ErrorCode::kExhausted, "the schema of the answer is too large",
                "use smaller limits of lengths and fewer values");
  }
  grammar_.nodes.emplace_back();
  return static_cast<At>(grammar_.nodes.size() - 1);
}

std::int32_t GrammarBuilder::reserve_rule() {
  grammar_.rules.push_back(node());
  return static_cast<std::int32_t>(grammar_.rules.size() - 1);
}

void GrammarBuilder::join(At from, At to) { grammar_.nodes[static_cast<std::size_t>(from)].free.push_back(to); }

void GrammarBuilder::range(At from, At to, int low, int high) {
  grammar_.nodes[static_cast<std::size_t>(from)].edges.push_back(
      {static_cast<std::uint8_t>(low), static_cast<std::uint8_t>(high), to});
}

At GrammarBuilder::range(At from, int low, int high) {
  const At to = node();
  range(from, to, low, high);
  return to;
}

At GrammarBuilder::literal(At from, std::string_view bytes) {
  for (const char c : bytes) from = range(from, static_cast<std::uint8_t>(c), static_cast<std::uint8_t>(c));
  return from;
}

At GrammarBuilder::call(At from, std::int32_t rule) {
  const At to = node();
  grammar_.nodes[static_cast<std::size_t>(from)].calls.push_back({rule, to});
  return to;
}

// RFC 3629: neither overlong forms nor surrogates.
At GrammarBuilder::any_text_byte(At from) {
  const At end = node();
  const At last = node(), last_two = node();
  range(last, end, 0x80, 0xBF);
  range(last_two, last, 0x80, 0xBF);
  range(from, last, 0xC2, 0xDF);
  range(range(from, 0xE0, 0xE0), last, 0xA0, 0xBF);
  range(from, last_two, 0xE1, 0xEC);
  range(range(from, 0xED, 0xED), last, 0x80, 0x9F);
  range(from, last_two, 0xEE, 0xEF);
  range(range(from, 0xF0, 0xF0), last_two, 0x90, 0xBF);
  range(range(from, 0xF1, 0xF3), last_two, 0x80, 0xBF);
  range(range(from, 0xF4, 0xF4), last_two, 0x80, 0x8F);
  return end;
}

// The automaton of Knuth, Morris and Pratt: node i has seen the first i bytes of the text.
At GrammarBuilder::until(At from, std::string_view text) {
  std::vector<At> at(text.size() + 1);
  for (At& one : at) one = node();
  join(from, at[0]);
  const auto next = [&](std::size_t seen, char byte) {
    std::string tail(text.substr(0, seen));
    tail += byte;
    while (!text.starts_with(tail)) tail.erase(0, 1);
    return tail.size();
  };
  for (std::size_t seen = 0; seen < text.size(); ++seen) {
    for (int byte = 0; byte < 0xFF; ++byte) range(at[seen], at[next(seen, static_cast<char>(byte))], byte, byte);
  }
  return at.back();
}

}  // namespace yoke::text

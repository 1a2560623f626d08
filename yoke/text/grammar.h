// A grammar over bytes: what an answer may be. A network of nodes with byte edges, and rules that call each other, so
// that nested JSON can be described. grammar_matcher.h walks it along with the tokens of an answer.
//
//   const Grammar grammar = read_grammar(parse_json(R"({"schema": {"type": "integer"}})", "request"));
//
// A special token stands as the byte kSpecialMark, which no text has, and the token's text. Immutable once made.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "yoke/base/document.h"

namespace yoke::text {

inline constexpr char kSpecialMark = '\xFF';

struct Grammar {
  struct Edge {
    std::uint8_t low = 0, high = 0;  // bytes from low to high
    std::int32_t to = 0;
  };
  struct Call {
    std::int32_t rule = 0;
    std::int32_t to = 0;  // where it goes on after the rule
  };
  struct Node {
    std::vector<Edge> edges;
    std::vector<std::int32_t> free;  // nodes that are reached without a byte
    std::vector<Call> calls;
    bool is_end = false;  // of its rule
  };
  std::vector<Node> nodes;
  std::vector<std::int32_t> rules;  // the first node of each; rule 0 is the whole
};

// What a grammar's source says, as JSON that travels with a request:
//   {"schema": {…}}               a JSON value of that schema (json_schema.h)
//   {"literal": "text"}           this text; {"special": "<|call|>"} this special token
//   {"until": "</think>"}         any text up to the first such text, and that; {"until_special": …} up to a special
//   token
//   {"sequence": [g, …]}, {"any_of": [g, …]}, {"repeat": g}     one after the other; one of them; once or more often
// Error(kInvalid) for anything else, Error(kUnsupported) for a schema's keyword that we do not have, Error(kExhausted)
// where it would take too much memory.
Grammar read_grammar(const Document& source);
Grammar read_grammar(std::string_view source);  // JSON text

// Makes a grammar piece by piece: each function begins at a node and returns the node after its piece.
class GrammarBuilder {
 public:
  using At = std::int32_t;

  At node();
  std::int32_t reserve_rule();  // its beginning is a new node
  At begin(std::int32_t rule) const { return grammar_.rules[static_cast<std::size_t>(rule)]; }
  void end_rule(At at) { grammar_.nodes[static_cast<std::size_t>(at)].is_end = true; }

  void join(At from, At to);  // without a byte
  void range(At from, At to, int low, int high);
  At range(At from, int low, int high);
  At literal(At from, std::string_view bytes);
  At call(At from, std::int32_t rule);
  At until(At from, std::string_view text);
  At any_text_byte(At from);  // a whole UTF-8 character of two bytes or more
  // `piece` from `least` to `most` times; most < 0: any number.
  template <class Piece>
  At repeat(At from, std::int64_t least, std::int64_t most, const Piece& piece) {
    for (std::int64_t i = 0; i < least; ++i) from = piece(from);
    if (most < 0) {
      const At loop = node();
      join(from, loop);
      join(piece(loop), loop);
      return loop;
    }
    const At end = node();
    join(from, end);
    for (std::int64_t i = least; i < most; ++i) {
      from = piece(from);
      join(from, end);
    }
    return end;
  }

  Grammar take() { return std::move(grammar_); }

 private:
  Grammar grammar_;
};

}  // namespace yoke::text

// A pattern to search for: a literal text, or a regular expression of the kind that tokenizer.json holds, run by PCRE2
// with Unicode properties, compiled to machine code where PCRE2 can, and with limits on what a match may cost.
//
//   const Pattern words = Pattern::regex("\\p{L}+", "tokenizer.json");
//   for (const Match& match : words.find_all(text)) …
//
// Immutable once made: any thread may search. Texts must be valid UTF-8.
#pragma once
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace yoke {

struct Match {
  std::size_t begin;
  std::size_t end;
  friend bool operator==(const Match&, const Match&) = default;
};

class Pattern {
 public:
  static Pattern literal(std::string text);
  // `source` names the file in errors: a pattern that PCRE2 does not take is kUnsupported.
  static Pattern regex(std::string_view expression, std::string_view source);

  // From left to right, without overlap; empty matches are left out. kExhausted where a match would cost too much.
  std::vector<Match> find_all(std::string_view text) const;
  std::string replace_all(std::string_view text, std::string_view replacement) const;

 private:
  struct Compiled;
  std::vector<Match> find_all_literal(std::string_view text) const;

  std::string literal_;
  std::shared_ptr<const Compiled> compiled_;  // null for a literal
};

}  // namespace yoke

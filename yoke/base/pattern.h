// A pattern to search for: a literal text, or a regular expression from a file, run by PCRE2 with Unicode properties.
// Its length, its steps and the time of a search are bounded (limits.h), and no expression can end the program.
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

#include "yoke/base/cpu_budget.h"
#include "yoke/base/limits.h"

namespace yoke {

struct Match {
  std::size_t begin;
  std::size_t end;
  friend bool operator==(const Match&, const Match&) = default;
};

enum class PatternSpeed {
  kCompile,    // to machine code, where PCRE2 can: for long texts
  kInterpret,  // for a few short texts: machine code costs up to some milliseconds
};
struct PatternOptions {
  std::size_t bytes_max = limits::kPatternBytes;
  PatternSpeed speed = PatternSpeed::kCompile;
};

class Pattern {
 public:
  static Pattern literal(std::string text);
  // `source` names the file in errors: a pattern that PCRE2 does not take is kUnsupported.
  static Pattern regex(std::string_view expression, std::string_view source, PatternOptions options = {});

  // From left to right, without overlap; empty matches are left out. kExhausted where it would cost too much, kInvalid
  // where the pattern's matches make no sense (\K can move a start behind the end).
  std::vector<Match> find_all(std::string_view text, CpuBudget& budget) const;
  // kExhausted where the result would have more than `bytes_max` bytes.
  std::string replace_all(std::string_view text, std::string_view replacement, std::size_t bytes_max,
                          CpuBudget& budget) const;
  // Whether the text begins with a match, empty or not.
  bool begins(std::string_view text) const;

 private:
  struct Compiled;
  std::vector<Match> find_all_literal(std::string_view text, CpuBudget& budget) const;

  std::string literal_;
  std::shared_ptr<const Compiled> compiled_;  // null for a literal
};

}  // namespace yoke

// Pieces of JSON text as pieces of a grammar: white space, strings, numbers. Internal to json_schema.cc.
#pragma once
#include <cstdint>
#include <optional>
#include <string_view>

#include "yoke/text/grammar.h"

namespace yoke::text {

class JsonPieces {
 public:
  using At = GrammarBuilder::At;
  explicit JsonPieces(GrammarBuilder& builder) : builder_(builder) {}

  At space(At from);      // nothing, a blank, or a new line with its indentation
  At character(At from);  // of a string: any, as JSON writes it
  At string(At from) { return string(from, 0, -1); }
  At string(At from, std::int64_t least, std::int64_t most);  // characters
  At any_value(At from);
  At number(At from);
  At integer(At from);
  // Whole numbers from low to high; nothing: without that bound, up to 16 digits.
  At integer(At from, std::optional<std::int64_t> low, std::optional<std::int64_t> high);
  // Numbers from low to high with up to 16 places.
  At number(At from, std::optional<std::int64_t> low, std::optional<std::int64_t> high);
  // A string whose characters match a regular expression. Error(kUnsupported) for what we do not have.
  At matching(At from, std::string_view pattern);

 private:
  At digits(At from, std::int64_t least, std::int64_t most);
  void natural(At from, At to, std::uint64_t low, std::uint64_t high);
  void same_length(At from, At to, std::string_view low, std::string_view high);
  At fraction(At from);
  std::int32_t value_rule();
  std::int32_t object_rule();

  GrammarBuilder& builder_;
  std::optional<std::int32_t> space_, character_, value_, object_;
};

}  // namespace yoke::text

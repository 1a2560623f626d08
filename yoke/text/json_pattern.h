// A regular expression as a grammar of the characters of a JSON string. Literals, ., classes, groups, |, *, +, ?,
// {m,n}, \d \w \s and their opposites, ^ and $ at the ends; without these anything may stand before and after, as JSON
// Schema has it. What else there is (look-around, references, …) is Error(kUnsupported).
#pragma once
#include <functional>
#include <string_view>

#include "yoke/text/grammar.h"

namespace yoke::text {

// `any_character` adds one character of a JSON string.
GrammarBuilder::At add_json_pattern(GrammarBuilder& builder, GrammarBuilder::At from, std::string_view pattern,
                                    const std::function<GrammarBuilder::At(GrammarBuilder::At)>& any_character);

}  // namespace yoke::text

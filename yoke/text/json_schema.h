// JSON Schema to a grammar: the keywords that OpenAI's structured outputs have, and a few more. What a schema leaves
// open is closed here (an object with properties has no others unless additionalProperties says so; properties come in
// the schema's order; white space is short), so that what the grammar lets through always satisfies the schema.
//
// Taken: type, enum, const, anyOf, oneOf, allOf of objects, $ref into the same schema (also recursive), properties,
// required, additionalProperties, items, prefixItems, minItems, maxItems, minLength, maxLength, pattern, format (date,
// time, date-time, uuid, ipv4, email), bounds of integers and whole bounds of numbers. Annotations are passed over. Any
// other keyword is Error(kUnsupported) that names it: an answer that breaks it would be worse than none.
#pragma once
#include "yoke/base/document.h"
#include "yoke/text/grammar.h"

namespace yoke::text {

GrammarBuilder::At add_json_schema(GrammarBuilder& builder, GrammarBuilder::At from, const Document& schema);

}  // namespace yoke::text

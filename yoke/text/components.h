// Reading the parts of a tokenizer.json: each is a map with a "type" and some settings, or a "Sequence" of such maps.
#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "yoke/base/document.h"

namespace yoke::text {

// The type of a part, such as "NFC". kInvalid where there is none.
std::string component_type(const Document& component);

// kUnsupported: "tokenizer.json: the normalizer 'BertNormalizer' is not supported".
[[noreturn]] void refuse_component(const Document& component, std::string_view role);

bool is_null(const Document* document);  // absent, or null

// Settings. With a default they may be absent or null; a value of another kind is kInvalid.
const Document& required(const Document& map, std::string_view key);
std::string text_setting(const Document& map, std::string_view key);
std::string text_setting(const Document& map, std::string_view key, std::string_view otherwise);
// A text that is put into others, such as the '▁' of a Metaspace: kInvalid beyond limits::kTokenizerMarkBytes.
std::string mark_setting(const Document& map, std::string_view key);
bool flag_setting(const Document& map, std::string_view key, bool otherwise);
std::int64_t number_setting(const Document& map, std::string_view key, std::optional<std::int64_t> otherwise = {});

// kInvalid where one more step would be more than limits::kTokenizerSteps.
void check_steps(std::size_t steps, const Document& component);

// The parts of a sequence, under whichever key this kind of sequence keeps them.
const std::vector<Document>& sequence_items(const Document& sequence, std::string_view key);

}  // namespace yoke::text

#include "yoke/weights/made_tokenizer.h"

#include <fmt/format.h>

#include <array>
#include <set>

#include "yoke/base/check.h"
#include "yoke/base/embedded.h"
#include "yoke/base/fields.h"
#include "yoke/base/json.h"

namespace yoke::weights {
namespace {

Document carried(const std::string& path) {
  const auto text = embedded_file(path);
  YOKE_CHECK(text.has_value(), "{} is not in the program", path);
  return parse_json(*text, path);
}

Document& field(Document& map, std::string_view key) {
  for (auto& [name, value] : map.fields) {
    if (name == key) return value;
  }
  YOKE_CHECK(false, "no {}", key);
  return map;
}

// Words of syllables, three and more: the number in base 80, with one more syllable than it needs.
std::string invented_word(std::int64_t number) {
  constexpr std::string_view kConsonants = "bdfghklmnprstvwz";
  constexpr std::string_view kVowels = "aeiou";
  constexpr auto kSyllables = static_cast<std::int64_t>(kConsonants.size() * kVowels.size());
  std::string word = "Ġ";  // a space before it, as byte-level tokenizers write it
  for (int syllable = 0; syllable < 3 || number > 0; ++syllable, number /= kSyllables) {
    const auto digit = static_cast<std::size_t>(number % kSyllables);
    word += kConsonants[digit % kConsonants.size()];
    word += kVowels[digit / kConsonants.size()];
  }
  return word;
}

std::int64_t special_id(const Document& tokenizer, const Document& config, std::string_view name) {
  for (const Document& token : tokenizer.find("added_tokens")->items) {
    if (token.find("content")->text == config.find(name)->text) return from_json<std::int64_t>(*token.find("id"));
  }
  YOKE_CHECK(false, "no {}", name);
  return 0;
}

}  // namespace

MadeTokenizer make_tokenizer(std::int64_t vocabulary, std::int64_t context) {
  Document tokenizer = carried("models/nano/tokenizer.json");
  Document config = carried("models/nano/tokenizer_config.json");
  Document& words = field(field(tokenizer, "model"), "vocab");
  const Document& added = *tokenizer.find("added_tokens");
  std::set<std::string> taken;
  for (const auto& [word, id] : words.fields) taken.insert(word);
  std::int64_t next = std::ssize(words.fields) + std::ssize(added.items);
  YOKE_CHECK(next <= vocabulary, "nano's {} tokens do not fit into {}", next, vocabulary);
  if (next < vocabulary) {
    // The tokenizers library numbers added tokens behind the vocabulary, unless the vocabulary has their numbers.
    for (const Document& token : added.items) words.add(token.find("content")->text, *token.find("id"));
  }
  for (std::int64_t number = 0; next < vocabulary; ++number) {
    std::string word = invented_word(number);
    if (!taken.contains(word)) words.add(std::move(word), Document::number(next++));
  }
  field(config, "model_max_length") = Document::number(context);
  return {.tokenizer = print_json(tokenizer) + "\n",
          .tokenizer_config = print_json(config) + "\n",
          .begin = special_id(tokenizer, config, "bos_token"),
          .end = special_id(tokenizer, config, "eos_token"),
          .pad = special_id(tokenizer, config, "pad_token")};
}

}  // namespace yoke::weights

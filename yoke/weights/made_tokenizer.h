// The tokenizer of a made model: the shipped nano model's, which is in the program, with invented words up to the
// vocabulary of the shape, so that every id that random weights may choose is a text. Text is encoded by nano's merges;
// an invented word is what its id decodes to ("Ġbakemo"), and a text that holds the very word becomes that id.
#pragma once
#include <cstdint>
#include <string>

namespace yoke::weights {

struct MadeTokenizer {
  std::string tokenizer;         // tokenizer.json
  std::string tokenizer_config;  // with a chat template
  std::int64_t begin = 0;        // ids of the special tokens
  std::int64_t end = 0;
  std::int64_t pad = 0;
};

// The vocabulary must hold nano's at least.
MadeTokenizer make_tokenizer(std::int64_t vocabulary, std::int64_t context);

}  // namespace yoke::weights

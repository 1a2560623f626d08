// The grammars of requests, each compiled once: the same schema comes again and again. The tokenizer is read when the
// first grammar comes. One thread at a time.
#pragma once
#include <filesystem>
#include <map>
#include <memory>
#include <string>

#include "yoke/text/grammar_matcher.h"

namespace yoke::text {

class GrammarCache {
 public:
  explicit GrammarCache(std::filesystem::path tokenizer_file) : file_(std::move(tokenizer_file)) {}

  // Errors as those of read_grammar(), and what is wrong with the tokenizer.
  GrammarMatcher matcher(const std::string& source);

 private:
  static constexpr std::size_t kMaxGrammars = 32;
  std::filesystem::path file_;
  std::shared_ptr<const TokenTries> tries_;
  std::map<std::string, std::shared_ptr<GrammarMasks>> masks_;
};

}  // namespace yoke::text

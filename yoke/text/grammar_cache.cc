#include "yoke/text/grammar_cache.h"

#include "yoke/text/tokenizer.h"

namespace yoke::text {

GrammarMatcher GrammarCache::matcher(const std::string& source) {
  if (!tries_) tries_ = std::make_shared<const TokenTries>(Tokenizer::load(file_));
  const auto known = masks_.find(source);
  if (known != masks_.end() && !known->second->is_large()) return GrammarMatcher(known->second);
  auto made = std::make_shared<GrammarMasks>(read_grammar(source), tries_);
  if (masks_.size() >= kMaxGrammars) masks_.clear();
  masks_.insert_or_assign(source, made);
  return GrammarMatcher(std::move(made));
}

}  // namespace yoke::text

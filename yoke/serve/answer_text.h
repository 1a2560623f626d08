// The text of an answer as its tokens come: whole characters, without the tokens and texts that end it. A model
// without a tokenizer has ids for text. The ModelText must live as long; one thread at a time.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "yoke/serve/model_text.h"
#include "yoke/text/detokenizer.h"
#include "yoke/text/stops.h"

namespace yoke::serve {

class AnswerText {
 public:
  AnswerText(const ModelText& text, std::vector<std::string> stops)
      : AnswerText(text, std::move(stops), text.stop_ids) {}
  AnswerText(const ModelText& text, std::vector<std::string> stops, std::vector<text::TokenId> stop_ids,
             text::SpecialTokens special = text::SpecialTokens::kHide)
      : stops_(std::move(stops), std::move(stop_ids)) {
    if (!text.tokenizer) return;
    tokenizer_ = &*text.tokenizer;
    detokenizer_.emplace(*text.tokenizer, text::DecodeOptions{.special_tokens = special});
  }

  // The text that is certain now.
  std::string add(text::TokenId id) {
    if (!detokenizer_) return kept(all_.empty() ? std::to_string(id) : " " + std::to_string(id));
    if (stops_.stops_at(id)) return {};
    // A head is often wider than the vocabulary, and a model with random weights finds the places beyond.
    return kept(stops_.add(tokenizer_->contains(id) ? detokenizer_->add(id) : "\uFFFD"));
  }
  std::string finish() {
    if (!detokenizer_) return {};
    std::string rest = stops_.stopped() ? std::string() : stops_.add(detokenizer_->finish());
    rest += stops_.finish();
    return kept(std::move(rest));
  }
  bool found_stop() const { return !stops_.matched().empty(); }
  // Some of its text may still become the beginning of a stop, or of a character.
  bool holds_text() const { return stops_.holds_text() || (detokenizer_ && detokenizer_->holds_text()); }
  std::string stop_found() const { return std::string(stops_.matched()); }
  const std::string& all() const { return all_; }

 private:
  std::string kept(std::string text) {
    all_ += text;
    return text;
  }

  const text::Tokenizer* tokenizer_ = nullptr;
  std::optional<text::Detokenizer> detokenizer_;
  text::StopMatcher stops_;
  std::string all_;
};

}  // namespace yoke::serve

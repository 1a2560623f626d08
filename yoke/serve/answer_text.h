// The text of an answer as its tokens come: whole characters, without the tokens and texts that end it. A model
// without a tokenizer has ids for text. The ModelText must live as long; one thread at a time.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "yoke/serve/model_text.h"
#include "yoke/text/detokenizer.h"
#include "yoke/text/stops.h"

namespace yoke {

class AnswerText {
 public:
  AnswerText(const ModelText& text, std::vector<std::string> stops) : stops_(std::move(stops), text.stop_ids) {
    if (!text.tokenizer) return;
    tokenizer_ = &*text.tokenizer;
    detokenizer_.emplace(*text.tokenizer);
  }

  // The text that is certain now.
  std::string add(TokenId id) {
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
  const std::string& all() const { return all_; }

 private:
  std::string kept(std::string text) {
    all_ += text;
    return text;
  }

  const Tokenizer* tokenizer_ = nullptr;
  std::optional<Detokenizer> detokenizer_;
  StopMatcher stops_;
  std::string all_;
};

}  // namespace yoke

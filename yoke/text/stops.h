// Where an answer ends: at a token, or at a text that may come in pieces. Text that could be the start of a stop text
// is held back until it is known not to be, so that no part of a stop text is ever given out.
//
//   StopMatcher stops({"\n\nUser:"}, {end_of_turn});
//   while (!stops.stopped()) {
//     const TokenId id = …;
//     if (!stops.stops_at(id)) print(stops.add(detokenizer.add(id)));
//   }
//   print(stops.finish());
//
// One per answer; one thread at a time.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "yoke/text/vocabulary.h"

namespace yoke::text {

class StopMatcher {
 public:
  // An empty stop text is kInvalid.
  explicit StopMatcher(std::vector<std::string> stops, std::vector<TokenId> stop_ids = {});

  // To be asked for each token before its text is added: whether the answer ends with it. Its text does not count then.
  bool stops_at(TokenId id);

  // The text that is certain now. Once stopped, nothing more comes.
  std::string add(std::string_view text);
  // What was held back: the end of an answer that ended at a token or for another reason.
  std::string finish();
  bool stopped() const { return stopped_; }
  bool holds_text() const { return !held_.empty(); }
  const std::string& matched() const { return matched_; }  // the stop text that was found, or empty

 private:
  std::size_t possible_start() const;  // how much of the end of what is held may begin a stop text

  std::vector<std::string> stops_;
  std::vector<TokenId> stop_ids_;
  std::string held_;
  std::string matched_;
  bool stopped_ = false;
};

}  // namespace yoke::text

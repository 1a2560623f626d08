// Cuts an answer after its first call of a tool, for requests with parallel_tool_calls false.
//
//   for (const text::AnswerPart& part : first.take(parser.add(text))) …
//   if (first.is_complete()) …                                  // what follows is not the client's
#pragma once
#include <vector>

#include "yoke/text/answer_parts.h"

namespace yoke::serve {

class FirstCall {
 public:
  // The parts up to the end of the first call.
  std::vector<text::AnswerPart> take(std::vector<text::AnswerPart> parts) {
    std::vector<text::AnswerPart> kept;
    for (text::AnswerPart& part : parts) {
      is_complete_ = is_complete_ || (has_call_ && part.kind != text::AnswerPart::Kind::kArguments);
      if (is_complete_) break;
      has_call_ = has_call_ || part.kind == text::AnswerPart::Kind::kCall;
      kept.push_back(std::move(part));
    }
    return kept;
  }
  bool is_complete() const { return is_complete_; }

 private:
  bool has_call_ = false, is_complete_ = false;
};

}  // namespace yoke::serve

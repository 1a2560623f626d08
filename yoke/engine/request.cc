#include "yoke/engine/request.h"

#include <algorithm>

namespace yoke::engine {

std::optional<FinishReason> finished(const Request& request) {
  if (request.answer.empty()) return std::nullopt;
  const std::vector<text::TokenId>& stops = request.stop_ids;
  if (std::find(stops.begin(), stops.end(), request.answer.back()) != stops.end()) return FinishReason::kStop;
  if (std::ssize(request.answer) >= request.answer_max) return FinishReason::kLength;
  return std::nullopt;
}

}  // namespace yoke::engine

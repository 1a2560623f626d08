#include "yoke/plan/serve_score.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "yoke/base/units.h"

namespace yoke::plan {

std::string milliseconds(double seconds) { return yoke::to_string(Seconds{seconds}); }

Scored score(const Request& request, const Layout& layout, const Constants& k) {
  const ServeCase c = serve_case(request, layout);
  Scored scored;
  scored.planned.layout = layout;
  scored.planned.name = layout_name(layout);
  scored.planned.memory = serve_memory(c, request.context, std::max(request.concurrency, 1.0));
  scored.step = decode_step(c, k);
  // All requests' answers, and their prompts, which a replica reads one after the other.
  const double requests = std::max(request.concurrency, 1.0);
  scored.prompt = prefill_seconds(c, request.prompt, 0, k);
  ServeCase decoding = c;
  decoding.prompt = 0;
  const double seconds =
      scored.prompt * std::ceil(requests / layout.replicas) + request.generated * requests / decode_rate(decoding, k);
  scored.planned.score = requests * request.generated / seconds;
  return scored;
}

std::string behind_because(const Scored& best, const Scored& other) {
  struct Difference {
    double seconds;
    std::string text;
  };
  const std::vector<Difference> differences = {
      {other.step.weights - best.step.weights,
       fmt::format("each step reads weights for {} instead of {}", milliseconds(other.step.weights),
                   milliseconds(best.step.weights))},
      {other.step.exchange - best.step.exchange,
       fmt::format("exchange between ranks takes {} of a step instead of {}", milliseconds(other.step.exchange),
                   milliseconds(best.step.exchange))},
      {other.step.cache - best.step.cache, fmt::format("reading the cache takes {} instead of {}",
                                                       milliseconds(other.step.cache), milliseconds(best.step.cache))}};
  const auto largest = std::max_element(differences.begin(), differences.end(),
                                        [](const auto& a, const auto& b) { return a.seconds < b.seconds; });
  if (other.prompt > 1.5 * best.prompt) {
    return fmt::format("reading a prompt takes {} instead of {}", milliseconds(other.prompt),
                       milliseconds(best.prompt));
  }
  if (largest->seconds > 0.02 * best.step.total()) return largest->text;
  if (other.planned.layout.pipeline > best.planned.layout.pipeline) {
    return "requests and prompts pass all stages in turn";
  }
  return "its replicas are not filled by the requests asked for";
}

std::string winner_because(const Scored& best, const Request& request) {
  const double total = best.step.total();
  const double exchange = 100 * best.step.exchange / total;
  const double weights = 100 * best.step.weights / total;
  std::string text = fmt::format("{:.0f}% of a step reads weights", weights);
  if (best.step.exchange > 0) text += fmt::format(", {:.0f}% is exchange between ranks", exchange);
  if (best.planned.layout.tensor > 1) {
    text += fmt::format(" ({} all-reduces of {})", 2 * request.model.layers,
                        yoke::to_string(Seconds{best.step.exchange / (2 * static_cast<double>(request.model.layers))}));
  }
  return text;
}

}  // namespace yoke::plan

// How many tokens of prompts a step takes. Nothing is heard between two steps, neither Ctrl-C nor another request, so a
// step takes half a second at most, however slow the machine is. While answers are being made, a step takes about one
// token's time for prompts: reading a prompt then makes the time per token of the others twice as long at most. What is
// computed does not depend on it. Pure.
#pragma once
#include <algorithm>
#include <bit>
#include <cstdint>
#include <optional>

#include "yoke/base/units.h"

namespace yoke::engine {

struct PromptBudget {
  std::int64_t alone = 512;        // where nothing else runs
  std::int64_t with_others = 512;  // while others make answers
};

class StepPace {
 public:
  static constexpr std::int64_t kMin = 16;  // alone: with fewer, reading the weights takes most of the time
  static constexpr Seconds kStep{0.5};
  // Of the time of a step that only makes tokens. Below 1: later tokens of a prompt look back further.
  static constexpr double kShare = 0.75;

  explicit StepPace(std::int64_t most) : most_(most), chunk_(std::min(kMin, most)) {}

  PromptBudget budget() const { return {.alone = chunk_, .with_others = static_cast<std::int64_t>(credit_)}; }

  // A step took so long; it read so many tokens of prompts and made so many tokens of answers. With several stages each
  // computes another step meanwhile: then `prompt_tokens` are those of the stage that had most, and `answers` of all.
  void took(std::int64_t prompt_tokens, std::int64_t answers, Seconds time) {
    took(prompt_tokens, answers, time, prompt_tokens);
  }
  // `planned`: tokens of prompts in the step that the first stage computed.
  void took(std::int64_t prompt_tokens, std::int64_t answers, Seconds time, std::int64_t planned) {
    if (prompt_tokens == 0) {
      if (answers > 0) learn(decode_, time.value);
    } else if (answers == 0) {
      learn_alone(prompt_tokens, time);
      learn(per_token_, time.value / static_cast<double>(prompt_tokens));
    } else if (decode_) {
      learn(per_token_, std::max(0.0, time.value - *decode_) / static_cast<double>(prompt_tokens));
    }
    if (answers > 0) earn(planned);
  }

 private:
  // The last piece of a prompt says nothing: in a small step tokens cost more.
  void learn_alone(std::int64_t tokens, Seconds time) {
    if (tokens < chunk_) return;
    const double would_do = static_cast<double>(tokens) * kStep.value / std::max(time.value, 1e-6);
    const auto whole = static_cast<std::uint64_t>(std::clamp(would_do, 1.0, static_cast<double>(most_)));
    chunk_ = whole >= static_cast<std::uint64_t>(most_)
                 ? most_
                 : std::clamp(static_cast<std::int64_t>(std::bit_floor(whole)), std::min(kMin, most_), most_);
  }
  // What was measured counts a quarter: one slow step is an accident, four are not.
  static void learn(std::optional<double>& estimate, double measured) {
    estimate = estimate ? 0.75 * *estimate + 0.25 * measured : measured;
  }
  // Each step that makes tokens earns what it may spend on prompts. Where one token of a prompt costs more than that,
  // several steps save for it. What nobody spends is not kept.
  void earn(std::int64_t spent) {
    // Before both are known every other step is without prompts, so that they become known.
    const double rate = decode_ && per_token_ ? kShare * *decode_ / std::max(*per_token_, 1e-9) : 0.5;
    const double most = std::clamp(rate, 1.0, static_cast<double>(chunk_));
    credit_ = std::clamp(credit_ - static_cast<double>(spent) + rate, 0.0, most);
  }

  std::int64_t most_;
  std::int64_t chunk_;
  double credit_ = 1;                // tokens of prompts beside answers, in the next step
  std::optional<double> decode_;     // seconds of a step that only makes tokens
  std::optional<double> per_token_;  // seconds that a token of a prompt adds
};

}  // namespace yoke::engine

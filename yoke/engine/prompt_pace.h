// How many tokens of prompts a step takes. Nothing is heard between two steps, neither Ctrl-C nor another request, and
// answers wait meanwhile: so a step should take half a second at most, however slow the machine is. What is computed
// does not depend on it. Pure.
#pragma once
#include <algorithm>
#include <bit>
#include <cstdint>

#include "yoke/base/units.h"

namespace yoke {

class PromptPace {
 public:
  static constexpr std::int64_t kLeast = 16;  // with fewer, reading the weights takes most of the time
  static constexpr Seconds kStep{0.5};

  explicit PromptPace(std::int64_t most) : most_(most), chunk_(std::min(kLeast, most)) {}

  std::int64_t chunk() const { return chunk_; }

  // A step took so long, and so many tokens of prompts were in it. The last piece of a prompt says nothing: in a small
  // step tokens cost more.
  void took(std::int64_t tokens, Seconds time) {
    if (tokens < chunk_) return;
    const double would_do = static_cast<double>(tokens) * kStep.value / std::max(time.value, 1e-6);
    const auto whole = static_cast<std::uint64_t>(std::clamp(would_do, 1.0, static_cast<double>(most_)));
    chunk_ = whole >= static_cast<std::uint64_t>(most_)
                 ? most_
                 : std::clamp(static_cast<std::int64_t>(std::bit_floor(whole)), std::min(kLeast, most_), most_);
  }

 private:
  std::int64_t most_;
  std::int64_t chunk_;
};

}  // namespace yoke

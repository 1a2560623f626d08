// What choosing tokens needs of one rank's part of the vocabulary. A backend keeps the options of each sequence in a
// slot, and Backend::select writes one block of words for each row:
//
//   present | best | likeliest | mass: max, sum | raw mass: max, sum | best candidates | likeliest candidates
//
// Counts are words, the four numbers of the masses f64 (two words each), a candidate is (id, logit, raw logit). Nothing
// is present where a logit is not a number. text/sampling.h says what these mean and is their oracle.
#pragma once
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace yoke::ops {

struct TokenBias {
  std::int32_t id = 0;
  float bias = 0;  // added to the logit; minus infinity forbids the token
};

// Of one sequence, from open_slot() to close_slot(). The backend copies what it needs.
struct SlotOptions {
  float repetition_penalty = 1;
  float frequency_penalty = 0;
  float presence_penalty = 0;
  std::span<const TokenBias> bias;
  // Which tokens may be chosen, a bit for each id from 0 on, 32 to a word; empty: all. Ids beyond its end may not.
  std::span<const std::uint32_t> allowed;
  std::span<const std::int32_t> prompt, answer;  // whose tokens the penalties count

  bool penalizes() const { return repetition_penalty != 1 || frequency_penalty != 0 || presence_penalty != 0; }
};

struct SelectRow {
  std::int32_t logit_row = 0;
  std::int32_t slot = 0;
  float temperature = 0;       // 0: no mass
  std::int32_t count = 1;      // of the best by logit
  std::int32_t raw_count = 0;  // of the likeliest by raw logit
  bool raw_mass = false;
};

inline constexpr std::size_t kSelectHeaderWords = 3 + 2 * 2 * 2;
inline constexpr std::size_t kCandidateWords = 3;
constexpr std::size_t select_words(std::size_t candidates) { return kSelectHeaderWords + kCandidateWords * candidates; }

}  // namespace yoke::ops

#include "yoke/engine/head_block.h"

#include <algorithm>
#include <cstring>

#include "yoke/base/check.h"

namespace yoke::engine {
namespace {

template <class T>
std::span<const std::int32_t> get(std::span<const std::int32_t> words, T& value) {
  std::memcpy(&value, words.data(), sizeof value);
  return words.subspan(sizeof value / sizeof(std::int32_t));
}

}  // namespace

ops::SelectRow select_row(const text::SamplingOptions& options, std::int32_t logit_row, std::int32_t slot) {
  return {.logit_row = logit_row,
          .slot = slot,
          .temperature = options.temperature,
          .count = static_cast<std::int32_t>(text::candidates_wanted(options)),
          .raw_count = options.logprobs.value_or(0),
          .raw_mass = options.logprobs.has_value()};
}

std::size_t head_words(const text::SamplingOptions& options) {
  const ops::SelectRow row = select_row(options, 0, 0);
  return ops::select_words(static_cast<std::size_t>(row.count + row.raw_count));
}

std::optional<text::HeadSlice> read_head(std::span<const std::int32_t> words) {
  YOKE_CHECK_GE(words.size(), ops::kSelectHeaderWords);
  std::int32_t present = 0, best = 0, likeliest = 0;
  words = get(get(get(words, present), best), likeliest);
  if (present == 0) return std::nullopt;
  text::HeadSlice slice;
  words = get(get(words, slice.mass.max), slice.mass.sum);
  words = get(get(words, slice.raw_mass.max), slice.raw_mass.sum);
  YOKE_CHECK(
      best >= 0 && likeliest >= 0 && ops::kCandidateWords * static_cast<std::size_t>(best + likeliest) <= words.size(),
      "{} and {} candidates in {} words", best, likeliest, words.size());
  slice.best.resize(static_cast<std::size_t>(best));
  slice.likeliest.resize(static_cast<std::size_t>(likeliest));
  for (auto* list : {&slice.best, &slice.likeliest}) {
    for (text::Candidate& candidate : *list) words = get(get(get(words, candidate.id), candidate.logit), candidate.raw);
  }
  return slice;
}

}  // namespace yoke::engine

#include "yoke/engine/head_block.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "yoke/base/check.h"

namespace yoke {
namespace {

// present | best | likeliest | mass: two doubles | raw mass: two doubles | the candidates
constexpr std::size_t kHeaderWords = 3 + 2 * 2 * 2;
constexpr std::size_t kCandidateWords = 3;

std::size_t candidates_most(const SamplingOptions& options) {
  const std::size_t best = options.temperature == 0 ? 1 : kCandidatesMost;
  return best + (options.logprobs ? static_cast<std::size_t>(std::max(1, *options.logprobs)) : 0);
}

template <class T>
std::span<std::int32_t> put(std::span<std::int32_t> words, const T& value) {
  std::memcpy(words.data(), &value, sizeof value);
  return words.subspan(sizeof value / sizeof(std::int32_t));
}
template <class T>
std::span<const std::int32_t> get(std::span<const std::int32_t> words, T& value) {
  std::memcpy(&value, words.data(), sizeof value);
  return words.subspan(sizeof value / sizeof(std::int32_t));
}

}  // namespace

std::size_t head_words(const SamplingOptions& options) {
  return kHeaderWords + kCandidateWords * candidates_most(options);
}

void write_head(const std::optional<HeadSlice>& slice, std::span<std::int32_t> words) {
  std::fill(words.begin(), words.end(), 0);
  if (!slice) return;
  const std::size_t needed = kHeaderWords + kCandidateWords * (slice->best.size() + slice->likeliest.size());
  YOKE_CHECK(needed <= words.size(), "{} words for {}", words.size(), needed);
  words = put(words, std::int32_t{1});
  words = put(words, static_cast<std::int32_t>(slice->best.size()));
  words = put(words, static_cast<std::int32_t>(slice->likeliest.size()));
  for (const double number : {slice->mass.max, slice->mass.sum, slice->raw_mass.max, slice->raw_mass.sum}) {
    words = put(words, number);
  }
  for (const auto* list : {&slice->best, &slice->likeliest}) {
    for (const Candidate& candidate : *list) {
      words = put(words, candidate.id);
      words = put(words, candidate.logit);
      words = put(words, candidate.raw);
    }
  }
}

std::optional<HeadSlice> read_head(std::span<const std::int32_t> words) {
  std::int32_t present = 0, best = 0, likeliest = 0;
  words = get(get(get(words, present), best), likeliest);
  if (present == 0) return std::nullopt;
  HeadSlice slice;
  words = get(get(words, slice.mass.max), slice.mass.sum);
  words = get(get(words, slice.raw_mass.max), slice.raw_mass.sum);
  YOKE_CHECK(
      best >= 0 && likeliest >= 0 && kCandidateWords * static_cast<std::size_t>(best + likeliest) <= words.size(),
      "{} and {} candidates in {} words", best, likeliest, words.size());
  slice.best.resize(static_cast<std::size_t>(best));
  slice.likeliest.resize(static_cast<std::size_t>(likeliest));
  for (auto* list : {&slice.best, &slice.likeliest}) {
    for (Candidate& candidate : *list) words = get(get(get(words, candidate.id), candidate.logit), candidate.raw);
  }
  return slice;
}

}  // namespace yoke

// For tests only: what a rank says of its part of the vocabulary, as slowly and plainly as can be. Backends, which
// choose candidates on their device, are compared with it.
#pragma once
#include <algorithm>
#include <cmath>
#include <map>
#include <span>
#include <vector>

#include "yoke/text/sampling.h"

namespace yoke::text {

// Which tokens a sequence holds, for the penalties.
struct TokenCounts {
  std::map<TokenId, int> answer;  // how often
  std::vector<TokenId> prompt;

  void add_prompt(std::span<const TokenId> ids) { prompt.insert(prompt.end(), ids.begin(), ids.end()); }
  void add_answer(TokenId id) { ++answer[id]; }
};

inline float adjusted_logit(float logit, TokenId id, const SamplingOptions& options, const TokenCounts& counts) {
  const auto answered = counts.answer.find(id);
  const bool in_answer = answered != counts.answer.end();
  if (in_answer || std::find(counts.prompt.begin(), counts.prompt.end(), id) != counts.prompt.end()) {
    logit = logit > 0 ? logit / options.repetition_penalty : logit * options.repetition_penalty;
  }
  if (in_answer) {
    logit -= options.frequency_penalty * static_cast<float>(answered->second) + options.presence_penalty;
  }
  for (const LogitBias& entry : options.logit_bias) {
    if (entry.id == id) logit += entry.bias;
  }
  return logit;
}

// `logits` are those of the tokens from `first` on.
inline HeadSlice slice_head(std::span<const float> logits, TokenId first, const SamplingOptions& options,
                            const TokenCounts& counts) {
  std::vector<Candidate> all;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    const TokenId id = first + static_cast<TokenId>(i);
    all.push_back({id, adjusted_logit(logits[i], id, options, counts), logits[i]});
  }
  // Of the member that is compared, over the largest of them.
  const auto mass_of = [&](float Candidate::*member, double scale) {
    LogSumExp mass;
    for (const Candidate& candidate : all) mass.max = std::max(mass.max, candidate.*member * scale);
    if (std::isinf(mass.max)) return mass;
    for (const Candidate& candidate : all) mass.sum += std::exp(candidate.*member * scale - mass.max);
    return mass;
  };
  const auto first_by = [&](float Candidate::*member, std::size_t most) {
    std::vector<Candidate> sorted = all;
    std::sort(sorted.begin(), sorted.end(), [&](const Candidate& a, const Candidate& b) {
      return a.*member != b.*member ? a.*member > b.*member : a.id < b.id;
    });
    sorted.resize(std::min(sorted.size(), most));
    return sorted;
  };
  HeadSlice slice{
      .best = first_by(&Candidate::logit, candidates_wanted(options)), .mass = {}, .likeliest = {}, .raw_mass = {}};
  if (options.temperature > 0) {
    slice.mass = mass_of(&Candidate::logit, 1 / static_cast<double>(options.temperature));
  }
  if (options.logprobs) {
    slice.likeliest = first_by(&Candidate::raw, static_cast<std::size_t>(*options.logprobs));
    slice.raw_mass = mass_of(&Candidate::raw, 1);
  }
  return slice;
}

}  // namespace yoke::text

// From logits to the next token. The head of a model is split by vocabulary: each rank makes a HeadSlice of its part,
// which says all that choosing needs (its best candidates, and the sum over the others), and one rank merges the slices
// and samples.
//
//   slices[rank] = …                                                       // on each rank: engine/head_block.h
//   SampledToken next = sample(merge_slices(slices), options, position);        // on one
//
// All pure functions: the number drawn depends on (seed, position) only, so that the same logits give the same token in
// whatever batch, on however many ranks, and again after a restart. Sampling looks at the kMaxCandidates best tokens.
// Order: penalties and bias, temperature, top-k, top-p of what is left, min-p.
#pragma once
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "yoke/text/vocabulary.h"

namespace yoke::text {

inline constexpr std::size_t kMaxCandidates = 256;

struct LogitBias {
  TokenId id = 0;
  float bias = 0;  // added to the logit; minus infinity forbids the token
};

struct SamplingOptions {
  float temperature = 1;         // 0: the best token
  int top_k = 0;                 // the k best only; 0: as many as there are candidates
  float top_p = 1;               // the fewest of the best whose probabilities reach p
  float min_p = 0;               // those with at least this part of the best token's probability
  float repetition_penalty = 1;  // of tokens in prompt or answer: positive logits are divided by it, others multiplied
  float frequency_penalty = 0;   // subtracted for each time that a token is in the answer
  float presence_penalty = 0;    // subtracted once where a token is in the answer
  std::vector<LogitBias> logit_bias;
  std::uint64_t seed = 0;
  std::optional<int> logprobs;  // also report log-probabilities, with those of so many of the likeliest tokens
};

// How many of the best tokens are looked at; each rank gives so many of its own.
std::size_t candidates_wanted(const SamplingOptions& options);

// kInvalid, naming the option that makes no sense for a vocabulary of this size.
void check_sampling(const SamplingOptions& options, TokenId vocabulary_size);

// Sum of exponentials, kept with the largest exponent so that it neither overflows nor vanishes.
struct LogSumExp {
  double max = -std::numeric_limits<double>::infinity();
  double sum = 0;  // of exp(x - max)
  void add(const LogSumExp& other);
  double log() const;
};

struct Candidate {
  TokenId id = 0;
  float logit = 0;  // with penalties and bias
  float raw = 0;    // as the model gave it
};

struct HeadSlice {
  std::vector<Candidate> best;       // by logit, best first; equal logits by id
  LogSumExp mass;                    // of all logits over the temperature; empty where the best token is taken
  std::vector<Candidate> likeliest;  // by raw logit; only for log-probabilities
  LogSumExp raw_mass;                // of all raw logits; only for log-probabilities
};

// At most so many candidates of all slices together: candidates_wanted() are enough to sample.
HeadSlice merge_slices(std::span<const HeadSlice> slices, std::size_t most = std::numeric_limits<std::size_t>::max());

struct TokenLogprob {
  TokenId id = 0;
  float logprob = 0;
};

struct SampledToken {
  TokenId id = 0;
  float logprob = 0;              // of the model as it is: before penalties, bias and temperature
  std::vector<TokenLogprob> top;  // the likeliest tokens; both only where they were asked for
};

// `position` is the place of the token in its sequence.
SampledToken sample(const HeadSlice& head, const SamplingOptions& options, std::uint64_t position);

}  // namespace yoke::text

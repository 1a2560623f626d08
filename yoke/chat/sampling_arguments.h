// How the next token is chosen, as it was asked for on the command line or by /set: what is not given is as the model's
// makers want it.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "yoke/serve/model_text.h"

namespace yoke::chat {

struct SamplingArguments {
  std::optional<double> temperature, top_p, min_p, repetition_penalty, frequency_penalty, presence_penalty;
  std::optional<int> top_k, logprobs, tokens;
  std::optional<std::uint64_t> seed;
  std::vector<std::string> logit_bias, stops;
};

// Throws Error(kUsage). Without a seed another one each time, where anything is drawn at all.
text::SamplingOptions sampling_of(const SamplingArguments& arguments, const serve::ModelText& text);
std::int64_t answer_max_of(const SamplingArguments& arguments, const serve::ModelText& text);

}  // namespace yoke::chat

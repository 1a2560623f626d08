#include "yoke/chat/sampling_arguments.h"

#include <fmt/format.h>

#include <charconv>
#include <limits>
#include <random>

#include "yoke/base/error.h"
#include "yoke/base/result.h"
#include "yoke/base/text.h"

namespace yoke::chat {
namespace {

constexpr std::int64_t kMaxAnswer = 512;  // where neither the user nor the model says

text::LogitBias parse_bias(const std::string& text) {
  const std::size_t equals = text.find('=');
  text::LogitBias bias;
  const char* const begin = text.data();
  const char* const end = begin + text.size();
  if (equals != std::string::npos) {
    const auto id = std::from_chars(begin, begin + equals, bias.id);
    const auto value = std::from_chars(begin + equals + 1, end, bias.bias);
    const bool is_number = value.ec == std::errc{} && value.ptr == end && !(bias.bias != bias.bias);
    const bool forbids_or_finite = bias.bias < std::numeric_limits<float>::infinity();
    if (id.ec == std::errc{} && id.ptr == begin + equals && is_number && forbids_or_finite) return bias;
  }
  throw Error(ErrorCode::kUsage, fmt::format("--logit-bias: '{}' is no bias", printable(text, 40)),
              "give a token id and what is added to its logit, such as 42=1.5; 42=-inf forbids the token");
}

void set(float& target, const std::optional<double>& given) {
  if (given) target = static_cast<float>(*given);
}

}  // namespace

text::SamplingOptions sampling_of(const SamplingArguments& a, const serve::ModelText& text) {
  text::SamplingOptions options = text.sampling;
  set(options.temperature, a.temperature);
  set(options.top_p, a.top_p);
  set(options.min_p, a.min_p);
  set(options.repetition_penalty, a.repetition_penalty);
  set(options.frequency_penalty, a.frequency_penalty);
  set(options.presence_penalty, a.presence_penalty);
  if (a.top_k) options.top_k = *a.top_k;
  options.logprobs = a.logprobs;
  for (const std::string& bias : a.logit_bias) options.logit_bias.push_back(parse_bias(bias));
  if (a.seed) {
    options.seed = *a.seed;
  } else if (options.temperature > 0) {
    std::random_device device;
    options.seed = (std::uint64_t{device()} << 32U) | device();
  }
  const auto checked = try_to([&] { text::check_sampling(options, text::Vocabulary::kMaxId); });
  if (!checked) throw Error(ErrorCode::kUsage, checked.error().message(), checked.error().hint());
  for (const std::string& stop : a.stops) {
    if (stop.empty()) throw Error(ErrorCode::kUsage, "--stop cannot be empty", "give the text to end before");
    serve::check_utf8(stop, "--stop");
  }
  return options;
}

std::int64_t answer_max_of(const SamplingArguments& a, const serve::ModelText& text) {
  return a.tokens ? *a.tokens : text.answer_max.value_or(kMaxAnswer);
}

}  // namespace yoke::chat

#include "yoke/engine/wire.h"

#include <fmt/format.h>

namespace yoke::engine {

void WireReader::refuse(std::string_view why) const {
  throw Error(ErrorCode::kInvalid, fmt::format("{} {}", what_, why));
}

const char* WireReader::take(std::size_t size) {
  if (size > rest_.size()) refuse("ends too early");
  const char* const data = rest_.data();
  rest_.remove_prefix(size);
  return data;
}

std::size_t WireReader::get_count(std::size_t bytes_each) {
  const auto count = get<std::uint32_t>();
  if (count > rest_.size() / bytes_each) refuse("claims more than it holds");
  return count;
}

void put_request(WireWriter& writer, const Request& request) {
  const text::SamplingOptions& sampling = request.sampling;
  writer.put(request.id);
  writer.put(request.cache_salt);
  writer.put(request.answer_max);
  writer.put(static_cast<std::int32_t>(request.recoveries));
  writer.put(request.furthest);
  writer.put(static_cast<std::uint8_t>(request.logits));
  writer.put_list(std::span<const text::TokenId>(request.prompt));
  writer.put_list(std::span<const text::TokenId>(request.answer));
  writer.put_list(std::span<const text::TokenId>(request.stop_ids));
  for (const float number : {sampling.temperature, sampling.top_p, sampling.min_p, sampling.repetition_penalty,
                             sampling.frequency_penalty, sampling.presence_penalty}) {
    writer.put(number);
  }
  writer.put(static_cast<std::int32_t>(sampling.top_k));
  writer.put(static_cast<std::uint8_t>(sampling.logprobs.has_value()));
  writer.put(static_cast<std::int32_t>(sampling.logprobs.value_or(0)));
  writer.put(sampling.seed);
  writer.put_text(request.grammar);
  writer.put(static_cast<std::uint32_t>(sampling.logit_bias.size()));
  for (const text::LogitBias& bias : sampling.logit_bias) {
    writer.put(bias.id);
    writer.put(bias.bias);
  }
}

Request get_request(WireReader& reader) {
  Request request;
  text::SamplingOptions& sampling = request.sampling;
  request.id = reader.get<std::uint64_t>();
  request.cache_salt = reader.get<std::uint64_t>();
  request.answer_max = reader.get<std::int64_t>();
  request.recoveries = reader.get<std::int32_t>();
  request.furthest = reader.get<std::int64_t>();
  const auto logits = reader.get<std::uint8_t>();
  if (logits > static_cast<std::uint8_t>(LogitsWanted::kStates)) reader.refuse("asks for unknown logits");
  request.logits = static_cast<LogitsWanted>(logits);
  request.prompt = reader.get_list<text::TokenId>();
  request.answer = reader.get_list<text::TokenId>();
  request.stop_ids = reader.get_list<text::TokenId>();
  for (float* const number : {&sampling.temperature, &sampling.top_p, &sampling.min_p, &sampling.repetition_penalty,
                              &sampling.frequency_penalty, &sampling.presence_penalty}) {
    *number = reader.get<float>();
  }
  sampling.top_k = reader.get<std::int32_t>();
  const auto has_logprobs = reader.get<std::uint8_t>();
  const auto logprobs = reader.get<std::int32_t>();
  if (has_logprobs > 1 || (has_logprobs == 0 && logprobs != 0)) reader.refuse("asks for unknown log-probabilities");
  if (has_logprobs == 1) sampling.logprobs = logprobs;
  sampling.seed = reader.get<std::uint64_t>();
  request.grammar = reader.get_text();
  sampling.logit_bias.resize(reader.get_count(sizeof(text::TokenId) + sizeof(float)));
  for (text::LogitBias& bias : sampling.logit_bias) {
    bias.id = reader.get<text::TokenId>();
    bias.bias = reader.get<float>();
  }
  return request;
}

}  // namespace yoke::engine

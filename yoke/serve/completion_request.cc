#include "yoke/serve/completion_request.h"

#include <fmt/format.h>

#include <limits>

#include "yoke/base/json.h"
#include "yoke/base/text.h"
#include "yoke/serve/answer_shape.h"
#include "yoke/serve/api_error.h"
#include "yoke/serve/api_fields.h"
#include "yoke/serve/chat_messages.h"
#include "yoke/serve/other_requests.h"

namespace yoke::serve {
namespace {

constexpr std::int64_t kMaxAnswers = 128;  // n times prompts, as OpenAI has it
constexpr std::int64_t kMaxTokens = std::numeric_limits<std::int32_t>::max();

// What both endpoints take.
const std::vector<std::string_view> kShared = {
    "model", "n", "stream", "stream_options", "max_tokens", "stop", "temperature", "top_p", "frequency_penalty",
    "presence_penalty", "logit_bias", "seed", "user", "logprobs",
    // of vLLM
    "top_k", "min_p", "repetition_penalty", "stop_token_ids", "ignore_eos", "return_token_ids",
    // taken, and without an effect here
    "metadata", "store", "service_tier", "safety_identifier", "prompt_cache_key", "prompt_cache_retention"};
const std::vector<std::string_view> kOfChat = {"messages",
                                               "max_completion_tokens",
                                               "top_logprobs",
                                               "response_format",
                                               "tools",
                                               "tool_choice",
                                               "parallel_tool_calls",
                                               "chat_template_kwargs",
                                               "reasoning_effort",
                                               "verbosity",
                                               "modalities",
                                               "functions",
                                               "function_call",
                                               "audio",
                                               "prediction",
                                               "web_search_options"};
const std::vector<std::string_view> kOfCompletion = {"prompt", "echo", "best_of", "suffix"};

void check_fields(ApiKind kind, const Document& body) {
  std::vector<std::string_view> known = kShared;
  const auto& more = kind != ApiKind::kCompletion ? kOfChat : kOfCompletion;
  known.insert(known.end(), more.begin(), more.end());
  check_known_fields(body, known);
}

void refuse_unserved(const Document& body, std::string_view key, std::string_view why) {
  if (!given_field(body, key)) return;
  throw ApiError(400, fmt::format("'{}' is not supported: {}", key, why), std::string(key), "unsupported_parameter");
}

void check_served(ApiKind kind, const Document& body, int n) {
  if (kind == ApiKind::kCompletion) {
    refuse_unserved(body, "suffix", "this model continues text, and inserts none.");
    if (const auto* best = given_field(body, "best_of")) {
      if (api_integer(*best, "best_of", 1, kMaxAnswers) != n) refuse_value("best_of", "it must be equal to n.");
    }
    return;
  }
  for (const char* key : {"functions", "function_call", "audio", "prediction", "web_search_options"}) {
    refuse_unserved(body, key, "this server answers with text.");
  }
  if (const auto* modalities = given_field(body, "modalities")) {
    if (modalities->kind != Document::Kind::kList) refuse_type("modalities", "an array", *modalities);
    for (const Document& one : modalities->items) {
      if (api_text(one, "modalities") != "text") refuse_value("modalities", "this server answers with text only.");
    }
  }
}

std::vector<std::string> read_stops(const Document& value) {
  std::vector<std::string> stops;
  if (value.kind == Document::Kind::kText) {
    stops.push_back(value.text);
  } else if (value.kind == Document::Kind::kList) {
    for (const Document& item : value.items) stops.push_back(api_text(item, "stop"));
  } else {
    refuse_type("stop", "a string or an array of strings", value);
  }
  if (stops.size() > 16) refuse_value("stop", "there can be 16 at most.");
  for (const std::string& stop : stops) {
    if (stop.empty() || stop.size() > 1024) refuse_value("stop", "each must have from 1 to 1024 bytes.");
  }
  return stops;
}

std::vector<text::LogitBias> read_bias(const Document& value, std::int64_t vocabulary) {
  if (value.kind != Document::Kind::kMap) refuse_type("logit_bias", "an object", value);
  if (value.fields.size() > 1024) refuse_value("logit_bias", "there can be 1024 at most.");
  std::vector<text::LogitBias> all;
  for (const auto& [key, bias] : value.fields) {
    const Document id{.kind = Document::Kind::kNumber, .text = key};
    const auto number = static_cast<float>(api_number(bias, "logit_bias", -100, 100));
    all.push_back({.id = static_cast<text::TokenId>(api_integer(id, "logit_bias", 0, vocabulary - 1)),
                   .bias = number <= -100 ? -std::numeric_limits<float>::infinity() : number});
  }
  return all;
}

void read_logprobs(const Document& body, CompletionRequest& request) {
  const auto* const given = given_field(body, "logprobs");
  if (request.kind == ApiKind::kCompletion) {
    if (given) request.sampling.logprobs = static_cast<int>(api_integer(*given, "logprobs", 0, 20));
    if (given && request.echo) refuse_value("logprobs", "they are not given for an echoed prompt.");
    return;
  }
  const bool wanted = given && api_bool(*given, "logprobs");
  const auto top = read_given_field<std::int64_t>(
      body, "top_logprobs", [](const Document& value) { return api_integer(value, "top_logprobs", 0, 20); });
  if (top && !wanted) refuse_value("top_logprobs", "it needs 'logprobs' to be true.");
  if (wanted) request.sampling.logprobs = static_cast<int>(top.value_or(0));
}

void read_sampling_fields(const Document& body, const ServedModel& model, CompletionRequest& request) {
  text::SamplingOptions& sampling = request.sampling;
  const auto number = [&](std::string_view key, double min, double max, float& target) {
    if (const auto* value = given_field(body, key)) target = static_cast<float>(api_number(*value, key, min, max));
  };
  number("temperature", 0, 2, sampling.temperature);
  number("top_p", 0, 1, sampling.top_p);
  if (sampling.top_p <= 0) sampling.temperature = 0, sampling.top_p = 1;  // no room for any but the best token
  number("min_p", 0, 1, sampling.min_p);
  number("frequency_penalty", -2, 2, sampling.frequency_penalty);
  number("presence_penalty", -2, 2, sampling.presence_penalty);
  number("repetition_penalty", 0.01, 10, sampling.repetition_penalty);
  if (const auto* value = given_field(body, "top_k")) {
    const std::int64_t top_k = api_integer(*value, "top_k", -1, kMaxTokens);
    sampling.top_k = top_k <= 0 ? 0 : static_cast<int>(std::min<std::int64_t>(top_k, text::kMaxCandidates));
  }
  if (const auto* value = given_field(body, "logit_bias")) sampling.logit_bias = read_bias(*value, model.vocabulary);
  if (const auto* value = given_field(body, "seed")) {
    sampling.seed = static_cast<std::uint64_t>(api_integer(*value, "seed", std::numeric_limits<std::int64_t>::min(),
                                                           std::numeric_limits<std::int64_t>::max()));
    request.has_seed = true;
  }
  read_logprobs(body, request);
}

void read_limits(const Document& body, CompletionRequest& request) {
  for (const char* key : {"max_tokens", "max_completion_tokens"}) {
    const int min = request.kind != ApiKind::kCompletion ? 1 : 0;
    if (const auto* value = given_field(body, key)) request.answer_max = api_integer(*value, key, min, kMaxTokens);
  }
  if (request.kind == ApiKind::kCompletion && !request.answer_max) request.answer_max = 16;  // as OpenAI has it
  if (const auto* value = given_field(body, "stop")) request.stops = read_stops(*value);
  if (const auto* value = given_field(body, "stop_token_ids")) {
    if (value->kind != Document::Kind::kList) refuse_type("stop_token_ids", "an array", *value);
    for (const Document& item : value->items) {
      request.stop_ids.push_back(static_cast<text::TokenId>(api_integer(item, "stop_token_ids", 0, kMaxTokens)));
    }
  }
}

void read_stream_options(const Document& body, CompletionRequest& request) {
  const auto* const options = given_field(body, "stream_options");
  if (!options) return;
  if (options->kind != Document::Kind::kMap) refuse_type("stream_options", "an object", *options);
  if (!request.stream) {
    throw ApiError(400, "The 'stream_options' parameter is only allowed when 'stream' is enabled.", "stream_options");
  }
  check_known_fields(*options, {"include_usage", "include_obfuscation"});
  if (const auto* usage = given_field(*options, "include_usage")) {
    request.include_usage = api_bool(*usage, "stream_options.include_usage");
  }
}

std::vector<text::TokenId> read_ids(const Document& list, const ServedModel& model) {
  std::vector<text::TokenId> ids;
  for (const Document& item : list.items) {
    ids.push_back(static_cast<text::TokenId>(api_integer(item, "prompt", 0, model.vocabulary - 1)));
  }
  return ids;
}

void add_prompt(const Document& value, const ServedModel& model, CompletionRequest& request) {
  if (value.kind == Document::Kind::kText) {
    request.prompts.push_back(model.text->encode_raw(value.text));
    request.prompt_texts.push_back(value.text);
    return;
  }
  if (value.kind != Document::Kind::kList) refuse_type("prompt", "a string or an array", value);
  request.prompts.push_back(read_ids(value, model));
  request.prompt_texts.push_back(request.echo ? model.text->tokenizer->decode(request.prompts.back()) : std::string());
}

// A text, a list of ids, or a list of either.
void read_prompts(const Document& body, const ServedModel& model, CompletionRequest& request) {
  const auto* const prompt = given_field(body, "prompt");
  if (!prompt) throw ApiError(400, "Missing required parameter: 'prompt'.", "prompt", "missing_required_parameter");
  const bool is_list = prompt->kind == Document::Kind::kList;
  const bool is_several = is_list && !prompt->items.empty() && prompt->items[0].kind != Document::Kind::kNumber;
  if (!is_several) return add_prompt(*prompt, model, request);
  if (std::ssize(prompt->items) > kMaxAnswers) refuse_value("prompt", "there can be 128 at most.");
  for (const Document& item : prompt->items) add_prompt(item, model, request);
}

}  // namespace

Document parse_api_body(std::string_view body) {
  Document document;
  try {
    document = parse_json(body, "body");
  } catch (const Error& error) {
    throw ApiError(400, fmt::format("We could not parse the JSON body of your request: {}", error.message()));
  }
  if (document.kind != Document::Kind::kMap) throw ApiError(400, "The body of a request must be a JSON object.");
  return document;
}

void check_model_name(const Document& body, const ServedModel& model) {
  const auto* const name = given_field(body, "model");
  if (!name || api_text(*name, "model") == model.name) return;
  throw ApiError(
      404, fmt::format("The model '{}' does not exist: this server has '{}'.", printable(name->text, 100), model.name),
      "model", "model_not_found");
}

namespace {

void read_chat(const Document& body, const ServedModel& model, CompletionRequest& request) {
  if (model.text->chat) request.style = text::answer_style(model.text->chat->source());
  const ToolUse tools = read_tool_use(body, request.style);
  ChatPrompt prompt = encode_chat_prompt(body, tools.tools, model);
  request.prompts.push_back(std::move(prompt.ids));
  request.parser = {.tools = tools.names, .begins_in_thought = prompt.begins_in_thought};
  request.grammar = read_answer_grammar(body, tools, request.style, prompt.begins_in_thought);
  if (request.grammar.empty()) return;
  if (request.ignore_eos) refuse_value("ignore_eos", "an answer that must be JSON ends where the JSON does.");
  if (model.text->stop_ids.empty()) refuse_value("response_format", "this model has no token that ends an answer.");
}

CompletionRequest read_translated(ApiKind kind, const Document& body, const ServedModel& model) {
  check_fields(kind, body);
  check_model_name(body, model);
  CompletionRequest request{.kind = kind, .sampling = model.text->sampling};
  const auto flag = [&](std::string_view key, bool& target) {
    if (const auto* value = given_field(body, key)) target = api_bool(*value, key);
  };
  flag("stream", request.stream);
  flag("ignore_eos", request.ignore_eos);
  flag("return_token_ids", request.gives_ids);
  bool calls_together = true;
  flag("parallel_tool_calls", calls_together);
  request.has_one_call = !calls_together;
  if (kind == ApiKind::kCompletion) flag("echo", request.echo);
  if (const auto* value = given_field(body, "n"))
    request.n = static_cast<int>(api_integer(*value, "n", 1, kMaxAnswers));
  check_served(kind, body, request.n);
  read_limits(body, request);
  read_stream_options(body, request);
  read_sampling_fields(body, model, request);
  if (kind != ApiKind::kCompletion) {
    read_chat(body, model, request);
  } else {
    read_prompts(body, model, request);
  }
  if (std::ssize(request.prompts) * request.n > kMaxAnswers)
    refuse_value("n", "n times the prompts can be 128 at most.");
  const std::string prompt_name = kind != ApiKind::kCompletion ? "messages" : "prompt";
  for (const auto& prompt : request.prompts) {
    if (prompt.empty()) refuse_value(prompt_name, "it has no tokens.");
    answer_room(request, prompt.size(), model);
  }
  text::check_sampling(request.sampling, static_cast<text::TokenId>(model.vocabulary));
  return request;
}

}  // namespace

CompletionRequest read_completion_request(ApiKind kind, std::string_view body_text, const ServedModel& model) {
  Document original = parse_api_body(body_text);
  // Those of the other endpoints are translated to a chat.
  if (kind == ApiKind::kResponses || kind == ApiKind::kMessages) {
    const Document chat =
        kind == ApiKind::kResponses ? chat_body_of_responses(original) : chat_body_of_messages(original);
    CompletionRequest request = read_translated(kind, chat, model);
    if (kind == ApiKind::kResponses) request.original = std::move(original);
    return request;
  }
  return read_translated(kind, original, model);
}

std::int64_t answer_room(const CompletionRequest& request, std::size_t prompt_tokens, const ServedModel& model) {
  const std::string param = request.kind != ApiKind::kCompletion ? "messages" : "prompt";
  const auto prompt = static_cast<std::int64_t>(prompt_tokens);
  const std::int64_t asked = request.answer_max.value_or(0);
  if (prompt + std::max<std::int64_t>(asked, 1) > model.context_max) {
    throw ApiError(400,
                   fmt::format("This model's maximum context length is {} tokens. However, you requested {} tokens ({} "
                               "in the {}, {} in the completion). Please reduce the length.",
                               model.context_max, prompt + asked, prompt, param, asked),
                   param, "context_length_exceeded");
  }
  if (request.answer_max) return asked;
  const std::int64_t room = model.context_max - prompt;
  return model.text->answer_max ? std::min(room, std::max<std::int64_t>(1, *model.text->answer_max)) : room;
}

}  // namespace yoke::serve

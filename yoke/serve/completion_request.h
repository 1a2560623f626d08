// The body of a request to /v1/chat/completions or /v1/completions, read and checked: every wrong value is an ApiError
// that names the parameter. Parameters that OpenAI does not have are refused, except those that vLLM has made common:
// top_k, min_p, repetition_penalty, stop_token_ids, ignore_eos, chat_template_kwargs.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "yoke/base/document.h"
#include "yoke/serve/api_error.h"
#include "yoke/serve/model_text.h"
#include "yoke/text/answer_parts.h"

namespace yoke::serve {

struct CompletionRequest {
  ApiKind kind = ApiKind::kChat;
  std::vector<std::vector<text::TokenId>> prompts;  // one, or several of /v1/completions
  std::vector<std::string> prompt_texts;            // of these, for echo
  int n = 1;                                        // answers to each
  bool stream = false, include_usage = false, echo = false, ignore_eos = false;
  std::optional<std::int64_t> answer_max;
  std::vector<std::string> stops;
  std::vector<text::TokenId> stop_ids;  // besides the model's own
  text::SamplingOptions sampling;       // logprobs too; without a seed: 0
  bool has_seed = false;
  bool has_one_call = false;     // parallel_tool_calls is false: an answer makes one call at most
  bool gives_ids = false;        // token ids in the chunks of a stream, as vLLM has it
  text::AnswerStyle style = {};  // how the model marks thoughts and calls; of a chat
  text::AnswerParserOptions parser = {};
  std::string grammar = {};  // that the answer must satisfy (text/grammar.h)
  Document original = {};    // the body of a request to /v1/responses, which its answer repeats
};

struct ServedModel {
  std::string name;
  const ModelText* text = nullptr;
  std::int64_t context_max = 0;
  std::int64_t vocabulary = 0;
};

CompletionRequest read_completion_request(ApiKind kind, std::string_view body, const ServedModel& model);

// Parts of it, for /tokenize too.
Document parse_api_body(std::string_view body);                         // a JSON object, or ApiError
void check_model_name(const Document& body, const ServedModel& model);  // absent is fine

// How many tokens an answer to a prompt may have: what is asked for, or what is left of the context.
std::int64_t answer_room(const CompletionRequest& request, std::size_t prompt_tokens, const ServedModel& model);

}  // namespace yoke::serve

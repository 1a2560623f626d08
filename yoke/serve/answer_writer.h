// How an answer goes to the client: one writer for each shape of API. Pure: a writer makes texts, and the Generation
// sends them. In a stream the functions are called in the order in which things happen; without one only whole().
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "yoke/base/document.h"
#include "yoke/serve/answer_format.h"
#include "yoke/serve/api_error.h"

namespace yoke::serve {

struct ToolCall {
  std::string id, name, arguments;
};

// One choice of an answer as far as it has come.
struct ChoiceAnswer {
  int index = 0;
  std::string text, thought;
  std::vector<ToolCall> calls;
  std::optional<std::vector<ShownToken>> logprobs;
  std::optional<std::string> finish;      // stop, length, tool_calls
  std::vector<text::TokenId> fresh_ids;   // whose text has all gone out, and that no chunk has named yet
  std::optional<std::string> stopped_at;  // the text of the request's that ended it
};

class AnswerWriter {
 public:
  virtual ~AnswerWriter() = default;

  virtual std::string begin(const std::vector<ChoiceAnswer>& choices, const TokenUsage& usage) = 0;
  virtual std::string text(const ChoiceAnswer& choice, const std::string& piece,
                           const std::optional<std::vector<ShownToken>>& logprobs) = 0;
  virtual std::string thought(const ChoiceAnswer& choice, const std::string& piece) = 0;
  virtual std::string call(const ChoiceAnswer& choice) = 0;  // calls.back() begins
  virtual std::string arguments(const ChoiceAnswer& choice, const std::string& piece) = 0;
  virtual std::string finish(const ChoiceAnswer& choice) = 0;
  virtual std::string end(const std::vector<ChoiceAnswer>& choices, const TokenUsage& usage) = 0;
  virtual std::string failure(const ApiError& error) = 0;  // after the beginning of a stream

  virtual Document whole(const std::vector<ChoiceAnswer>& choices, const TokenUsage& usage) = 0;
};

struct WriterOptions {
  AnswerHead head;
  const ModelText* text = nullptr;
  bool include_usage = false;
  bool gives_ids = false;
  const std::vector<std::vector<text::TokenId>>* prompts = nullptr;  // of the request
  Document request;                                                  // of /v1/responses, whose answer repeats it
};
std::unique_ptr<AnswerWriter> make_answer_writer(WriterOptions options);
std::unique_ptr<AnswerWriter> make_responses_writer(WriterOptions options);
std::unique_ptr<AnswerWriter> make_messages_writer(WriterOptions options);

std::string new_answer_id(ApiKind kind);
std::string new_call_id(ApiKind kind);

// "data: …\n\n", or with the name of the event before.
std::string sse_data(const Document& document);
std::string sse_event(const std::string& name, const Document& document);

}  // namespace yoke::serve

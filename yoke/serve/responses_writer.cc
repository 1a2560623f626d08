// The shape of /v1/responses: a response of items, streamed as named and numbered events.
#include <fmt/format.h>

#include <utility>

#include "yoke/base/hash.h"
#include "yoke/base/json.h"
#include "yoke/serve/answer_writer.h"
#include "yoke/serve/api_fields.h"

namespace yoke::serve {
namespace {

using Fields = std::vector<Document::Field>;

Document words(const std::string& text) { return Document::string(text); }

Document output_text(const std::string& text, const Document& logprobs = Document::list()) {
  return Document::map({{"type", words("output_text")},
                        {"text", words(text)},
                        {"annotations", Document::list()},
                        {"logprobs", logprobs}});
}
Document reasoning_text(const std::string& text) {
  return Document::map({{"type", words("reasoning_text")}, {"text", words(text)}});
}

class ResponsesWriter : public AnswerWriter {
 public:
  explicit ResponsesWriter(WriterOptions options) : options_(std::move(options)) {}

  std::string begin(const std::vector<ChoiceAnswer>&, const TokenUsage&) override {
    const Document begun = response("in_progress", Document::list(), nullptr);
    std::string all = event("response.created", {{"response", begun}});
    return all += event("response.in_progress", {{"response", begun}});
  }

  std::string text(const ChoiceAnswer&, const std::string& piece,
                   const std::optional<std::vector<ShownToken>>& logprobs) override {
    std::string all;
    if (piece.empty() && kind_ != Kind::kText) {  // a token of a thought, or one whose text is not certain yet
      const Document early = list_of(logprobs);
      if (kind_ == Kind::kNone) early_.items.insert(early_.items.end(), early.items.begin(), early.items.end());
      return all;
    }
    if (kind_ != Kind::kText) {
      all = open(Kind::kText, "msg_");
      all += event("response.content_part.added", at({{"content_index", zero()}, {"part", output_text("")}}));
    }
    content_ += piece;
    Document fresh = std::exchange(early_, Document::list());
    const Document own = list_of(logprobs);
    fresh.items.insert(fresh.items.end(), own.items.begin(), own.items.end());
    logprobs_.items.insert(logprobs_.items.end(), fresh.items.begin(), fresh.items.end());
    return all + event("response.output_text.delta",
                       at({{"content_index", zero()}, {"delta", words(piece)}, {"logprobs", fresh}}));
  }
  std::string thought(const ChoiceAnswer&, const std::string& piece) override {
    std::string all;
    if (kind_ != Kind::kThought) {
      all = open(Kind::kThought, "rs_");
      all += event("response.content_part.added", at({{"content_index", zero()}, {"part", reasoning_text("")}}));
    }
    content_ += piece;
    return all + event("response.reasoning_text.delta", at({{"content_index", zero()}, {"delta", words(piece)}}));
  }
  std::string call(const ChoiceAnswer& choice) override {
    std::string all = close("completed");
    call_ = choice.calls.back();
    return all + open(Kind::kCall, "fc_");
  }
  std::string arguments(const ChoiceAnswer&, const std::string& piece) override {
    content_ += piece;
    return event("response.function_call_arguments.delta", at({{"delta", words(piece)}}));
  }
  std::string finish(const ChoiceAnswer& choice) override {
    return close(choice.finish == "length" ? "incomplete" : "completed");
  }
  std::string end(const std::vector<ChoiceAnswer>& choices, const TokenUsage& usage) override {
    const bool is_cut = choices.front().finish == "length";
    return event(is_cut ? "response.incomplete" : "response.completed",
                 {{"response", response(is_cut ? "incomplete" : "completed", items_, &usage)}});
  }
  std::string failure(const ApiError& error) override {
    return event("error",
                 {{"code", words("server_error")}, {"message", words(error.message())}, {"param", Document::null()}});
  }

  Document whole(const std::vector<ChoiceAnswer>& choices, const TokenUsage& usage) override {
    const ChoiceAnswer& choice = choices.front();
    const std::string status = choice.finish == "length" ? "incomplete" : "completed";
    const auto add = [&](Kind kind, const char* prefix, const std::string& content) {
      open(kind, prefix);
      content_ = content;
      if (kind == Kind::kText && choice.thought.empty()) logprobs_ = list_of(choice.logprobs);
      close(status);
    };
    if (!choice.thought.empty()) add(Kind::kThought, "rs_", choice.thought);
    if (!choice.text.empty() || choice.calls.empty()) add(Kind::kText, "msg_", choice.text);
    for (const ToolCall& made : choice.calls) {
      call_ = made;
      add(Kind::kCall, "fc_", made.arguments);
    }
    return response(status, items_, &usage);
  }

 private:
  enum class Kind { kNone, kText, kThought, kCall };

  Document list_of(const std::optional<std::vector<ShownToken>>& tokens) const {
    return tokens ? logprob_list(*options_.text, *tokens, Document::list()) : Document::list();
  }
  static Document zero() { return Document::number(std::int64_t{0}); }
  std::string event(const char* type, Fields fields) {
    Document all = Document::map({{"type", words(type)}, {"sequence_number", Document::number(sequence_++)}});
    for (auto& [key, value] : fields) all.add(std::move(key), std::move(value));
    return sse_event(type, all);
  }
  // Of the item at hand.
  Fields at(Fields fields) const {
    fields.emplace_back("item_id", words(item_id_));
    fields.emplace_back("output_index", Document::number(std::ssize(items_.items)));
    return fields;
  }

  Document item(const std::string& status) const {
    if (kind_ == Kind::kCall) {
      return Document::map({{"id", words(item_id_)},
                            {"type", words("function_call")},
                            {"call_id", words(call_.id)},
                            {"name", words(call_.name)},
                            {"arguments", words(content_)},
                            {"status", words(status)}});
    }
    const bool is_begun = status == "in_progress";
    if (kind_ == Kind::kThought) {
      return Document::map({{"id", words(item_id_)},
                            {"type", words("reasoning")},
                            {"summary", Document::list()},
                            {"content", is_begun ? Document::list() : Document::list({reasoning_text(content_)})},
                            {"status", words(status)}});
    }
    return Document::map(
        {{"id", words(item_id_)},
         {"type", words("message")},
         {"role", words("assistant")},
         {"status", words(status)},
         {"content", is_begun ? Document::list() : Document::list({output_text(content_, logprobs_)})}});
  }

  std::string open(Kind kind, const char* prefix) {
    std::string all = close("completed");
    kind_ = kind;
    item_id_ = prefix + random_token_hex(12);
    content_.clear();
    logprobs_ = Document::list();
    return all + event("response.output_item.added",
                       {{"output_index", Document::number(std::ssize(items_.items))}, {"item", item("in_progress")}});
  }
  std::string close(const std::string& status) {
    if (kind_ == Kind::kNone) return {};
    std::string all;
    if (kind_ == Kind::kText) {
      all = event("response.output_text.done",
                  at({{"content_index", zero()}, {"text", words(content_)}, {"logprobs", logprobs_}}));
      all += event("response.content_part.done",
                   at({{"content_index", zero()}, {"part", output_text(content_, logprobs_)}}));
    } else if (kind_ == Kind::kThought) {
      all = event("response.reasoning_text.done", at({{"content_index", zero()}, {"text", words(content_)}}));
      all += event("response.content_part.done", at({{"content_index", zero()}, {"part", reasoning_text(content_)}}));
    } else {
      all = event("response.function_call_arguments.done",
                  at({{"name", words(call_.name)}, {"arguments", words(content_)}}));
    }
    const Document done = item(status);
    all += event("response.output_item.done",
                 {{"output_index", Document::number(std::ssize(items_.items))}, {"item", done}});
    items_.items.push_back(done);
    kind_ = Kind::kNone;
    return all;
  }

  Document repeated(const char* key, Document otherwise) const {
    const Document* const given = given_field(options_.request, key);
    return given ? *given : otherwise;
  }

  Document response(const std::string& status, Document output, const TokenUsage* usage) const {
    const bool is_cut = status == "incomplete";
    Document all = Document::map(
        {{"id", words(options_.head.id)},
         {"object", words("response")},
         {"created_at", Document::number(options_.head.created)},
         {"status", words(status)},
         {"error", Document::null()},
         {"incomplete_details", is_cut ? Document::map({{"reason", words("max_output_tokens")}}) : Document::null()},
         {"instructions", repeated("instructions", Document::null())},
         {"max_output_tokens", repeated("max_output_tokens", Document::null())},
         {"model", words(options_.head.model)},
         {"output", std::move(output)},
         {"parallel_tool_calls", repeated("parallel_tool_calls", Document::boolean(true))},
         {"previous_response_id", Document::null()},
         {"reasoning", Document::map({{"effort", Document::null()}, {"summary", Document::null()}})},
         {"store", Document::boolean(false)},
         {"temperature", repeated("temperature", Document::number(std::int64_t{1}))},
         {"text", repeated("text", Document::map({{"format", Document::map({{"type", words("text")}})}}))},
         {"tool_choice", repeated("tool_choice", words("auto"))},
         {"tools", repeated("tools", Document::list())},
         {"top_p", repeated("top_p", Document::number(std::int64_t{1}))},
         {"truncation", words("disabled")},
         {"top_logprobs", repeated("top_logprobs", zero())},
         {"metadata", repeated("metadata", Document::map())}});
    if (usage) {
      all.add("usage",
              Document::map({{"input_tokens", Document::number(usage->prompt)},
                             {"input_tokens_details", Document::map({{"cached_tokens", Document::number(usage->cached)},
                                                                     {"cache_write_tokens", zero()}})},
                             {"output_tokens", Document::number(usage->answer)},
                             {"output_tokens_details", Document::map({{"reasoning_tokens", zero()}})},
                             {"total_tokens", Document::number(usage->prompt + usage->answer)}}));
    }
    return all;
  }

  const WriterOptions options_;
  std::int64_t sequence_ = 0;
  Kind kind_ = Kind::kNone;
  std::string item_id_, content_;
  ToolCall call_;
  Document logprobs_ = Document::list();
  Document early_ = Document::list();  // of tokens before the first text
  Document items_ = Document::list();  // that are complete
};

}  // namespace

std::unique_ptr<AnswerWriter> make_responses_writer(WriterOptions options) {
  return std::make_unique<ResponsesWriter>(std::move(options));
}

}  // namespace yoke::serve

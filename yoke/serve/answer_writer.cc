#include "yoke/serve/answer_writer.h"

#include <fmt/format.h>

#include "yoke/base/hash.h"
#include "yoke/base/json.h"

namespace yoke::serve {
namespace {

// /v1/chat/completions and /v1/completions.
class CompletionsWriter : public AnswerWriter {
 public:
  explicit CompletionsWriter(WriterOptions options) : options_(std::move(options)) {}

  std::string begin(const std::vector<ChoiceAnswer>& choices, const TokenUsage&) override {
    std::string all;
    for (const ChoiceAnswer& choice : choices) {
      ChoicePiece piece{.index = choice.index, .text = choice.text};  // of a completion: the echo
      piece.is_first = options_.head.kind == ApiKind::kChat;
      if (options_.gives_ids) piece.prompt_ids = &options_.prompts->front();
      if (piece.is_first || piece.prompt_ids || !piece.text.empty()) all += chunk(piece);
    }
    return all;
  }
  std::string text(const ChoiceAnswer& choice, const std::string& piece,
                   const std::optional<std::vector<ShownToken>>& logprobs) override {
    return chunk({.index = choice.index, .text = piece, .logprobs = logprobs, .ids = ids_of(choice)});
  }
  std::string thought(const ChoiceAnswer& choice, const std::string& piece) override {
    return chunk({.index = choice.index, .thought = piece});
  }
  std::string call(const ChoiceAnswer& choice) override {
    const ToolCall& made = choice.calls.back();
    return call_chunk(choice, Document::map({{"index", Document::number(std::ssize(choice.calls) - 1)},
                                             {"id", Document::string(made.id)},
                                             {"type", Document::string("function")},
                                             {"function", Document::map({{"name", Document::string(made.name)},
                                                                         {"arguments", Document::string("")}})}}));
  }
  std::string arguments(const ChoiceAnswer& choice, const std::string& piece) override {
    return call_chunk(choice, Document::map({{"index", Document::number(std::ssize(choice.calls) - 1)},
                                             {"function", Document::map({{"arguments", Document::string(piece)}})}}));
  }
  std::string finish(const ChoiceAnswer& choice) override {
    return chunk({.index = choice.index, .finish = choice.finish, .ids = ids_of(choice)});
  }
  std::string end(const std::vector<ChoiceAnswer>&, const TokenUsage& usage) override {
    return (options_.include_usage ? usage_chunk(options_.head, usage) : std::string()) + kStreamEnd;
  }
  std::string failure(const ApiError& error) override { return sse_data(error.json()) + kStreamEnd; }

  Document whole(const std::vector<ChoiceAnswer>& choices, const TokenUsage& usage) override {
    std::vector<ChoicePiece> pieces;
    for (const ChoiceAnswer& choice : choices) {
      ChoicePiece piece{.index = choice.index,
                        .text = choice.text,
                        .thought = choice.thought,
                        .logprobs = choice.logprobs,
                        .finish = choice.finish};
      if (!choice.calls.empty()) {
        piece.calls = Document::list();
        for (const ToolCall& made : choice.calls) {
          piece.calls.items.push_back(
              Document::map({{"id", Document::string(made.id)},
                             {"type", Document::string("function")},
                             {"function", Document::map({{"name", Document::string(made.name)},
                                                         {"arguments", Document::string(made.arguments)}})}}));
        }
      }
      pieces.push_back(std::move(piece));
    }
    return whole_answer(options_.head, *options_.text, pieces, usage);
  }

 private:
  const std::vector<text::TokenId>* ids_of(const ChoiceAnswer& choice) const {
    return options_.gives_ids ? &choice.fresh_ids : nullptr;
  }
  std::string chunk(const ChoicePiece& piece) const {
    return answer_chunk(options_.head, *options_.text, piece, options_.include_usage);
  }
  std::string call_chunk(const ChoiceAnswer& choice, Document call) const {
    return chunk({.index = choice.index, .calls = Document::list({std::move(call)})});
  }

  const WriterOptions options_;
};

}  // namespace

std::unique_ptr<AnswerWriter> make_answer_writer(WriterOptions options) {
  if (options.head.kind == ApiKind::kResponses) return make_responses_writer(std::move(options));
  if (options.head.kind == ApiKind::kMessages) return make_messages_writer(std::move(options));
  return std::make_unique<CompletionsWriter>(std::move(options));
}

std::string new_answer_id(ApiKind kind) {
  const char* const prefix = kind == ApiKind::kChat         ? "chatcmpl-"
                             : kind == ApiKind::kCompletion ? "cmpl-"
                             : kind == ApiKind::kResponses  ? "resp_"
                                                            : "msg_";
  return prefix + random_token_hex(12);
}

std::string new_call_id(ApiKind kind) {
  return (kind == ApiKind::kMessages ? "toolu_" : "call_") + random_token_hex(12);
}

std::string sse_data(const Document& document) {
  return fmt::format("data: {}\n\n", print_json(document, JsonLayout::kOneLine));
}
std::string sse_event(const std::string& name, const Document& document) {
  return fmt::format("event: {}\n{}", name, sse_data(document));
}

}  // namespace yoke::serve

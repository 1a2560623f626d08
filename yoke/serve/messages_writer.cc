// Anthropic's shape of an answer: a message of blocks, streamed as named events.
#include "yoke/base/json.h"
#include "yoke/base/result.h"
#include "yoke/serve/answer_writer.h"

namespace yoke::serve {
namespace {

Document text_document(const std::string& text) { return Document::string(text); }

class MessagesWriter : public AnswerWriter {
 public:
  explicit MessagesWriter(WriterOptions options) : options_(std::move(options)) {}

  std::string begin(const std::vector<ChoiceAnswer>&, const TokenUsage& usage) override {
    return sse_event("message_start", Document::map({{"type", text_document("message_start")},
                                                     {"message", message(Document::list(), nullptr, usage)}}));
  }
  std::string text(const ChoiceAnswer&, const std::string& piece,
                   const std::optional<std::vector<ShownToken>>&) override {
    std::string all = opened(Block::kText, block_map("text", "text", ""));
    return all += delta("text_delta", "text", piece);
  }
  std::string thought(const ChoiceAnswer&, const std::string& piece) override {
    Document block = block_map("thinking", "thinking", "");
    block.add("signature", text_document(""));
    std::string all = opened(Block::kThought, std::move(block));
    return all += delta("thinking_delta", "thinking", piece);
  }
  std::string call(const ChoiceAnswer& choice) override {
    const ToolCall& made = choice.calls.back();
    std::string all = closed();
    return all += opened(Block::kCall, Document::map({{"type", text_document("tool_use")},
                                                      {"id", text_document(made.id)},
                                                      {"name", text_document(made.name)},
                                                      {"input", Document::map()}}));
  }
  std::string arguments(const ChoiceAnswer&, const std::string& piece) override {
    return delta("input_json_delta", "partial_json", piece);
  }
  std::string finish(const ChoiceAnswer&) override { return closed(); }
  std::string end(const std::vector<ChoiceAnswer>& choices, const TokenUsage& usage) override {
    const ChoiceAnswer& choice = choices.front();
    return sse_event(
               "message_delta",
               Document::map({{"type", text_document("message_delta")},
                              {"delta", Document::map({{"stop_reason", text_document(stop_reason(choice))},
                                                       {"stop_sequence", stop_sequence(choice)}})},
                              {"usage", Document::map({{"input_tokens", Document::number(usage.prompt - usage.cached)},
                                                       {"cache_read_input_tokens", Document::number(usage.cached)},
                                                       {"output_tokens", Document::number(usage.answer)}})}})) +
           sse_event("message_stop", Document::map({{"type", text_document("message_stop")}}));
  }
  std::string failure(const ApiError& error) override { return sse_event("error", error.json_of(ApiKind::kMessages)); }

  Document whole(const std::vector<ChoiceAnswer>& choices, const TokenUsage& usage) override {
    const ChoiceAnswer& choice = choices.front();
    Document content = Document::list();
    if (!choice.thought.empty()) {
      Document block = block_map("thinking", "thinking", choice.thought);
      block.add("signature", text_document(""));
      content.items.push_back(std::move(block));
    }
    if (!choice.text.empty()) content.items.push_back(block_map("text", "text", choice.text));
    for (const ToolCall& made : choice.calls) {
      // What was cut off by the limit of tokens is no JSON, and cannot be an object.
      const auto input = try_to([&] { return parse_json(made.arguments, "arguments"); });
      const bool is_object = input && input->kind == Document::Kind::kMap;
      content.items.push_back(Document::map({{"type", text_document("tool_use")},
                                             {"id", text_document(made.id)},
                                             {"name", text_document(made.name)},
                                             {"input", is_object ? *input : Document::map()}}));
    }
    return message(std::move(content), &choice, usage);
  }

 private:
  enum class Block { kNone, kText, kThought, kCall };

  static Document block_map(const char* type, const char* key, const std::string& text) {
    return Document::map({{"type", text_document(type)}, {key, text_document(text)}});
  }
  static std::string stop_reason(const ChoiceAnswer& choice) {
    if (!choice.calls.empty() && choice.finish != "length") return "tool_use";
    if (choice.stopped_at) return "stop_sequence";
    return choice.finish == "length" ? "max_tokens" : "end_turn";
  }
  static Document stop_sequence(const ChoiceAnswer& choice) {
    return choice.stopped_at ? text_document(*choice.stopped_at) : Document::null();
  }
  Document message(Document content, const ChoiceAnswer* choice, const TokenUsage& usage) const {
    return Document::map({{"id", text_document(options_.head.id)},
                          {"type", text_document("message")},
                          {"role", text_document("assistant")},
                          {"model", text_document(options_.head.model)},
                          {"content", std::move(content)},
                          {"stop_reason", choice ? text_document(stop_reason(*choice)) : Document::null()},
                          {"stop_sequence", choice ? stop_sequence(*choice) : Document::null()},
                          {"usage", Document::map({{"input_tokens", Document::number(usage.prompt - usage.cached)},
                                                   {"cache_creation_input_tokens", Document::number(std::int64_t{0})},
                                                   {"cache_read_input_tokens", Document::number(usage.cached)},
                                                   {"output_tokens", Document::number(usage.answer)}})}});
  }

  std::string opened(Block block, Document content) {
    if (block_ == block) return {};
    std::string all = closed();
    block_ = block;
    ++index_;
    return all + sse_event("content_block_start", Document::map({{"type", text_document("content_block_start")},
                                                                 {"index", Document::number(index_)},
                                                                 {"content_block", std::move(content)}}));
  }
  std::string closed() {
    if (block_ == Block::kNone) return {};
    block_ = Block::kNone;
    return sse_event("content_block_stop", Document::map({{"type", text_document("content_block_stop")},
                                                          {"index", Document::number(index_)}}));
  }
  std::string delta(const char* type, const char* key, const std::string& piece) const {
    return sse_event("content_block_delta", Document::map({{"type", text_document("content_block_delta")},
                                                           {"index", Document::number(index_)},
                                                           {"delta", block_map(type, key, piece)}}));
  }

  const WriterOptions options_;
  Block block_ = Block::kNone;
  std::int64_t index_ = -1;
};

}  // namespace

std::unique_ptr<AnswerWriter> make_messages_writer(WriterOptions options) {
  return std::make_unique<MessagesWriter>(std::move(options));
}

}  // namespace yoke::serve

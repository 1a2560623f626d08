// One request for an answer from its reading to the end of its answer: asks the hub for
// each choice and writes what comes to the client, as a stream or at the end. Owned by the hub while it lasts; a client
// that leaves ends it.
#pragma once
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "yoke/http/server.h"
#include "yoke/serve/answer_format.h"
#include "yoke/serve/answer_text.h"
#include "yoke/serve/answer_writer.h"
#include "yoke/serve/api_error.h"
#include "yoke/serve/first_call.h"
#include "yoke/serve/request_hub.h"

namespace yoke::serve {

struct GenerationContext {
  RequestHub& hub;
  ServedModel model;
  Seconds limit{600};            // for the whole answer
  std::string client = {};       // clients take turns
  std::uint64_t cache_salt = 0;  // of the client's key
  std::function<void()> on_end = {};
};

class Generation : public AnswerSink, public std::enable_shared_from_this<Generation> {
 public:
  Generation(std::shared_ptr<http::Exchange> exchange, CompletionRequest request, GenerationContext context);
  ~Generation() override;

  // Throws where there is no room; from then on all that happens goes to the client.
  void start();

  void on_cached(std::uint64_t id, std::int64_t tokens) override;
  void on_token(std::uint64_t id, const text::SampledToken& token) override;
  void on_end(std::uint64_t id, engine::FinishReason reason, const std::optional<Error>& error) override;
  void on_wait() override;

 private:
  struct Choice {
    std::uint64_t id = 0;
    std::size_t prompt = 0;  // which of the request's
    AnswerText text;
    text::AnswerParser parser;  // of a chat
    std::int64_t tokens = 0;
    std::int64_t cached = 0;             // tokens of its prompt
    FirstCall first_call;                // of a request that wants one call at most
    std::vector<text::TokenId> pending;  // whose text is held back as yet
  };

  std::size_t place(std::uint64_t id) const;
  engine::Request engine_request(const Choice& one) const;
  void begin_stream();
  void add_text(std::size_t at, std::string piece, std::optional<std::vector<ShownToken>> logprobs);
  void add_parts(std::size_t at, const std::vector<text::AnswerPart>& parts,
                 std::optional<std::vector<ShownToken>> logprobs);
  void write(const std::string& text);
  void finish_choice(std::size_t at, std::string reason);
  void note_end();
  void finish_all();
  void fail(const ApiError& error);
  void cancel_all();
  TokenUsage usage() const;

  const std::shared_ptr<http::Exchange> exchange_;
  const CompletionRequest request_;
  const GenerationContext context_;
  std::string id_;
  std::unique_ptr<AnswerWriter> writer_;
  std::uint64_t seed_ = 0;
  const Instant came_ = real_clock().now();
  std::optional<Seconds> first_token_;
  std::vector<std::uint64_t> ids_;  // complete before the first request goes out

  std::mutex mutex_;
  std::vector<Choice> choices_;
  std::vector<ChoiceAnswer> answers_;  // of these
  std::size_t unfinished_ = 0;
  bool is_over_ = false;
};

}  // namespace yoke::serve

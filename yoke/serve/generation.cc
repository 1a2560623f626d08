#include "yoke/serve/generation.h"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <utility>

#include "yoke/base/check.h"
#include "yoke/base/hash.h"
#include "yoke/base/json.h"

namespace yoke::serve {

Generation::Generation(std::shared_ptr<http::Exchange> exchange, CompletionRequest request, GenerationContext context)
    : exchange_(std::move(exchange)), request_(std::move(request)), context_(std::move(context)) {
  id_ = new_answer_id(request_.kind);
  writer_ = make_answer_writer(
      {.head = {.kind = request_.kind, .id = id_, .created = std::time(nullptr), .model = context_.model.name},
       .text = context_.model.text,
       .include_usage = request_.include_usage,
       .gives_ids = request_.gives_ids,
       .prompts = &request_.prompts,
       .request = request_.original});
  seed_ = request_.has_seed ? request_.sampling.seed : std::stoull(random_token_hex(8), nullptr, 16);
  const std::vector<text::TokenId> stop_ids = [&] {
    std::vector<text::TokenId> ids = request_.ignore_eos ? std::vector<text::TokenId>() : context_.model.text->stop_ids;
    ids.insert(ids.end(), request_.stop_ids.begin(), request_.stop_ids.end());
    return ids;
  }();
  // The marks of gpt-oss are special tokens, which its answers are taken apart by.
  const bool shows_special = request_.style.tools == text::ToolStyle::kHarmony;
  for (std::size_t prompt = 0; prompt < request_.prompts.size(); ++prompt) {
    for (int i = 0; i < request_.n; ++i) {
      choices_.push_back({.id = context_.hub.new_id(),
                          .prompt = prompt,
                          .text = AnswerText(*context_.model.text, request_.stops, stop_ids,
                                             shows_special ? text::SpecialTokens::kShow : text::SpecialTokens::kHide),
                          .parser = text::AnswerParser(request_.style, request_.parser)});
      ids_.push_back(choices_.back().id);
      ChoiceAnswer& answer = answers_.emplace_back();
      answer.index = static_cast<int>(prompt) * request_.n + i;
      if (request_.echo) answer.text = request_.prompt_texts[prompt];
      if (request_.sampling.logprobs) answer.logprobs.emplace();
    }
  }
  unfinished_ = choices_.size();
}

Generation::~Generation() {
  if (context_.on_end) context_.on_end();
}

std::size_t Generation::place(std::uint64_t id) const {
  const auto found = std::find(ids_.begin(), ids_.end(), id);
  YOKE_CHECK(found != ids_.end());
  return static_cast<std::size_t>(found - ids_.begin());
}

engine::Request Generation::engine_request(const Choice& one) const {
  engine::Request request{.id = one.id, .prompt = request_.prompts[one.prompt]};
  request.answer_max = answer_room(request_, request.prompt.size(), context_.model);
  if (!request_.ignore_eos) request.stop_ids = context_.model.text->stop_ids;
  request.stop_ids.insert(request.stop_ids.end(), request_.stop_ids.begin(), request_.stop_ids.end());
  request.sampling = request_.sampling;
  request.sampling.seed = seed_ + place(one.id);
  request.grammar = request_.grammar;
  request.cache_salt = context_.cache_salt;
  return request;
}

void Generation::start() {
  context_.hub.check_room(choices_.size(), context_.client);
  std::vector<engine::Request> requests;
  for (const Choice& one : choices_) requests.push_back(engine_request(one));
  exchange_->on_leave([weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->cancel_all();
  });
  if (request_.stream) begin_stream();
  for (engine::Request& request : requests) {
    const std::uint64_t id = request.id;
    if (request.answer_max == 0) {
      on_end(id, engine::FinishReason::kLength, std::nullopt);
    } else {
      context_.hub.submit(std::move(request), shared_from_this(), context_.limit, context_.client);
    }
  }
}

void Generation::begin_stream() {
  context_.hub.metrics().count_response(200);
  exchange_->start_stream(
      {.content_type = "text/event-stream; charset=utf-8",
       .headers = {{"Cache-Control", "no-cache"}, {"X-Accel-Buffering", "no"}, {"X-Request-Id", id_}}});
  write(writer_->begin(answers_, usage()));
}

// ---- what comes from the hub

void Generation::on_cached(std::uint64_t id, std::int64_t tokens) {
  const std::lock_guard lock(mutex_);
  choices_[place(id)].cached = tokens;
}

void Generation::on_token(std::uint64_t id, const text::SampledToken& token) {
  const std::lock_guard lock(mutex_);
  const std::size_t at = place(id);
  Choice& one = choices_[at];
  if (is_over_ || answers_[at].finish) return;
  const auto offset = static_cast<std::int64_t>(one.text.all().size());
  std::string piece = one.text.add(token.id);
  ++one.tokens;
  if (!first_token_) first_token_ = to_seconds(real_clock().now() - came_);
  if (request_.gives_ids) one.pending.push_back(token.id);
  std::optional<std::vector<ShownToken>> logprobs;
  if (request_.sampling.logprobs) logprobs = {shown_token(*context_.model.text, token, offset)};
  if (!piece.empty() || logprobs) add_text(at, std::move(piece), std::move(logprobs));
  if (!one.text.found_stop() && !one.first_call.is_complete()) return;
  if (one.text.found_stop()) answers_[at].stopped_at = one.text.stop_found();
  finish_choice(at, "stop");
  context_.hub.cancel(id);
}

void Generation::on_end(std::uint64_t id, engine::FinishReason reason, const std::optional<Error>& error) {
  const std::lock_guard lock(mutex_);
  const std::size_t at = place(id);
  Choice& one = choices_[at];
  if (is_over_ || answers_[at].finish) return;
  if (error) return fail(ApiError::of(*error));
  if (reason == engine::FinishReason::kCancelled) {  // nobody is there to read it
    is_over_ = true;
    note_end();
    return;
  }
  if (std::string rest = one.text.finish(); !rest.empty()) add_text(at, std::move(rest), std::nullopt);
  const bool is_stop = one.text.found_stop() || reason == engine::FinishReason::kStop;
  if (one.text.found_stop()) answers_[at].stopped_at = one.text.stop_found();
  finish_choice(at, is_stop ? "stop" : "length");
}

void Generation::on_wait() {
  if (request_.stream) exchange_->write(": waiting\n\n");
}

// ---- what goes to the client

void Generation::write(const std::string& text) {
  if (request_.stream) exchange_->write(text);
}

void Generation::add_text(std::size_t at, std::string piece, std::optional<std::vector<ShownToken>> logprobs) {
  Choice& one = choices_[at];
  std::vector<text::AnswerPart> parts;
  if (request_.kind != ApiKind::kCompletion) {
    parts = one.parser.add(piece);
    if (request_.has_one_call) parts = one.first_call.take(std::move(parts));
  } else if (!piece.empty() || logprobs) {
    parts.push_back({text::AnswerPart::Kind::kText, std::move(piece)});
  }
  // Who takes the answer up from the ids must find all of their text.
  if (request_.gives_ids && !one.text.holds_text() && !one.parser.holds_text()) {
    answers_[at].fresh_ids.insert(answers_[at].fresh_ids.end(), one.pending.begin(), one.pending.end());
    one.pending.clear();
  }
  add_parts(at, parts, std::move(logprobs));
}

void Generation::add_parts(std::size_t at, const std::vector<text::AnswerPart>& parts,
                           std::optional<std::vector<ShownToken>> logprobs) {
  using Kind = text::AnswerPart::Kind;
  ChoiceAnswer& answer = answers_[at];
  if (logprobs) answer.logprobs->insert(answer.logprobs->end(), logprobs->begin(), logprobs->end());
  std::string out;
  for (const text::AnswerPart& part : parts) {
    if (part.kind == Kind::kText) {
      answer.text += part.text;
      if (request_.stream) out += writer_->text(answer, part.text, std::exchange(logprobs, std::nullopt));
      answer.fresh_ids.clear();
    } else if (part.kind == Kind::kThought) {
      answer.thought += part.text;
      if (request_.stream) out += writer_->thought(answer, part.text);
    } else if (part.kind == Kind::kCall) {
      answer.calls.push_back({new_call_id(request_.kind), part.text, ""});
      if (request_.stream) out += writer_->call(answer);
    } else {
      answer.calls.back().arguments += part.text;
      if (request_.stream) out += writer_->arguments(answer, part.text);
    }
  }
  if (logprobs && request_.stream) out += writer_->text(answer, "", logprobs);
  if (!out.empty()) answer.fresh_ids.clear();
  write(out);
}

void Generation::finish_choice(std::size_t at, std::string reason) {
  if (request_.kind != ApiKind::kCompletion) {
    auto rest = choices_[at].parser.finish();
    if (request_.has_one_call) rest = choices_[at].first_call.take(std::move(rest));
    add_parts(at, rest, std::nullopt);
  }
  ChoiceAnswer& answer = answers_[at];
  answer.finish = !answer.calls.empty() && reason == "stop" ? "tool_calls" : std::move(reason);
  if (request_.stream) write(writer_->finish(answer));
  if (--unfinished_ == 0) finish_all();
}

// For the server's log.
void Generation::note_end() {
  const TokenUsage all = usage();
  exchange_->note("id", id_);
  exchange_->note("prompt_tokens", std::to_string(all.prompt));
  if (all.cached > 0) exchange_->note("cached_tokens", std::to_string(all.cached));
  exchange_->note("answer_tokens", std::to_string(all.answer));
  if (first_token_) exchange_->note("first_token_s", fmt::format("{:.3f}", first_token_->value));
}

void Generation::finish_all() {
  is_over_ = true;
  note_end();
  if (request_.stream) {
    write(writer_->end(answers_, usage()));
    return exchange_->end();
  }
  const Document answer = writer_->whole(answers_, usage());
  context_.hub.metrics().count_response(200);
  exchange_->respond({.headers = {{"X-Request-Id", id_}}, .body = print_json(answer, JsonLayout::kOneLine) + "\n"});
}

void Generation::fail(const ApiError& error) {
  is_over_ = true;
  note_end();
  exchange_->note("error", error.message());
  if (request_.stream) {
    write(writer_->failure(error));
    exchange_->end();
  } else {
    context_.hub.metrics().count_response(error.status());
    http::Reply reply{.status = error.status(),
                      .body = print_json(error.json_of(request_.kind), JsonLayout::kOneLine) + "\n"};
    if (error.status() == 503 || error.status() == 429) reply.headers.emplace_back("Retry-After", "5");
    exchange_->respond(reply);
  }
  cancel_all();
}

void Generation::cancel_all() {
  for (const std::uint64_t id : ids_) context_.hub.cancel(id);
}

TokenUsage Generation::usage() const {
  TokenUsage all;
  for (const auto& prompt : request_.prompts) all.prompt += std::ssize(prompt);
  for (const Choice& one : choices_) all.answer += one.tokens;
  // Further answers to one prompt share its pages: counted once, as the prompt is.
  for (std::size_t i = 0; i < choices_.size(); i += static_cast<std::size_t>(request_.n))
    all.cached += choices_[i].cached;
  return all;
}

}  // namespace yoke::serve

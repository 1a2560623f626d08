#include "yoke/serve/upstream_asking.h"

#include <fmt/format.h>

#include <algorithm>

#include "yoke/base/json.h"
#include "yoke/base/result.h"
#include "yoke/base/text.h"
#include "yoke/serve/answer_format.h"
#include "yoke/serve/answer_writer.h"
#include "yoke/serve/api_fields.h"

namespace yoke::serve {
using namespace literals;
namespace {

constexpr Seconds kReadTurn{0.2};    // between two looks at the client
constexpr Seconds kSilenceMax{120};  // of a server in the middle of an answer
constexpr Seconds kCommentEvery{2};  // to a client that waits

bool wants_stream(const Document& body) {
  const auto* const stream = given_field(body, "stream");
  return stream && stream->text == "true";
}

}  // namespace

UpstreamService::Asking::Asking(UpstreamService& service, Waiting& asked)
    : service_(service),
      asked_(asked),
      deadline_(Deadline::after(service.options_.request_limit)),
      streams_(wants_stream(asked.body)),
      last_(asked.came),
      last_wait_(asked.came) {}

std::string UpstreamService::Asking::path() const {
  switch (asked_.kind) {
    case ApiKind::kCompletion:
      return "/v1/completions";
    case ApiKind::kResponses:
      return "/v1/responses";
    case ApiKind::kMessages:
      return "/v1/messages";
    default:
      return "/v1/chat/completions";
  }
}

void UpstreamService::Asking::run() {
  while (true) {
    while (!service_.wait_until_up(Deadline::after(kCommentEvery), *asked_.exchange)) {
      if (asked_.exchange->is_over()) return finish("abort");
      if (deadline_.expired()) {
        return fail(ApiError(504, fmt::format("the engine did not come in time: {}", why_), {}, "timeout"));
      }
      report_wait();
    }
    if (must_resume_) {
      resume();
      if (is_done_) return;
      if (must_resume_) continue;  // lost again
    }
    if (!resumed_body_) address();
    const Ended ended = streams_ ? ask_stream() : ask_whole();
    if (ended == Ended::kDone) return;
    if (ended == Ended::kLeft) return finish("abort");
    service_.set_down(why_);
    if (deadline_.expired()) return fail(ApiError(504, "the answer took too long", {}, "timeout"));
    if (!has_sent_) continue;  // nobody has seen anything of it yet
    if (!service_.options_.resumes) return fail(ApiError(503, fmt::format("the engine was lost: {}", why_)));
    if (const auto why = not_resumable(asked_.kind, asked_.body)) {
      return fail(ApiError(503, fmt::format("the engine was lost, and the answer cannot go on: {}", *why)));
    }
    must_resume_ = true;
  }
}

// A client that streams hears how far a model that is being loaded is.
void UpstreamService::Asking::report_wait() {
  if (!streams_ || !knows_text()) return;
  begin_stream({});
  std::string why;
  {
    const std::lock_guard lock(service_.mutex_);
    why = service_.why_;
  }
  std::replace(why.begin(), why.end(), '\n', ' ');
  asked_.exchange->write(fmt::format(": waiting: {}\n\n", why));
}

// By the name that the server has for its model, which it may have told only now.
void UpstreamService::Asking::address() {
  Document& body = asked_.body;
  const std::lock_guard lock(service_.mutex_);
  std::erase_if(body.fields, [](const auto& field) { return field.first == "model"; });
  body.add("model", Document::string(service_.model_));
  const bool wants_ids = service_.gives_ids_ && streams_ && !not_resumable(asked_.kind, body);
  if (wants_ids && !body.find("return_token_ids")) body.add("return_token_ids", Document::boolean(true));
  const bool counts = service_.gives_usage_ && streams_ && knows_text();
  if (counts && ask_for_usage(body)) drops_usage_ = true;
}

// Nothing has gone to the client before all has come: it is asked again where the server is lost.
UpstreamService::Asking::Ended UpstreamService::Asking::ask_whole() {
  http::HttpAnswer answer;
  try {
    http::AnswerStream stream(service_.server(),
                              service_.question(path(), print_json(asked_.body, JsonLayout::kOneLine)),
                              Deadline::after(5_s));
    std::string body;
    const http::HttpAnswer* head = nullptr;
    while (!stream.is_complete()) {
      if (asked_.exchange->is_over()) return Ended::kLeft;
      if (deadline_.expired()) {
        why_ = "the answer took too long";
        return Ended::kBroken;
      }
      if (!head) head = stream.head(kReadTurn);
      if (head) body += stream.read(kReadTurn);
    }
    head = stream.head({});
    body += stream.read({});
    answer = {.status = head->status, .headers = head->headers, .body = std::move(body)};
  } catch (const Error& error) {
    why_ = error.message();
    return Ended::kBroken;
  }
  if (answer.status == 502 || answer.status == 503) {
    why_ = fmt::format("it answers with the status {}", answer.status);
    return Ended::kBroken;
  }
  if (const auto read = try_to([&] { return parse_json(answer.body, "answer"); }); read && answer.status == 200) {
    take_usage(*read, answer_.usage);
  }
  service_.metrics_.count_response(answer.status);
  asked_.exchange->respond({.status = answer.status,
                            .content_type = answer.header("content-type").value_or("application/json"),
                            .body = answer.body});
  finish(answer.status == 200 ? "stop" : "error");
  return Ended::kDone;
}

UpstreamService::Asking::Ended UpstreamService::Asking::ask_stream() {
  events_ = {};
  const std::string where = resumed_body_ ? "/v1/completions" : path();
  const std::string body = print_json(resumed_body_ ? *resumed_body_ : asked_.body, JsonLayout::kOneLine);
  try {
    http::AnswerStream stream(service_.server(), service_.question(where, body), Deadline::after(5_s));
    return read_stream(stream);
  } catch (const Error& error) {
    why_ = error.message();
    if (answer_.is_finished && knows_text()) {  // only the last words are missing
      asked_.exchange->write(kStreamEnd);
      asked_.exchange->end();
      finish("stop");
      return Ended::kDone;
    }
    return Ended::kBroken;
  }
}

UpstreamService::Asking::Ended UpstreamService::Asking::read_stream(http::AnswerStream& stream) {
  const http::HttpAnswer* head = nullptr;
  Instant heard = real_clock().now();
  while (true) {
    if (asked_.exchange->is_over()) return Ended::kLeft;
    const Instant now = real_clock().now();
    if (deadline_.expired() || to_seconds(now - heard) > kSilenceMax) {
      why_ = "it stopped in the middle of an answer";
      return Ended::kBroken;
    }
    if (has_begun_ && to_seconds(now - last_wait_) > kCommentEvery) {
      asked_.exchange->write(": waiting\n\n");
      last_wait_ = now;
    }
    if (!head) {
      head = stream.head(kReadTurn);
      if (!head) continue;
      if (head->status != 200) {
        if (!pass_on_refusal(stream, *head)) return Ended::kBroken;
        return Ended::kDone;
      }
      begin_stream(*head);
    }
    const std::string bytes = stream.read(kReadTurn);
    if (!bytes.empty()) heard = last_wait_ = real_clock().now();
    const bool is_end = take_events(bytes);
    if (is_end || (stream.is_complete() && !knows_text())) {
      asked_.exchange->end();
      finish("stop");
      is_done_ = true;
      return Ended::kDone;
    }
    if (stream.is_complete()) throw Error(ErrorCode::kUnavailable, "the stream ended without its last event");
  }
}

// True at the stream's end.
bool UpstreamService::Asking::take_events(std::string_view bytes) {
  if (bytes.empty()) return false;
  if (!knows_text()) {  // in a shape of its own, as it is
    asked_.exchange->write(bytes);
    has_sent_ = true;
    count_pieces(bytes);
    return false;
  }
  for (const std::string& event : events_.add(bytes)) {
    if (event == "[DONE]") {
      asked_.exchange->write(kStreamEnd);
      return true;
    }
    const std::int64_t before = answer_.chunks;
    Document chunk = parse_json(event, "event");
    if (given_field(chunk, "error")) {  // of its engine: it is about to end
      throw Error(ErrorCode::kUnavailable, "it sent an error in the middle of an answer");
    }
    chunk = resumed_ ? resumed_chunk(asked_.kind, chunk, *resumed_, answer_)
                     : take_chunk(asked_.kind, std::move(chunk), answer_);
    take_usage(chunk, answer_.usage);
    if (!drops_usage_ || drop_usage(chunk)) {
      asked_.exchange->write(sse_data(chunk));
      has_sent_ = true;
    }
    if (answer_.chunks > before) count_chunk();
  }
  return false;
}

void UpstreamService::Asking::count_chunk() {
  const Instant now = real_clock().now();
  service_.metrics_.count_token(to_seconds(now - last_), !first_, now);
  if (!first_) first_ = now;
  last_ = now;
  const std::lock_guard lock(service_.mutex_);
  service_.last_token_ = now;
}

// Of events that go to the client as they are.
void UpstreamService::Asking::count_pieces(std::string_view bytes) {
  for (const std::string& event : events_.add(bytes)) {
    const auto read = try_to([&] { return parse_json(event, "event"); });
    if (!read) continue;
    take_usage(*read, answer_.usage);
    if (!is_piece(*read)) continue;
    ++answer_.chunks;
    count_chunk();
  }
}

void UpstreamService::Asking::begin_stream(const http::HttpAnswer& head) {
  if (std::exchange(has_begun_, true)) return;
  service_.metrics_.count_response(200);
  const bool resumes = service_.options_.resumes && !not_resumable(asked_.kind, asked_.body);
  asked_.exchange->start_stream({.content_type = head.header("content-type").value_or("text/event-stream"),
                                 .headers = {{"Cache-Control", "no-cache"},
                                             {"X-Accel-Buffering", "no"},
                                             {"X-Yoke-Resume", resumes ? "as a completion" : "no"}}});
}

// What the server refuses goes to the client as it is; a server that is still loading is one that is not there.
bool UpstreamService::Asking::pass_on_refusal(http::AnswerStream& stream, const http::HttpAnswer& head) {
  if (head.status == 502 || head.status == 503) {
    why_ = fmt::format("it answers with the status {}", head.status);
    return false;
  }
  std::string body;
  while (!stream.is_complete()) body += stream.read(kReadTurn);
  body += stream.read({});
  if (has_begun_) {  // too late for a status
    asked_.exchange->write(fmt::format("data: {}\n\n{}", trim(body), kStreamEnd));
    asked_.exchange->end();
    finish("error");
    is_done_ = true;
    return true;
  }
  service_.metrics_.count_response(head.status);
  asked_.exchange->respond(
      {.status = head.status, .content_type = head.header("content-type").value_or("application/json"), .body = body});
  finish("error");
  return true;
}

// The server is back and knows nothing of the answer: prompt and text so far are a prompt that it can complete.
void UpstreamService::Asking::resume() {
  try {
    ResumePoint point;
    answer_.skipped = 0;
    if (!answer_.prompt_ids.empty()) {
      point.prompt = answer_.prompt_ids;
      point.answer = answer_.ids;
      answer_.skipped = answer_.text.size() - answer_.settled;
      answer_.text.resize(answer_.settled);
    } else {
      point.prompt = service_.prompt_ids(asked_.kind, asked_.body);
      if (!answer_.text.empty()) {
        point.answer = service_.ids_of_pieces(answer_.pieces);
        if (point.answer.empty()) point.answer = service_.ids_of_text(answer_.text);
        if (point.answer.empty()) point.prompt.clear();
      }
    }
    if (point.prompt.empty()) {
      is_done_ = true;
      return fail(ApiError(503, "the engine was lost, and the answer cannot go on: the engine has no /tokenize"));
    }
    {
      const std::lock_guard lock(service_.mutex_);
      point.context_max = service_.context_max_;
    }
    resumed_ = std::move(point);
    resumed_body_ = resumed_body(asked_.kind, asked_.body, *resumed_);
  } catch (const Error& error) {
    why_ = error.message();
    return service_.set_down(why_);
  }
  must_resume_ = false;
  service_.metrics_.count_resumption();
  asked_.exchange->write(": resumed\n\n");
  if (resumed_body_) return;
  // All tokens had come; the word of it was lost.
  const Document end = resumed_chunk(
      asked_.kind,
      Document::map({{"id", Document::string("")},
                     {"object", Document::string("text_completion")},
                     {"created", Document::number(std::int64_t{0})},
                     {"model", Document::string(service_.name())},
                     {"choices", Document::list({Document::map({{"index", Document::number(std::int64_t{0})},
                                                                {"text", Document::string("")},
                                                                {"logprobs", Document::null()},
                                                                {"finish_reason", Document::string("length")}})})}}),
      *resumed_, answer_);
  asked_.exchange->write(sse_data(end) + kStreamEnd);
  asked_.exchange->end();
  finish("length");
  is_done_ = true;
}

void UpstreamService::Asking::fail(const ApiError& error) {
  if (has_begun_) {
    const Document shown = error.json_of(asked_.kind);
    asked_.exchange->write(asked_.kind == ApiKind::kMessages ? sse_event("error", shown)
                                                             : sse_data(shown) + kStreamEnd);
    asked_.exchange->end();
  } else {
    reply_document(asked_.exchange, service_.metrics_, error.json_of(asked_.kind), error.status());
  }
  finish("error");
}

void UpstreamService::Asking::finish(const char* reason) {
  const UpstreamUsage& usage = answer_.usage;
  // A chunk may hold several tokens, and an answer that comes whole has no chunks.
  const std::int64_t tokens = usage.answer.value_or(answer_.chunks);
  service_.metrics_.count_tokens(tokens - answer_.chunks, real_clock().now());
  service_.metrics_.count_finished({.reason = reason,
                                    .prompt_tokens = usage.prompt,
                                    .cached_tokens = usage.cached,
                                    .answer_tokens = tokens,
                                    .total = to_seconds(real_clock().now() - asked_.came),
                                    .queued = to_seconds(placed_ - asked_.came),
                                    .first_token = first_ ? to_seconds(*first_ - asked_.came) : Seconds{}});
}

}  // namespace yoke::serve

#include "yoke/engine/messages.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "yoke/base/fields.h"
#include "yoke/base/json.h"

namespace yoke {
namespace {

constexpr std::string_view kMagic = "YKE\x01";
constexpr std::size_t kHeaderSize = 12;
static_assert(std::endian::native == std::endian::little, "sizes and logits are copied as they lie in memory");

// JSON has no infinities, but a bias may be one, and so may a log-probability.
struct Real {
  float* value;
};
void write_field(Document& document, const Real& real) {
  const float value = *real.value;
  if (std::isnan(value)) {
    document = Document::string("nan");
  } else if (std::isinf(value)) {
    document = Document::string(value > 0 ? "inf" : "-inf");
  } else {
    document = Document::number(double{value});
  }
}
void read_field(const Document& document, Real& real) {
  using Limits = std::numeric_limits<float>;
  if (document.kind != Document::Kind::kText) return read_field(document, *real.value);
  if (document.text == "inf") {
    *real.value = Limits::infinity();
  } else if (document.text == "-inf") {
    *real.value = -Limits::infinity();
  } else if (document.text == "nan") {
    *real.value = Limits::quiet_NaN();
  } else {
    refuse_field(document, "a number, inf, -inf or nan");
  }
}

// Numbers in our JSON are signed: all 64 bits of a seed or of somebody's request id only fit into a text.
struct Word {
  std::uint64_t* value;
};
void write_field(Document& document, const Word& word) { document = Document::string(fmt::format("{}", *word.value)); }
void read_field(const Document& document, Word& word) {
  const char* const end = document.text.data() + document.text.size();
  const auto [rest, failure] = std::from_chars(document.text.data(), end, *word.value);
  if (document.kind != Document::Kind::kText || failure != std::errc{} || rest != end) {
    refuse_field(document, "a whole number as a text");
  }
}

template <class Visitor>
void visit_real(Visitor& visit, std::string_view key, float& value) {
  Real real{&value};
  visit.required(key, real);
}
template <class Visitor>
void visit_word(Visitor& visit, std::string_view key, std::uint64_t& value) {
  Word word{&value};
  visit.required(key, word);
}

struct ErrorFields {
  std::string code;
  std::string message;
  std::string hint;
  std::vector<std::string> context;
};

template <class Visitor>
void visit_fields(Visitor& visit, ErrorFields& error) {
  visit.required("code", error.code);
  visit.required("message", error.message);
  visit.optional("hint", error.hint);
  visit.optional("context", error.context);
}

Document error_to_json(const Error& error) {
  return to_document(ErrorFields{std::string(info(error.code()).name), error.message(), error.hint(), error.context()});
}

Error error_from_json(const Document& document) {
  const auto fields = from_document<ErrorFields>(document);
  for (const ErrorCodeInfo& row : error_codes()) {
    if (row.name != fields.code) continue;
    Error error(row.code, fields.message, fields.hint);
    for (const std::string& where : fields.context) error = std::move(error).in(where);
    return error;
  }
  throw Error(ErrorCode::kInvalid,
              fmt::format("{}: there is no error '{}'", document.where, printable(fields.code, 40)));
}

}  // namespace

template <class Visitor>
void visit_fields(Visitor& visit, LogitBias& bias) {
  visit.required("id", bias.id);
  visit_real(visit, "bias", bias.bias);
}

template <class Visitor>
void visit_fields(Visitor& visit, SamplingOptions& options) {
  visit_real(visit, "temperature", options.temperature);
  visit.required("top_k", options.top_k);
  visit_real(visit, "top_p", options.top_p);
  visit_real(visit, "min_p", options.min_p);
  visit_real(visit, "repetition_penalty", options.repetition_penalty);
  visit_real(visit, "frequency_penalty", options.frequency_penalty);
  visit_real(visit, "presence_penalty", options.presence_penalty);
  visit.optional("logit_bias", options.logit_bias);
  visit_word(visit, "seed", options.seed);
  visit.optional("logprobs", options.logprobs);
}

template <class Visitor>
void visit_fields(Visitor& visit, Request& request) {
  visit_word(visit, "id", request.id);
  visit.required("prompt", request.prompt);
  visit.optional("answer", request.answer);
  visit.required("answer_most", request.answer_most);
  visit.optional("stop_ids", request.stop_ids);
  visit.required("sampling", request.sampling);
  visit.optional("logits", request.logits);
}

template <class Visitor>
void visit_fields(Visitor& visit, CancelRequest& cancel) {
  visit_word(visit, "id", cancel.id);
}

template <class Visitor>
void visit_fields(Visitor& visit, LoadProgress& progress) {
  visit.required("done", progress.done);
  visit.required("total", progress.total);
}

template <class Visitor>
void visit_fields(Visitor& visit, EngineReady& ready) {
  visit.required("ranks", ready.ranks);
  visit.optional("nodes", ready.nodes);
  visit.required("transport", ready.transport);
  visit.required("backend", ready.backend);
  visit.required("vocabulary", ready.vocabulary);
  visit.required("context_most", ready.context_most);
  visit.required("cache_tokens", ready.cache_tokens);
  visit.optional("weights_each", ready.weights_each);
  visit.required("cache_each", ready.cache_each);
}

template <class Visitor>
void visit_fields(Visitor& visit, PromptRead& read) {
  visit_word(visit, "id", read.id);
  visit.required("done", read.done);
  visit.required("total", read.total);
}

template <class Visitor>
void visit_fields(Visitor& visit, TokenLogprob& logprob) {
  visit.required("id", logprob.id);
  visit_real(visit, "logprob", logprob.logprob);
}

template <class Visitor>
void visit_fields(Visitor& visit, Sampled& token) {
  visit.required("id", token.id);
  visit_real(visit, "logprob", token.logprob);
  visit.optional("top", token.top);
}

template <class Visitor>
void visit_fields(Visitor& visit, TokenMade& made) {
  visit_word(visit, "id", made.id);
  visit.required("token", made.token);
}

template <class Visitor>
void visit_fields(Visitor& visit, EngineRecovered& recovered) {
  visit.required("after", recovered.after);
  visit.required("cause", recovered.cause);
}

namespace {

// What the head says of logits; they themselves are the body.
struct LogitsHead {
  std::uint64_t id = 0;
  std::int64_t position = 0;
  std::int64_t rows = 0;
  std::int64_t vocabulary = 0;
};
template <class Visitor>
void visit_fields(Visitor& visit, LogitsHead& head) {
  visit_word(visit, "id", head.id);
  visit.required("position", head.position);
  visit.required("rows", head.rows);
  visit.required("vocabulary", head.vocabulary);
}

struct EndedHead {
  std::uint64_t id = 0;
  FinishReason reason = FinishReason::kStop;
};
template <class Visitor>
void visit_fields(Visitor& visit, EndedHead& head) {
  visit_word(visit, "id", head.id);
  visit.required("reason", head.reason);
}

std::string framed(std::string_view kind, Document content, std::string_view body = {}) {
  const std::string head = print_json(Document::map({{std::string(kind), std::move(content)}}), JsonLayout::kOneLine);
  YOKE_CHECK_LE(head.size(), kEngineHeadMost);
  YOKE_CHECK_LE(body.size(), std::numeric_limits<std::uint32_t>::max());
  const std::uint32_t sizes[2] = {static_cast<std::uint32_t>(head.size()), static_cast<std::uint32_t>(body.size())};
  std::string message(kMagic);
  message.append(reinterpret_cast<const char*>(sizes), sizeof sizes);
  message += head;
  message += body;
  return message;
}

std::string encode_one(const Request& request) { return framed("request", to_document(request)); }
std::string encode_one(const CancelRequest& cancel) { return framed("cancel", to_document(cancel)); }
std::string encode_one(const LoadProgress& progress) { return framed("load", to_document(progress)); }
std::string encode_one(const EngineReady& ready) { return framed("ready", to_document(ready)); }
std::string encode_one(const PromptRead& read) { return framed("read", to_document(read)); }
std::string encode_one(const TokenMade& token) { return framed("token", to_document(token)); }
std::string encode_one(const EngineRecovered& recovered) { return framed("recovered", to_document(recovered)); }
std::string encode_one(const EngineFailed& failed) { return framed("failed", error_to_json(failed.error)); }
std::string encode_one(const LogitsMade& logits) {
  YOKE_CHECK_EQ(logits.rows.shape().rank(), 2U);
  const LogitsHead head{logits.id, logits.position, logits.rows.extent(0), logits.rows.extent(1)};
  const auto bytes = std::as_bytes(logits.rows.span<float>());
  return framed("logits", to_document(head), {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}
std::string encode_one(const RequestEnded& ended) {
  Document content = to_document(EndedHead{ended.id, ended.reason});
  if (ended.error) content.add("error", error_to_json(*ended.error));
  return framed("ended", std::move(content));
}

LogitsMade read_logits(const Document& content, std::string_view body) {
  const auto head = from_document<LogitsHead>(content);
  const std::int64_t extents[] = {head.rows, head.vocabulary};
  const bool sensible = head.rows >= 0 && head.vocabulary >= 0 && head.position >= 0;
  const auto count = sensible ? checked_count(extents) : std::nullopt;
  if (!count || static_cast<std::uint64_t>(*count) != body.size() / sizeof(float) || body.size() % sizeof(float) != 0) {
    throw Error(ErrorCode::kInvalid, fmt::format("{}: {} bytes are not the logits of {} tokens and a vocabulary of {}",
                                                 content.where, body.size(), head.rows, head.vocabulary));
  }
  LogitsMade logits{.id = head.id, .position = head.position, .rows = {}};
  logits.rows = Tensor::empty({head.rows, head.vocabulary}, DType::kF32);
  if (!body.empty()) std::memcpy(logits.rows.mutable_raw(), body.data(), body.size());
  return logits;
}

RequestEnded read_ended(Document content) {
  RequestEnded ended;
  std::erase_if(content.fields, [&](const Document::Field& field) {
    if (field.first != "error") return false;
    ended.error = error_from_json(field.second);
    return true;
  });
  const auto head = from_document<EndedHead>(content);
  ended.id = head.id;
  ended.reason = head.reason;
  return ended;
}

// The one key of the head is the kind of the message, its value what it says.
Document::Field read_head(std::string_view head) {
  Document document = parse_json(head, "a message");
  if (document.kind != Document::Kind::kMap || document.fields.size() != 1) {
    throw Error(ErrorCode::kInvalid, "a message between front and engine has no kind");
  }
  return std::move(document.fields.front());
}

void refuse_body(std::string_view body) {
  if (!body.empty()) throw Error(ErrorCode::kInvalid, "a message between front and engine has a body too many");
}

[[noreturn]] void refuse_kind(std::string_view kind) {
  throw Error(ErrorCode::kInvalid, fmt::format("'{}' is no message between front and engine", printable(kind, 40)));
}

}  // namespace

std::string encode(const FrontMessage& message) {
  return std::visit([](const auto& one) { return encode_one(one); }, message);
}

std::string encode(const EngineEvent& event) {
  return std::visit([](const auto& one) { return encode_one(one); }, event);
}

Document to_json(const Request& request) { return write_fields(request); }
Request request_from_json(const Document& document) { return read_fields<Request>(document); }

std::optional<EngineMessageReader::Parts> EngineMessageReader::next() {
  // Moved to the front rarely, so that many small messages in one piece cost no more than their bytes.
  if (begin_ == held_.size() || begin_ > (std::size_t{1} << 20)) {
    held_.erase(0, begin_);
    begin_ = 0;
  }
  const std::string_view rest = std::string_view(held_).substr(begin_);
  if (!kMagic.starts_with(rest.substr(0, kMagic.size()))) {
    throw Error(ErrorCode::kInvalid, "what came between front and engine is no message",
                "does a program of another version speak here?");
  }
  if (rest.size() < kHeaderSize) return std::nullopt;
  std::uint32_t sizes[2];
  std::memcpy(sizes, rest.data() + kMagic.size(), sizeof sizes);
  if (sizes[0] > kEngineHeadMost) {
    throw Error(ErrorCode::kInvalid, fmt::format("a message between front and engine claims a head of {} bytes, "
                                                 "more than {}",
                                                 sizes[0], kEngineHeadMost));
  }
  const std::size_t size = kHeaderSize + sizes[0] + std::size_t{sizes[1]};
  if (rest.size() < size) return std::nullopt;
  begin_ += size;
  return Parts{rest.substr(kHeaderSize, sizes[0]), rest.substr(kHeaderSize + sizes[0], sizes[1])};
}

std::optional<FrontMessage> EngineMessageReader::next_front_message() {
  const auto parts = next();
  if (!parts) return std::nullopt;
  refuse_body(parts->body);
  const auto [kind, content] = read_head(parts->head);
  if (kind == "request") return read_fields<Request>(content);
  if (kind == "cancel") return from_document<CancelRequest>(content);
  refuse_kind(kind);
}

std::optional<EngineEvent> EngineMessageReader::next_event() {
  const auto parts = next();
  if (!parts) return std::nullopt;
  const auto [kind, content] = read_head(parts->head);
  if (kind == "logits") return read_logits(content, parts->body);
  refuse_body(parts->body);
  if (kind == "token") return from_document<TokenMade>(content);
  if (kind == "ended") return read_ended(content);
  if (kind == "read") return from_document<PromptRead>(content);
  if (kind == "load") return from_document<LoadProgress>(content);
  if (kind == "ready") return from_document<EngineReady>(content);
  if (kind == "recovered") return from_document<EngineRecovered>(content);
  if (kind == "failed") return EngineFailed{error_from_json(content)};
  refuse_kind(kind);
}

}  // namespace yoke

#include "yoke/engine/event_json.h"

#include <charconv>

#include "yoke/base/fields.h"

namespace yoke::engine {
namespace {

// Numbers in our JSON are signed: all 64 bits of a seed or of somebody's request id only fit into a text.
struct Word {
  std::uint64_t* value;
};
Document to_json(const Word& word) { return Document::string(fmt::format("{}", *word.value)); }
void from_json(const Document& document, Word& word) {
  const char* const end = document.text.data() + document.text.size();
  const auto [rest, failure] = std::from_chars(document.text.data(), end, *word.value);
  if (document.kind != Document::Kind::kText || failure != std::errc{} || rest != end) {
    refuse_field(document, "a whole number as a text");
  }
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
  const auto fields = from_json<ErrorFields>(document);
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
  visit.required("context_max", ready.context_max);
  visit.required("context_of_model", ready.context_of_model);
  visit.required("cache_tokens", ready.cache_tokens);
  visit.optional("weights_each", ready.weights_each);
  visit.required("cache_each", ready.cache_each);
}

template <class Visitor>
void visit_fields(Visitor& visit, EngineRecovered& recovered) {
  visit.required("after", recovered.after);
  visit.required("cause", recovered.cause);
}

template <class Visitor>
void visit_fields(Visitor& visit, RequestAlone& alone) {
  visit_word(visit, "id", alone.id);
}

template <class Visitor>
void visit_fields(Visitor& visit, EngineAccount& account) {
  visit.required("steps", account.account);
  visit.optional("traces", account.traces);
}

namespace {

struct EndedHead {
  std::uint64_t id = 0;
  FinishReason reason = FinishReason::kStop;
};
template <class Visitor>
void visit_fields(Visitor& visit, EndedHead& head) {
  visit_word(visit, "id", head.id);
  visit.required("reason", head.reason);
}

Document of_kind(const char* kind, Document content) { return Document::map({{kind, std::move(content)}}); }

RequestEnded read_ended(Document content) {
  RequestEnded ended;
  std::erase_if(content.fields, [&](const Document::Field& field) {
    if (field.first != "error") return false;
    ended.error = error_from_json(field.second);
    return true;
  });
  const auto head = from_json<EndedHead>(content);
  ended.id = head.id;
  ended.reason = head.reason;
  return ended;
}

}  // namespace

Document event_to_json(const LoadProgress& progress) { return of_kind("load", to_document(progress)); }
Document event_to_json(const EngineReady& ready) { return of_kind("ready", to_document(ready)); }
Document event_to_json(const EngineRecovered& recovered) { return of_kind("recovered", to_document(recovered)); }
Document event_to_json(const RequestAlone& alone) { return of_kind("alone", to_document(alone)); }
Document event_to_json(const EngineAccount& account) { return of_kind("account", to_document(account)); }
Document event_to_json(const EngineFailed& failed) { return of_kind("failed", error_to_json(failed.error)); }
Document event_to_json(const RequestEnded& ended) {
  Document content = to_document(EndedHead{ended.id, ended.reason});
  if (ended.error) content.add("error", error_to_json(*ended.error));
  return of_kind("ended", std::move(content));
}

EngineEvent event_from_json(Document document) {
  if (document.kind != Document::Kind::kMap || document.fields.size() != 1) {
    throw Error(ErrorCode::kInvalid, "a message between client and engine has no kind");
  }
  const auto& [kind, content] = document.fields.front();
  if (kind == "ended") return read_ended(content);
  if (kind == "load") return from_json<LoadProgress>(content);
  if (kind == "ready") return from_json<EngineReady>(content);
  if (kind == "recovered") return from_json<EngineRecovered>(content);
  if (kind == "alone") return from_json<RequestAlone>(content);
  if (kind == "account") return from_json<EngineAccount>(content);
  if (kind == "failed") return EngineFailed{error_from_json(content)};
  throw Error(ErrorCode::kInvalid, fmt::format("'{}' is no message between client and engine", printable(kind, 40)));
}

}  // namespace yoke::engine

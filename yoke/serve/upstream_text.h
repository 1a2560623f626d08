// What passes between a server of another engine and its clients, as text: events of a stream, and the request that
// takes a broken answer up again. Pure.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "yoke/base/document.h"
#include "yoke/serve/api_error.h"

namespace yoke::serve {

// The data of server-sent events, as bytes come in pieces of any size.
class SseReader {
 public:
  std::vector<std::string> add(std::string_view bytes);

 private:
  std::string held_;
};

// How many tokens a request took, as the server says it in an answer or at the end of a stream.
struct UpstreamUsage {
  std::optional<std::int64_t> prompt, cached, answer;
};
// In any of the API's shapes; what is not there stays as it is.
void take_usage(const Document& event, UpstreamUsage& usage);
// Asks a stream for it; false where the client does so itself.
bool ask_for_usage(Document& body);
// Takes it out of an event again; false where nothing else was in it.
bool drop_usage(Document& chunk);
// Whether an event of /v1/responses or /v1/messages brings a piece of the answer.
bool is_piece(const Document& event);

// An answer of another server as far as it has come.
struct UpstreamAnswer {
  std::string text;                 // of its one choice
  std::vector<std::string> pieces;  // of that, as they came: each begins and ends with a token
  std::int64_t chunks = 0;          // with text: about as many as there are tokens
  bool is_finished = false;         // a finish_reason came
  std::string id;                   // of the first chunk: the later ones keep it
  std::optional<std::int64_t> created;
  // Where the server gives token ids: those of the prompt, and of the answer with how much of the text they make.
  std::vector<std::int64_t> prompt_ids, ids;
  std::size_t settled = 0;
  std::size_t skipped = 0;  // bytes of a resumed answer that the client has already
  UpstreamUsage usage;
};
// One event of a stream: remembers its text, and gives it as it goes to the client.
Document take_chunk(ApiKind kind, Document chunk, UpstreamAnswer& answer);

// Why an answer to this request could not be taken up in the middle; nothing where it can.
std::optional<std::string> not_resumable(ApiKind kind, const Document& body);

// The request that goes on after `text`: a completion of prompt and answer so far.
struct ResumePoint {
  std::vector<std::int64_t> prompt;  // ids
  std::vector<std::int64_t> answer;  // of the text so far
  std::int64_t context_max = 0;      // 0: not known
};
// Nothing where no token is left to be made.
std::optional<Document> resumed_body(ApiKind kind, const Document& body, const ResumePoint& point);
// An event of that completion, as the client's stream has it.
Document resumed_chunk(ApiKind kind, const Document& chunk, const ResumePoint& point, UpstreamAnswer& answer);

// http://HOST[:PORT]; Error(kUsage) for anything else.
struct UpstreamUrl {
  std::string host;
  int port = 80;
};
UpstreamUrl parse_upstream(std::string_view url);

}  // namespace yoke::serve

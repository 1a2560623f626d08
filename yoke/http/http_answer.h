// An answer of an HTTP/1.1 server, read as bytes come: status, headers, and a body by length, in chunks or up to the
// end. For plain connections to a machine's own servers; downloads go through curl (curl.h).
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace yoke::http {

struct HttpAnswer {
  int status = 0;
  std::vector<std::pair<std::string, std::string>> headers;  // names in lower case
  std::string body;

  std::optional<std::string> header(std::string_view name) const;  // `name` in lower case
};

class AnswerReader {
 public:
  // Takes bytes; Error(kInvalid) for what is no HTTP, Error(kExhausted) beyond 64 KiB of head or 16 MiB of body.
  void take(std::string_view bytes);
  // The server closed its side: Error(kUnavailable) where more was promised.
  void take_end();
  bool is_complete() const { return state_ == State::kDone; }
  HttpAnswer& answer() { return answer_; }

 private:
  enum class State { kHead, kBody, kChunkSize, kChunk, kChunkEnd, kTrailer, kUntilEnd, kDone };
  void read_head(std::string_view head);
  bool step();
  void add_body(std::size_t size);

  State state_ = State::kHead;
  std::string buffer_;
  std::uint64_t left_ = 0;  // of the body, or of a chunk
  HttpAnswer answer_;
};

}  // namespace yoke::http

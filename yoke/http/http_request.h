// A request to an HTTP/1.1 or HTTP/1.0 server, read as bytes come. Strict: what two servers could read in two ways
// (RFC 9112, 11.2: request smuggling) is refused, never guessed. Limits on everything that an unknown client can send.
//
//   RequestReader reader({});
//   reader.take(bytes);
//   while (auto request = reader.next()) …
//   if (reader.refusal()) …                     // the connection must be closed after the answer
//
// Plain data: a reader belongs to one thread.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace yoke::http {

struct HttpRequest {
  std::string method;
  std::string path;                                          // without the query
  std::string query;                                         // after '?', as it was sent
  std::vector<std::pair<std::string, std::string>> headers;  // names in lower case
  std::string body;
  int minor_version = 1;   // of HTTP/1.x
  bool keep_alive = true;  // the client takes another answer on this connection

  std::optional<std::string> header(std::string_view name) const;  // `name` in lower case
};

struct RequestLimits {
  std::size_t head_bytes = 32 << 10;
  std::size_t headers = 100;
  std::size_t body_bytes = 16 << 20;
};

// Why a request is not answered: the status of HTTP, and a sentence.
struct RequestRefusal {
  int status = 400;
  std::string why;
};

class RequestReader {
 public:
  explicit RequestReader(const RequestLimits& limits) : limits_(limits) {}

  void take(std::string_view bytes) { buffer_.append(bytes); }
  // The next whole request; nothing where more bytes must come, or after a refusal.
  std::optional<HttpRequest> next();
  const std::optional<RequestRefusal>& refusal() const { return refusal_; }

  bool has_begun() const { return state_ != State::kHead || !buffer_.empty(); }  // and is not complete
  bool is_in_body() const { return state_ != State::kHead; }
  std::size_t held() const { return buffer_.size(); }
  // Once for a request whose client waits for "100 Continue" before it sends the body.
  bool take_continue_wanted() { return std::exchange(continue_wanted_, false); }

 private:
  enum class State { kHead, kBody, kChunkSize, kChunk, kChunkEnd, kTrailer, kDone };
  bool step();
  bool find_head_end(std::size_t& end);
  void read_head(std::string_view head);
  void read_first_line(std::string_view line);
  void read_header(std::string_view line);
  void read_framing();
  void read_chunk_line(std::string_view line);
  void refuse(int status, std::string why);
  void consume(std::size_t bytes);

  RequestLimits limits_;
  State state_ = State::kHead;
  std::string buffer_;
  std::size_t searched_ = 0;       // of the head: no end before this
  std::size_t empty_lines_ = 0;    // before the request
  std::uint64_t left_ = 0;         // of the body, or of a chunk
  std::size_t trailer_bytes_ = 0;  // so far
  bool continue_wanted_ = false;
  HttpRequest request_;
  std::optional<RequestRefusal> refusal_;
};

// "%41" and so on in a path or a query value; nothing for a broken escape.
std::optional<std::string> percent_decoded(std::string_view text);

}  // namespace yoke::http

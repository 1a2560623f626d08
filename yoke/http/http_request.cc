#include "yoke/http/http_request.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "yoke/base/text.h"

namespace yoke::http {
namespace {

constexpr std::size_t kChunkLine = 256;       // of a chunk's size with its extensions
constexpr std::size_t kEmptyLinesBefore = 4;  // that some clients send after a body

bool is_token(std::string_view text) {
  const auto is_tchar = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
  };
  return !text.empty() && std::all_of(text.begin(), text.end(), is_tchar);
}

std::string in_lower_case(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return out;
}

std::string_view without_blanks(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

std::optional<std::uint64_t> whole_number(std::string_view text, int base) {
  std::uint64_t value = 0;
  if (text.empty() || text.size() > 18 || text.front() == '-') return std::nullopt;
  const auto [rest, failure] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (failure != std::errc{} || rest != text.data() + text.size()) return std::nullopt;
  return value;
}

// Whether a list such as "keep-alive, Upgrade" has a word.
bool lists(std::string_view value, std::string_view word) {
  for (const std::string& part : split(value, ',')) {
    if (in_lower_case(without_blanks(part)) == word) return true;
  }
  return false;
}

}  // namespace

std::optional<std::string> HttpRequest::header(std::string_view name) const {
  for (const auto& [key, value] : headers) {
    if (key == name) return value;
  }
  return std::nullopt;
}

std::optional<std::string> percent_decoded(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out += text[i];
      continue;
    }
    unsigned value = 0;
    if (i + 2 >= text.size()) return std::nullopt;
    const char* const end = text.data() + i + 3;
    const auto [rest, failure] = std::from_chars(text.data() + i + 1, end, value, 16);
    if (failure != std::errc{} || rest != end) return std::nullopt;
    out += static_cast<char>(value);
    i += 2;
  }
  return out;
}

void RequestReader::refuse(int status, std::string why) { refusal_ = RequestRefusal{status, std::move(why)}; }

void RequestReader::consume(std::size_t bytes) {
  buffer_.erase(0, bytes);
  searched_ = 0;
}

std::optional<HttpRequest> RequestReader::next() {
  while (!refusal_ && state_ != State::kDone && step()) {
  }
  if (refusal_ || state_ != State::kDone) return std::nullopt;
  state_ = State::kHead;
  continue_wanted_ = false;
  return std::exchange(request_, {});
}

// ---- the head

// Every line must end with CR LF: a bare LF is a line's end to some servers and none to others.
bool RequestReader::find_head_end(std::size_t& end) {
  while (buffer_.starts_with("\r\n")) {
    if (++empty_lines_ > kEmptyLinesBefore) return refuse(400, "there are empty lines before the request"), false;
    consume(2);
  }
  const std::size_t seen = std::min(buffer_.size(), limits_.head_bytes);
  for (std::size_t i = searched_; i < seen; ++i) {
    if (buffer_[i] != '\n') continue;
    if (i == 0 || buffer_[i - 1] != '\r') return refuse(400, "a line does not end with CR LF"), false;
    if (i < 3 || buffer_[i - 2] != '\n') continue;
    end = i + 1;
    empty_lines_ = 0;
    return true;
  }
  searched_ = seen;
  if (seen == limits_.head_bytes) {
    refuse(431, fmt::format("the request's head is larger than {} bytes", limits_.head_bytes));
  }
  return false;
}

void RequestReader::read_head(std::string_view head) {
  request_ = {};
  bool is_first = true;
  while (!head.empty() && !refusal_) {
    const std::size_t end = head.find("\r\n");
    const std::string_view line = head.substr(0, end);
    head.remove_prefix(end + 2);
    if (is_first) {
      read_first_line(line);
    } else if (!line.empty()) {
      read_header(line);
    }
    is_first = false;
  }
  if (!refusal_) read_framing();
}

void RequestReader::read_first_line(std::string_view line) {
  const std::size_t first = line.find(' ');
  const std::size_t second = first == std::string_view::npos ? first : line.find(' ', first + 1);
  if (second == std::string_view::npos) return refuse(400, "the first line is no 'METHOD TARGET VERSION'");
  const std::string_view method = line.substr(0, first);
  std::string_view target = line.substr(first + 1, second - first - 1);
  const std::string_view version = line.substr(second + 1);
  if (!is_token(method) || method.size() > 20) return refuse(400, "the method is no word");
  const bool is_printable = std::all_of(target.begin(), target.end(), [](char c) { return c > ' ' && c < 0x7f; });
  if (target.empty() || !is_printable) return refuse(400, "the target has characters that a URL cannot have");
  if (version.size() != 8 || !version.starts_with("HTTP/")) return refuse(400, "the version is not that of HTTP");
  if (version != "HTTP/1.1" && version != "HTTP/1.0") return refuse(505, "only HTTP/1.1 and HTTP/1.0 are served");
  if (target.starts_with("http://")) {  // the form for proxies
    const std::size_t slash = target.find('/', 7);
    target = slash == std::string_view::npos ? std::string_view("/") : target.substr(slash);
  }
  if (target.front() != '/' && target != "*") return refuse(400, "the target is no path");
  const std::size_t question = target.find('?');
  const auto path = percent_decoded(target.substr(0, question));
  if (!path || path->find('\0') != std::string::npos) return refuse(400, "the path has a broken escape");
  request_.method = method;
  request_.path = *path;
  if (question != std::string_view::npos) request_.query = target.substr(question + 1);
  request_.minor_version = version.back() - '0';
}

void RequestReader::read_header(std::string_view line) {
  if (request_.headers.size() >= limits_.headers) return refuse(431, "the request has too many headers");
  if (line.front() == ' ' || line.front() == '\t') return refuse(400, "a header goes on in the next line");
  const std::size_t colon = line.find(':');
  if (colon == std::string_view::npos || !is_token(line.substr(0, colon))) {
    return refuse(400, "a header has no name, or one with blanks or signs in it");
  }
  const std::string_view value = without_blanks(line.substr(colon + 1));
  const bool is_clean = std::all_of(value.begin(), value.end(), [](char c) {
    return c == '\t' || (static_cast<unsigned char>(c) >= ' ' && c != 0x7f);
  });
  if (!is_clean) return refuse(400, "a header has control characters");
  request_.headers.emplace_back(in_lower_case(line.substr(0, colon)), value);
}

// Where the body ends. Two answers to that question are how requests are smuggled: only one is ever taken.
void RequestReader::read_framing() {
  const auto count = [this](std::string_view name) {
    return std::count_if(request_.headers.begin(), request_.headers.end(),
                         [&](const auto& header) { return header.first == name; });
  };
  if (count("host") > 1 || (request_.minor_version == 1 && count("host") == 0)) {
    return refuse(400, "a request has one Host header");
  }
  const std::string connection = request_.header("connection").value_or("");
  request_.keep_alive = request_.minor_version == 1 ? !lists(connection, "close") : lists(connection, "keep-alive");
  if (count("content-length") > 1) return refuse(400, "there are two Content-Length headers");
  const auto length = request_.header("content-length");
  const auto coding = request_.header("transfer-encoding");
  if (coding) {
    if (length) return refuse(400, "there are Content-Length and Transfer-Encoding");
    if (request_.minor_version == 0) return refuse(400, "HTTP/1.0 has no Transfer-Encoding");
    if (count("transfer-encoding") > 1 || in_lower_case(*coding) != "chunked") {
      return refuse(501, "the only Transfer-Encoding that is served is chunked");
    }
    state_ = State::kChunkSize;
    trailer_bytes_ = 0;
  } else if (length) {
    const auto bytes = whole_number(*length, 10);
    if (!bytes || (*length)[0] == '+') return refuse(400, "the Content-Length is no number");
    if (*bytes > limits_.body_bytes) {
      return refuse(413, fmt::format("the body has {} bytes, and {} is the limit", *bytes, limits_.body_bytes));
    }
    left_ = *bytes;
    state_ = left_ == 0 ? State::kDone : State::kBody;
  } else {
    state_ = State::kDone;
  }
  if (const auto expect = request_.header("expect")) {
    if (in_lower_case(*expect) != "100-continue") return refuse(417, "the only expectation served is 100-continue");
    continue_wanted_ = state_ != State::kDone && request_.minor_version == 1;
  }
}

// ---- the body

void RequestReader::read_chunk_line(std::string_view line) {
  const std::string_view digits = line.substr(0, line.find(';'));
  const auto size = whole_number(without_blanks(digits), 16);
  const bool is_hex = std::all_of(digits.begin(), digits.end(), [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F') || c == ' ' || c == '\t';
  });
  if (!size || !is_hex || digits.front() == ' ') return refuse(400, "the size of a chunk is no number");
  if (*size > limits_.body_bytes - request_.body.size()) {
    return refuse(413, fmt::format("the body is larger than {} bytes", limits_.body_bytes));
  }
  left_ = *size;
  state_ = left_ == 0 ? State::kTrailer : State::kChunk;
}

// One piece of what has come; false where more must come first.
bool RequestReader::step() {
  if (state_ == State::kHead) {
    std::size_t end = 0;
    if (!find_head_end(end)) return false;
    const std::string head = buffer_.substr(0, end);
    consume(end);
    read_head(head);
    return true;
  }
  if (state_ == State::kBody || state_ == State::kChunk) {
    const std::size_t size = static_cast<std::size_t>(std::min<std::uint64_t>(left_, buffer_.size()));
    request_.body.append(buffer_, 0, size);
    consume(size);
    left_ -= size;
    if (left_ > 0) return false;
    state_ = state_ == State::kBody ? State::kDone : State::kChunkEnd;
    return true;
  }
  const std::size_t end = buffer_.find('\n');
  if (end == std::string::npos) {
    if (buffer_.size() > kChunkLine) refuse(400, "a line of the chunked body is too long");
    return false;
  }
  if (end == 0 || buffer_[end - 1] != '\r' || end > kChunkLine) {
    refuse(400, "a line of the chunked body is too long or does not end with CR LF");
    return false;
  }
  const std::string line = buffer_.substr(0, end - 1);
  consume(end + 1);
  if (state_ == State::kChunkSize) {
    read_chunk_line(line);
  } else if (state_ == State::kChunkEnd) {
    if (!line.empty()) refuse(400, "a chunk is longer than its size");
    state_ = State::kChunkSize;
  } else if (line.empty()) {
    state_ = State::kDone;
  } else if ((trailer_bytes_ += line.size()) > limits_.head_bytes) {
    refuse(431, "the trailer is too large");
  }
  return true;
}

}  // namespace yoke::http

#include "yoke/http/http_answer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>

#include "yoke/base/error.h"
#include "yoke/base/text.h"

namespace yoke::http {
namespace {

constexpr std::size_t kHeadBytes = 64 << 10;
constexpr std::size_t kBodyBytes = 16 << 20;
constexpr std::size_t kChunkLineBytes = 1 << 10;

[[noreturn]] void refuse_answer(std::string_view why, std::string_view text) {
  throw Error(ErrorCode::kInvalid, fmt::format("the server's answer is no HTTP: {} ('{}')", why, printable(text, 60)),
              "is another program listening on that port?");
}

std::optional<std::uint64_t> number_of(std::string_view text, int base) {
  std::uint64_t value = 0;
  const auto [rest, failure] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (failure != std::errc{} || rest != text.data() + text.size() || text.empty()) return std::nullopt;
  return value;
}

std::string lower_case(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(), [](unsigned char c) { return std::tolower(c); });
  return out;
}

}  // namespace

std::optional<std::string> HttpAnswer::header(std::string_view name) const {
  for (const auto& [key, value] : headers) {
    if (key == name) return value;
  }
  return std::nullopt;
}

void AnswerReader::read_head(std::string_view head) {
  const std::vector<std::string> lines = split(head, '\n');
  const std::string_view first = trim(lines.front());
  // "HTTP/1.1 200 OK"
  if (!first.starts_with("HTTP/1.") || first.size() < 12) refuse_answer("its first line", first);
  const auto status = number_of(first.substr(9, 3), 10);
  if (!status || *status < 100) refuse_answer("its status", first);
  answer_ = {.status = static_cast<int>(*status), .headers = {}, .body = {}};
  for (std::size_t i = 1; i < lines.size(); ++i) {
    const std::string_view line = trim(lines[i]);
    if (line.empty()) continue;
    const std::size_t colon = line.find(':');
    if (colon == std::string_view::npos || colon == 0) refuse_answer("a header", line);
    answer_.headers.emplace_back(lower_case(trim(line.substr(0, colon))), std::string(trim(line.substr(colon + 1))));
  }
  if (answer_.status < 200) {  // 100 Continue: the real one follows
    state_ = State::kHead;
    return;
  }
  if (answer_.status == 204 || answer_.status == 304) {
    state_ = State::kDone;
  } else if (lower_case(answer_.header("transfer-encoding").value_or("")).find("chunked") != std::string::npos) {
    state_ = State::kChunkSize;
  } else if (const auto length = answer_.header("content-length")) {
    const auto bytes = number_of(*length, 10);
    if (!bytes) refuse_answer("its length", *length);
    left_ = *bytes;
    state_ = left_ == 0 ? State::kDone : State::kBody;
  } else {
    state_ = State::kUntilEnd;
  }
}

void AnswerReader::add_body(std::size_t size) {
  if (answer_.body.size() + size > kBodyBytes) {
    throw Error(ErrorCode::kExhausted, "the server's answer is larger than 16 MiB");
  }
  answer_.body.append(buffer_, 0, size);
  buffer_.erase(0, size);
}

// One piece of what has come; false where more must come first.
bool AnswerReader::step() {
  if (state_ == State::kHead) {
    const std::size_t end = buffer_.find("\r\n\r\n");
    if (end == std::string::npos) {
      if (buffer_.size() > kHeadBytes) throw Error(ErrorCode::kExhausted, "the server's answer has no end of its head");
      return false;
    }
    const std::string head = buffer_.substr(0, end);
    buffer_.erase(0, end + 4);
    read_head(head);
    return true;
  }
  if (state_ == State::kBody || state_ == State::kChunk) {
    const std::size_t size = static_cast<std::size_t>(std::min<std::uint64_t>(left_, buffer_.size()));
    add_body(size);
    left_ -= size;
    if (left_ > 0) return false;
    state_ = state_ == State::kBody ? State::kDone : State::kChunkEnd;
    return true;
  }
  if (state_ == State::kUntilEnd) {
    add_body(buffer_.size());
    return false;
  }
  if (state_ == State::kDone) return false;
  const std::size_t end = buffer_.find("\r\n");
  if (end == std::string::npos) {
    if (buffer_.size() > kChunkLineBytes) refuse_answer("the line before a chunk", buffer_);
    return false;
  }
  const std::string line = buffer_.substr(0, end);
  buffer_.erase(0, end + 2);
  if (state_ == State::kChunkEnd) {
    if (!line.empty()) refuse_answer("the end of a chunk", line);
    state_ = State::kChunkSize;
  } else if (state_ == State::kTrailer) {
    if (line.empty()) state_ = State::kDone;
  } else {
    const auto size = number_of(trim(std::string_view(line).substr(0, line.find(';'))), 16);
    if (!size) refuse_answer("the size of a chunk", line);
    left_ = *size;
    state_ = left_ == 0 ? State::kTrailer : State::kChunk;
  }
  return true;
}

void AnswerReader::take(std::string_view bytes) {
  buffer_.append(bytes);
  while (step()) {
  }
}

void AnswerReader::take_end() {
  if (state_ == State::kUntilEnd) state_ = State::kDone;
  if (state_ == State::kDone) return;
  throw Error(ErrorCode::kUnavailable, "the server closed the connection before its answer was complete");
}

}  // namespace yoke::http

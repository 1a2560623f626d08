#include "yoke/batch/batch_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <optional>
#include <set>

#include "yoke/base/error.h"
#include "yoke/base/interrupt.h"
#include "yoke/base/json.h"
#include "yoke/base/result.h"
#include "yoke/base/text.h"

namespace yoke::batch {
namespace {

constexpr std::size_t kRequestMax = 16 << 20;
constexpr std::size_t kAnswerMax = 1 << 30;  // embeddings of many texts
constexpr std::array kUrls = {"/v1/chat/completions", "/v1/completions", "/v1/embeddings"};

[[noreturn]] void refuse(const std::filesystem::path& file, std::size_t line, const std::string& what) {
  throw Error(
      ErrorCode::kInvalid, fmt::format("{}:{}: {}", file.native(), line, what),
      "a line is {\"custom_id\": \"a\", \"method\": \"POST\", \"url\": \"/v1/chat/completions\", \"body\": {…}}");
}

// The lines of a file, which may be larger than memory; none of them may.
class Lines {
 public:
  Lines(std::filesystem::path file, std::size_t line_max)
      : file_(std::move(file)), line_max_(line_max), fd_(open_regular_file(file_)) {}

  std::optional<std::string> next() {
    std::size_t searched = begin_;
    std::size_t end = 0;
    while ((end = held_.find('\n', searched)) == std::string::npos) {
      if (held_.size() - begin_ > line_max_)
        refuse(file_, number_ + 1, fmt::format("is longer than {} MiB", line_max_ >> 20));
      held_.erase(0, std::exchange(begin_, 0));
      searched = held_.size();
      if (!read_more()) break;
    }
    is_whole_ = end != std::string::npos;
    if (!is_whole_ && held_.empty()) return std::nullopt;
    std::string line = held_.substr(begin_, is_whole_ ? end - begin_ : std::string::npos);
    begin_ = is_whole_ ? end + 1 : held_.size();
    ++number_;
    return line;
  }
  std::size_t number() const { return number_; }
  bool is_whole() const { return is_whole_; }  // the line ends with a newline

 private:
  bool read_more() {
    throw_if_interrupted();
    constexpr std::size_t kPiece = 1 << 16;
    const std::size_t there = held_.size();
    held_.resize(there + kPiece);
    const std::size_t count = read_some(fd_, held_.data() + there, kPiece, file_);
    held_.resize(there + count);
    return count > 0;
  }

  std::filesystem::path file_;
  std::size_t line_max_;
  UniqueFd fd_;
  std::string held_;
  std::size_t begin_ = 0, number_ = 0;
  bool is_whole_ = false;
};

std::string text_of(const Document& request, std::string_view key) {
  const Document* field = request.find(key);
  return field && field->kind == Document::Kind::kText ? field->text : "";
}

BatchLine check_line(const std::filesystem::path& file, std::size_t number, const std::string& text) {
  const auto request = try_to([&] { return parse_json(text, "the line"); });
  if (!request || request->kind != Document::Kind::kMap) refuse(file, number, "is no JSON object");
  BatchLine line{.custom_id = text_of(*request, "custom_id"), .url = text_of(*request, "url")};
  if (line.custom_id.empty()) refuse(file, number, "has no custom_id");
  if (const std::string method = text_of(*request, "method"); method != "POST") {
    refuse(file, number, fmt::format("the method is '{}', and must be POST", printable(method, 20)));
  }
  if (std::find(kUrls.begin(), kUrls.end(), line.url) == kUrls.end()) {
    refuse(file, number, fmt::format("the url '{}' is none of a batch", printable(line.url, 60)));
  }
  const Document* body = request->find("body");
  if (!body || body->kind != Document::Kind::kMap) refuse(file, number, "has no body");
  const Document* stream = body->find("stream");
  if (stream && stream->text == "true") refuse(file, number, "asks for a stream, which a file cannot hold");
  for (const auto& [key, field] : request->fields) {
    if (key != "custom_id" && key != "method" && key != "url" && key != "body") {
      refuse(file, number, fmt::format("unknown key '{}'", printable(key, 40)));
    }
  }
  return line;
}

std::string read_range(const std::filesystem::path& file, std::uint64_t offset, std::uint64_t size) {
  const UniqueFd fd = open_file(file, O_RDONLY);
  std::string text(size, '\0');
  std::uint64_t done = 0;
  while (done < size) {
    const ssize_t got = pread(fd.get(), text.data() + done, size - done, static_cast<off_t>(offset + done));
    if (got <= 0) throw system_error(got < 0 ? errno : EIO, fmt::format("cannot read {}", file.native()));
    done += static_cast<std::uint64_t>(got);
  }
  return text;
}

}  // namespace

BatchInput read_batch_input(const std::filesystem::path& file) {
  Lines lines(file, kRequestMax);
  BatchInput input{.file = file, .lines = {}};
  std::set<std::string, std::less<>> seen;
  std::uint64_t offset = 0;
  while (const auto text = lines.next()) {
    const std::uint64_t size = text->size();
    if (!trim(*text).empty()) {
      BatchLine line = check_line(file, lines.number(), *text);
      line.offset = offset;
      line.size = size;
      if (!seen.insert(line.custom_id).second) {
        refuse(file, lines.number(), fmt::format("custom_id '{}' is there twice", printable(line.custom_id, 60)));
      }
      input.lines.push_back(std::move(line));
    }
    offset += size + 1;
  }
  if (input.lines.empty()) throw Error(ErrorCode::kInvalid, fmt::format("{} has no request", file.native()));
  return input;
}

Document read_body(const BatchInput& input, const BatchLine& line) {
  const Document request = parse_json(read_range(input.file, line.offset, line.size), input.file.native());
  const Document* body = request.find("body");
  if (!body || text_of(request, "custom_id") != line.custom_id) {
    throw Error(ErrorCode::kInvalid, fmt::format("{} changed while it was read", input.file.native()));
  }
  return *body;
}

BatchOutput::BatchOutput(std::filesystem::path file, const BatchInput& input)
    : input_(input), file_(std::move(file)), partial_(file_.native() + ".partial") {
  if (std::filesystem::exists(file_)) {
    throw Error(ErrorCode::kConflict, fmt::format("{} is there already", file_.native()),
                "a complete batch has this name; remove it, or name another file with -o");
  }
  const auto open_partial = [this] { return open_file(partial_, O_RDWR | O_CREAT | O_APPEND, 0644); };
  lock_.emplace(partial_, FileLockOptions{.wait = Seconds{0},
                                          .busy = fmt::format("another batch writes {} now", partial_.native()),
                                          .prepare = open_partial});
  fd_ = open_partial();
  read_partial();
}

// Whole lines count; what follows the last newline was being written when the batch ended.
void BatchOutput::read_partial() {
  std::set<std::string, std::less<>> asked;
  for (const BatchLine& line : input_.lines) asked.insert(line.custom_id);
  Lines lines(partial_, kAnswerMax);
  while (const auto text = lines.next()) {
    if (!lines.is_whole()) break;
    const auto answer = try_to([&] { return parse_json(*text, partial_.native()); });
    const std::string id = answer ? text_of(*answer, "custom_id") : "";
    if (!asked.contains(id)) {
      throw Error(ErrorCode::kConflict, fmt::format("{} has answers to other requests", partial_.native()),
                  "remove it, or name another file with -o");
    }
    answers_[id] = {.offset = end_, .size = text->size()};
    end_ += text->size() + 1;
  }
  if (ftruncate(fd_.get(), static_cast<off_t>(end_)) != 0) {
    throw system_error(errno, fmt::format("cannot shorten {}", partial_.native()));
  }
}

bool BatchOutput::has(const std::string& custom_id) const {
  const std::scoped_lock lock(mutex_);
  return answers_.contains(custom_id);
}

std::size_t BatchOutput::size() const {
  const std::scoped_lock lock(mutex_);
  return answers_.size();
}

void BatchOutput::add(const std::string& custom_id, std::string_view line) {
  const std::scoped_lock lock(mutex_);
  if (answers_.contains(custom_id)) return;
  write_all(fd_, std::string(line) + "\n", partial_.native());
  answers_[custom_id] = {.offset = end_, .size = line.size()};
  end_ += line.size() + 1;
}

void BatchOutput::finish() {
  const std::scoped_lock lock(mutex_);
  const std::filesystem::path ordered = file_.native() + ".ordered";
  {
    const UniqueFd out = open_file(ordered, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    for (const BatchLine& line : input_.lines) {
      const Answer& answer = answers_.at(line.custom_id);
      write_all(out, read_range(partial_, answer.offset, answer.size + 1), ordered.native());
    }
    if (fsync(out.get()) != 0) throw system_error(errno, fmt::format("cannot write {}", ordered.native()));
  }
  std::filesystem::rename(ordered, file_);
  std::filesystem::remove(partial_);
  sync_folder(std::filesystem::absolute(file_).parent_path());
}

}  // namespace yoke::batch

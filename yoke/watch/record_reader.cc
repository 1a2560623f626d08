#include "yoke/watch/record_reader.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <utility>

#include "yoke/base/error.h"
#include "yoke/base/files.h"
#include "yoke/base/interrupt.h"

namespace yoke::watch {
namespace {

constexpr std::size_t kMaxRecordLines = 1 << 24;  // half a year of one node, with a sample each second

}  // namespace

RecordReader::RecordReader(const std::filesystem::path& file) {
  auto fd = std::make_shared<UniqueFd>(open_regular_file(file));
  read_at_ = [fd, file](std::uint64_t offset, char* to, std::size_t size) {
    ssize_t count = 0;
    do {
      count = pread(fd->get(), to, size, static_cast<off_t>(offset));
    } while (count < 0 && errno == EINTR);
    if (count < 0) throw system_error(errno, fmt::format("cannot read {}", file.native()));
    return static_cast<std::size_t>(count);
  };
  open(file.native());
}

RecordReader::RecordReader(std::string text, const std::string& name) {
  read_at_ = [text = std::move(text)](std::uint64_t offset, char* to, std::size_t size) {
    return offset < text.size() ? text.copy(to, size, offset) : 0;
  };
  open(name);
}

void RecordReader::open(const std::string& name) {
  find_lines();
  std::stable_sort(lines_.begin(), lines_.end(), [](const Line& a, const Line& b) { return a.number < b.number; });
  while (at_ < lines_.size() && !decoder_.plan()) take_line();
  if (!decoder_.plan()) {
    throw Error(ErrorCode::kInvalid, fmt::format("{} is no record of 'yoke watch'", name),
                "'yoke watch --record FILE' writes one");
  }
  plan_ = *decoder_.plan();
}

// A line that is longer than one can be is read over, not kept.
void RecordReader::find_lines() {
  std::string held(1 << 20, '\0');
  std::string line;
  std::uint64_t begin = 0;
  std::uint64_t offset = 0;
  while (const std::size_t count = read_at_(offset, held.data(), held.size())) {
    throw_if_interrupted();
    std::string_view piece(held.data(), count);
    while (!piece.empty()) {
      const std::size_t end = std::min(piece.find('\n'), piece.size());
      if (line.size() <= kMaxRecordLine) line += piece.substr(0, end);
      offset += end;
      piece.remove_prefix(end);
      if (piece.empty()) break;
      add_line(begin, line);
      line.clear();
      begin = ++offset;
      piece.remove_prefix(1);
    }
  }
  if (offset > begin) add_line(begin, line);
}

void RecordReader::add_line(std::uint64_t offset, std::string_view line) {
  if (const auto number = record_line_number(line)) {
    if (lines_.size() == kMaxRecordLines)
      throw Error(ErrorCode::kInvalid, fmt::format("the record has more than {} lines", kMaxRecordLines));
    lines_.push_back({*number, offset, line.size()});
  } else {
    decoder_.count_damaged(1);
  }
}

std::optional<Observation> RecordReader::take_line() {
  const Line& place = lines_[at_++];
  std::string line(place.size, '\0');
  std::size_t there = 0;
  while (there < line.size()) {
    const std::size_t count = read_at_(place.offset + there, line.data() + there, line.size() - there);
    if (count == 0) break;  // it was cut off since
    there += count;
  }
  return decoder_.take(std::string_view(line).substr(0, there));
}

std::optional<Observation> RecordReader::next() {
  while (at_ < lines_.size()) {
    auto observation = take_line();
    if (observation && observation->node < plan_.cluster.nodes.size()) return observation;
  }
  return std::nullopt;
}

RecordSource::RecordSource(RecordReader record, double speed)
    : record_(std::move(record)),
      speed_(speed),
      ahead_(record_.next()),
      time_(ahead_ ? ahead_->time : 0),
      began_at_(time_),
      began_(real_clock().now()) {}

double RecordSource::now() const {
  if (speed_ <= 0 || (at_end() && is_begun_)) return time_;
  return began_at_ + to_seconds(real_clock().now() - began_).value * speed_;
}

std::optional<Observation> RecordSource::next(Deadline deadline) {
  if (at_end()) return std::nullopt;
  while (speed_ > 0 && ahead_->time > now()) {
    const double left = (ahead_->time - now()) / speed_;
    if (deadline.expired()) return std::nullopt;
    real_clock().sleep(std::min({Seconds{left}, deadline.remaining(), Seconds{0.1}}));
  }
  auto given = std::exchange(ahead_, record_.next());
  is_begun_ = true;
  time_ = given->time;
  return given;
}

}  // namespace yoke::watch

#include "yoke/base/line_buffer.h"

#include <algorithm>

namespace yoke {

bool LineBuffer::append_within(Bytes limit, std::string_view data) {
  const auto most = static_cast<std::size_t>(std::max<std::int64_t>(0, limit.value));
  const std::size_t room = most - std::min(most, size());
  append(data.substr(0, room));
  return data.size() <= room;
}

std::optional<std::string> LineBuffer::take_line(More more) {
  const std::size_t end = data_.find('\n', std::max(begin_, searched_));
  if (end != std::string::npos && end - begin_ <= kMaxLine) {
    std::string line = data_.substr(begin_, end - begin_);
    drop(line.size() + 1);
    return line;
  }
  if (size() > kMaxLine) return take_bytes(kMaxLine);
  if (more == More::kNone && !empty()) return take_bytes(kMaxLine);
  searched_ = data_.size();
  return std::nullopt;
}

std::string LineBuffer::take_bytes(std::size_t most) {
  std::string bytes = data_.substr(begin_, most);
  drop(bytes.size());
  return bytes;
}

void LineBuffer::drop(std::size_t count) {
  begin_ += count;
  searched_ = begin_;
  // Moving the rest to the front at every line would cost the square of the buffer.
  if (begin_ == data_.size() || begin_ > kMaxLine) {
    data_.erase(0, begin_);
    begin_ = searched_ = 0;
  }
}

}  // namespace yoke

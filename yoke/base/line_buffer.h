// Bytes that come in pieces, taken out as lines. A line longer than kMaxLine is given in pieces of that size, so that
// a program that never writes a newline cannot fill the memory of one that waits for it.
#pragma once
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "yoke/base/units.h"

namespace yoke {

class LineBuffer {
 public:
  static constexpr std::size_t kMaxLine = 1 << 20;

  void append(std::string_view data) { data_ += data; }
  // Keeps what fits into the limit; whether all did.
  bool append_within(Bytes limit, std::string_view data);
  std::size_t size() const { return data_.size() - begin_; }
  bool empty() const { return size() == 0; }

  // The next whole line, without its newline. After the end of the data the rest is a line too.
  enum class More { kMayCome, kNone };
  std::optional<std::string> take_line(More more);
  std::string take_bytes(std::size_t most);

 private:
  void drop(std::size_t count);

  std::string data_;
  std::size_t begin_ = 0;     // what lies before is taken
  std::size_t searched_ = 0;  // no newline from begin_ to here
};

}  // namespace yoke

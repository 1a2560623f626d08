#include "yoke/check/word_scan.h"

#include <deque>

#include "yoke/base/check.h"

namespace yoke::check {

WordScan::WordScan(const std::vector<ScanWord>& words) : next_(width_, 0), found_(1, 0) {
  std::uint8_t classes = 0;
  for (const ScanWord& word : words) {
    YOKE_CHECK(!word.text.empty() && word.bit >= 0 && word.bit < 64, "'{}' has bit {}", word.text, word.bit);
    std::uint32_t state = 0;
    for (const char c : word.text) {
      std::uint8_t& of = classes_[static_cast<unsigned char>(c)];
      if (of == 0) of = ++classes;
      YOKE_CHECK(classes < width_);
      if (next_[state + of] == 0) {
        const auto fresh = static_cast<std::uint32_t>(next_.size());
        next_[state + of] = fresh;
        next_.resize(next_.size() + width_, 0);
        found_.push_back(0);
      }
      state = next_[state + of];
    }
    found_[state / width_] |= std::uint64_t{1} << static_cast<unsigned>(word.bit);
  }
  // By distance from the start: where no word goes on, the longest end of what was read that begins a word does.
  std::vector<std::uint32_t> shorter(found_.size(), 0);
  std::deque<std::uint32_t> waiting;
  for (std::uint32_t of = 1; of <= classes; ++of) {
    if (next_[of] != 0) waiting.push_back(next_[of]);
  }
  for (; !waiting.empty(); waiting.pop_front()) {
    const std::uint32_t state = waiting.front();
    const std::uint32_t other = shorter[state / width_];
    found_[state / width_] |= found_[other / width_];
    for (std::uint32_t of = 1; of <= classes; ++of) {
      std::uint32_t& next = next_[state + of];
      if (next == 0) {
        next = next_[other + of];
      } else {
        shorter[next / width_] = next_[other + of];
        waiting.push_back(next);
      }
    }
  }
}

}  // namespace yoke::check

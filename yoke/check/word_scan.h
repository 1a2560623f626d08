// Which of some words a text holds, in one pass over its bytes, however many words there are (Aho and Corasick, 1975).
//
//   const WordScan scan({{"NET/IB", 0}, {" via ", 1}});
//   if (scan.in(line) & 2U) …
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace yoke::check {

struct ScanWord {
  std::string_view text;
  int bit = 0;  // below 64; words may share one
};

class WordScan {
 public:
  explicit WordScan(const std::vector<ScanWord>& words);

  // The bits of all words in it.
  std::uint64_t in(std::string_view text) const {
    std::uint32_t state = 0;
    std::uint64_t found = 0;
    for (const char c : text) {
      state = next_[state + classes_[static_cast<unsigned char>(c)]];
      found |= found_[state / width_];
    }
    return found;
  }

 private:
  // A row of next_ has an entry for each byte that is in some word, and the first for all others: the table stays small
  // enough for the processor's caches.
  static constexpr std::uint32_t width_ = 128;
  std::array<std::uint8_t, 256> classes_{};
  std::vector<std::uint32_t> next_;  // of a row's beginning and a class: the next row's beginning
  std::vector<std::uint64_t> found_;
};

}  // namespace yoke::check

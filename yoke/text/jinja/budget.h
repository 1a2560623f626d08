// What one run of a template may cost: steps, and the bytes of a text. Whatever walks values or makes them asks first,
// since a few values that are shared can stand for more than any memory holds: [x, x] of [x, x] of …, sixty times. One
// thread at a time.
#pragma once
#include <cstddef>
#include <cstdint>

namespace yoke::text::jinja {

struct Limits {
  std::uint64_t steps = 20'000'000;   // a second or two; a chat of a thousand messages needs some 200,000
  std::size_t text_bytes = 16 << 20;  // of one text, the output among them
  int depth = 400;                    // of expressions in statements in macros
};

class Budget {
 public:
  // Steps also stand for memory: these keep all values that a run makes under some 400 MB.
  static constexpr std::uint64_t kTextSteps = 16;  // a text of its own takes some 170 bytes
  static constexpr std::uint64_t kEntrySteps = 8;  // of a map
  static constexpr std::uint64_t kItemSteps = 2;   // of a list

  explicit Budget(const Limits& limits) : limits_(limits) {}

  // kExhausted beyond the limit; kInterrupted now and then, where a signal came.
  void spend(std::uint64_t steps) {
    const std::uint64_t before = steps_;
    steps_ += steps;
    if (steps_ > limits_.steps || (before >> kLookEvery) != (steps_ >> kLookEvery)) look();
  }
  void check_size(std::size_t bytes) const {
    if (bytes > limits_.text_bytes) refuse_size();
  }

 private:
  static constexpr int kLookEvery = 16;  // as a power of two
  void look() const;
  [[noreturn]] void refuse_size() const;

  Limits limits_;
  std::uint64_t steps_ = 0;
};

}  // namespace yoke::text::jinja

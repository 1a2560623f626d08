// A bound on the processor time that work on an input from outside may take, whatever the machine's load. Loops ask it
// as they go; so they also end soon after Ctrl-C. For one thread.
//
//   CpuBudget budget(limits::kTextTime, "the tokenizer");
//   for (…) budget.look();
#pragma once
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

namespace yoke {

class CpuBudget {
 public:
  // `what` is the subject of the error: "the tokenizer takes more than 2.0 s of processor time".
  CpuBudget(std::chrono::nanoseconds allowed, std::string what);

  // kExhausted beyond what is allowed, kInterrupted after a signal. Costs some nanoseconds: the processor's time is
  // read only when the kernel's clock has ticked, every 1 to 10 ms, and counts from the first such tick.
  void look() {
    if (const std::int64_t tick = ticks(); tick != last_tick_) {
      last_tick_ = tick;
      check_closely();
    }
  }
  // At once. The first call starts to count.
  void check_closely();
  std::chrono::nanoseconds used() const;

 private:
  static std::int64_t ticks();

  std::string what_;
  std::chrono::nanoseconds allowed_;
  std::optional<std::chrono::nanoseconds> start_;
  std::int64_t last_tick_ = 0;
};

}  // namespace yoke

// What a tokenizer may make of one text: bytes, and processor time (base/limits.h). Its steps come from a file, and
// forty that each double a text make a terabyte of a letter. For one thread.
#pragma once
#include <cstddef>
#include <string>

#include "yoke/base/cpu_budget.h"

namespace yoke::text {

class TextBudget {
 public:
  enum class Of { kText, kToken };
  explicit TextBudget(std::size_t bytes, Of of = Of::kText);

  CpuBudget& cpu() { return cpu_; }
  std::size_t bytes_max() const { return bytes_max_; }
  void check_size(std::size_t bytes) const;  // kExhausted

 private:
  std::size_t bytes_max_;
  CpuBudget cpu_;
};

}  // namespace yoke::text

// Two runs of the history side by side: which rows changed, and by more than their own noise. Pure.
#pragma once
#include <string>
#include <vector>

#include "yoke/bench/run_record.h"

namespace yoke::bench {

enum class Change { kSame, kFaster, kSlower };
constexpr auto enum_names(Change) {
  return std::array{std::pair{"same", Change::kSame}, std::pair{"faster", Change::kFaster},
                    std::pair{"slower", Change::kSlower}};
}
std::string_view to_string(Change change);

struct ComparedRow {
  RecordRow a;
  RecordRow b;
  double speed = 1;  // of b over a: 2 is twice as fast, whether the unit is a time or a rate
  Change change = Change::kSame;
};

struct Comparison {
  std::vector<ComparedRow> rows;       // those that both have
  std::vector<std::string> only_in_a;  // "float sum out-of-place, 8 B"
  std::vector<std::string> only_in_b;
  std::vector<std::string> differences;  // of machine, program and settings, which may explain the numbers
  double speed = 1;                      // the geometric mean over rows
  int faster = 0;
  int slower = 0;
};

// A row changed where the quartiles of both runs do not overlap and the medians differ by more than 5 %.
Comparison compare_runs(const RunRecord& a, const RunRecord& b);

Document to_json(const Comparison& comparison);
std::string comparison_text(const RunRecord& a, const RunRecord& b, const Comparison& comparison);

}  // namespace yoke::bench

// Predicted against measured: error by class, worst rows, and the headline: each model predicted by constants that were
// fitted without any row of it.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "yoke/base/document.h"
#include "yoke/plan/measured.h"

namespace yoke::plan {

struct RowResult {
  MeasuredRow row;
  std::string class_name;
  std::optional<double> predicted;  // with the shipped constants
  std::optional<double> held_out;   // with constants that never saw this model
  std::string why;                  // it declines, or what was assumed
};

// Of |predicted/measured - 1|. The percentile of n sorted values is the one at index floor(q*(n-1)).
struct ErrorSummary {
  int rows = 0;
  double median = 0;
  double p90 = 0;
  double within_interval = 0;  // share of rows inside the 80% interval
};

struct Validation {
  std::vector<RowResult> rows;                    // all of confidence A and B, in the file's order
  int left_out = 0;                               // of other confidence
  std::map<std::string, ErrorSummary> in_sample;  // by class, and "all"
  std::map<std::string, ErrorSummary> held_out;
};

Validation validate(const std::vector<MeasuredRow>& rows);
Document to_json(const Validation& validation);

// The 80% interval of a class as a factor: value/factor to value*factor (docs/planning.md says where it comes from).
double interval_factor(const std::string& class_name);

}  // namespace yoke::plan

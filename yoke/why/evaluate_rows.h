// Rows of a benchmark against what was expected of each. Pure.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "yoke/why/answer.h"

namespace yoke::why {

struct BenchRow {
  std::string name;
  std::string unit;  // "us": less is better; others: more is
  double value = 0;
  double low = 0, high = 0;  // quartiles
  std::optional<double> predicted = {};
  std::vector<double> before = {};  // the same row of earlier runs
};

struct BenchQuestion {
  std::string subject;
  std::string benchmark;  // "all-reduce"
  std::vector<BenchRow> rows;
  std::string verdict = {};  // what the benchmark itself said of the link
  std::string options = {};
};

Answer evaluate_bench(const BenchQuestion& question);

}  // namespace yoke::why

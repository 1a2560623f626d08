// Published measurements as rows of a CSV (the columns are in docs/planning.md), and what the planner would have said
// of each. The text is read by the caller.
#pragma once
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "yoke/plan/constants.h"

namespace yoke::plan {

struct MeasuredRow {
  std::string id;
  std::string kind;  // serve, net, train, memory, image, power
  std::string hardware;
  int gpus = 1;
  std::string model;
  std::string quant;
  std::string engine;
  std::string parallelism;
  std::string batch;
  std::string context;
  std::string generated;
  std::string metric;
  double value = 0;
  std::string unit;
  std::string source;
  std::string confidence;
  std::string note;
};

// Error(kInvalid) names the line: missing columns, a value that is not above zero, an unclosed quote.
std::vector<MeasuredRow> parse_measured(std::string_view csv, std::string_view source);

// "decode", "aggregate", "prefill", "collectives", "training", "images", "memory", "power"; "other" where unknown.
std::string class_of(const MeasuredRow& row);

// What the planner says of a row, as a function of its constants: in the row's unit. Empty where it declines.
struct Question {
  std::function<double(const Constants&)> answer;
  std::string why;  // it declines, or what it had to assume
};
Question question_of(const MeasuredRow& row);

}  // namespace yoke::plan

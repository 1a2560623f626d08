#include "yoke/why/evaluate_rows.h"

#include <fmt/format.h>

#include <algorithm>

namespace yoke::why {
namespace {

constexpr double kWorseThanPlan = 2.0;    // times, of a prediction
constexpr double kWorseThanBefore = 1.5;  // times, of the worst of earlier runs
constexpr std::size_t kRunsBefore = 3;

// How many times as bad as that.
double worse_by(const BenchRow& row, double other) {
  if (other <= 0 || row.value <= 0) return 0;
  return row.unit == "us" ? row.value / other : other / row.value;
}

std::string next_of_bench(const BenchQuestion& q) {
  const bool is_machine = q.benchmark == "memory" || q.benchmark == "matmul" || q.benchmark == "model";
  return is_machine ? "yoke watch" + q.options : "yoke check" + q.options;
}

}  // namespace

Answer evaluate_bench(const BenchQuestion& question) {
  Answer answer{.subject = question.subject, .steps = {}, .blames = {}, .limit = {}, .notes = {}};
  const BenchRow* worst = nullptr;
  double by = 0;
  bool is_known = false;
  std::string evidence;
  for (const BenchRow& row : question.rows) {
    double own = 0;
    std::string why;
    if (row.before.size() >= kRunsBefore) {
      is_known = true;
      const bool less_is_better = row.unit == "us";
      const double edge =
          less_is_better ? *std::ranges::max_element(row.before) : *std::ranges::min_element(row.before);
      if (worse_by(row, edge) > kWorseThanBefore) own = worse_by(row, edge);
      why = fmt::format("{}: {:.3g} {}; the worst of {} earlier runs was {:.3g}.", row.name, row.value, row.unit,
                        row.before.size(), edge);
    } else if (row.predicted) {
      is_known = true;
      if (worse_by(row, *row.predicted) > kWorseThanPlan) own = worse_by(row, *row.predicted);
      why = fmt::format("{}: {:.3g} {}; {:.3g} predicted.", row.name, row.value, row.unit, *row.predicted);
    }
    if (own <= by) continue;
    by = own;
    worst = &row;
    evidence = why;
  }
  if (worst != nullptr) {
    answer.blames.push_back({.cause = Cause::kRateOff,
                             .term = question.benchmark,
                             .what = fmt::format("{} is {:.1f} times as slow as expected.", question.benchmark, by),
                             .evidence = evidence,
                             .next = next_of_bench(question),
                             .where = {}});
  } else if (!is_known) {
    answer.notes.emplace_back("Nothing was expected of it: no plan, and fewer than three earlier runs.");
  }
  if (!question.verdict.empty()) answer.notes.push_back(question.verdict);
  if (answer.blames.empty() && is_known) answer.limit = "as fast as it was expected to be";
  return answer;
}

}  // namespace yoke::why

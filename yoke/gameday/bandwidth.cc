#include "yoke/gameday/bandwidth.h"

#include <fmt/format.h>

#include <algorithm>

#include "yoke/base/error.h"
#include "yoke/gameday/answers.h"

namespace yoke::gameday {
namespace {

constexpr double kWhole = 0.7;
constexpr double kAbove = 1.05;

}  // namespace

std::string Bandwidth::against_limit() const {
  return limit ? fmt::format("{:.0f}% of {:.3g} GB/s", 100 * largest() / *limit, *limit) : "";
}

bool Bandwidth::is_complete() const {
  return limit && largest() >= kWhole * *limit && largest() <= kAbove * excess * *limit;
}

void expect_complete(PhaseRun& phase_run, const Bandwidth& bandwidth, const std::string& what) {
  if (!bandwidth.limit) return phase_run.print("no verdict: the link's limit is not known (fabric.rail_rate)");
  phase_run.expect(bandwidth.is_complete(), what);
}

Bandwidth measure(PhaseRun& phase_run, const std::string& cluster_file, const std::vector<std::string>& sizes) {
  std::vector<std::string> arguments = {"bench", "all-reduce", "--no-history", "--cluster", cluster_file};
  arguments.insert(arguments.begin() + 2, sizes.begin(), sizes.end());
  return bandwidth_of(phase_run.run_json(arguments));
}

Bandwidth bandwidth_of(const Document& answer) {
  Bandwidth measured{.transport = text_at(answer, "transport"), .wrong = number_at(answer, "wrong")};
  for (const Document& row : list_at(answer, "rows").items) {
    measured.rows.push_back(
        {.size = number_at(row, "size"),
         .time = std::min(number_at(row, "out_of_place.time"), number_at(row, "in_place.time")),
         .bus_bandwidth = std::max(number_at(row, "out_of_place.bus_bw"), number_at(row, "in_place.bus_bw"))});
  }
  if (measured.rows.empty()) throw Error(ErrorCode::kInvalid, "the all-reduce gave no row");
  if (find_at(answer, "options.limit.rail_rate")) {
    measured.limit = number_at(answer, "options.limit.rail_rate") * number_at(answer, "options.limit.rails") / 8 / 1e9;
    if (find_at(answer, "options.limit.share")) *measured.limit *= number_at(answer, "options.limit.share");
    if (find_at(answer, "options.limit.excess")) measured.excess = number_at(answer, "options.limit.excess");
  }
  return measured;
}

}  // namespace yoke::gameday

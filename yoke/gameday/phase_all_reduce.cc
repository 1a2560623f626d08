// The phase about the collective that tensor parallelism waits for, twice in every layer.
#include <fmt/format.h>

#include "yoke/base/units.h"
#include "yoke/gameday/bandwidth.h"
#include "yoke/gameday/phases.h"

namespace yoke::gameday {
namespace {

std::string size_text(double bytes) { return yoke::to_string(Bytes{static_cast<std::int64_t>(bytes)}); }

}  // namespace

void run_all_reduce_phase(Environment& environment, PhaseRun& phase_run) {
  const Bandwidth measured =
      measure(phase_run, environment.cluster_word(), {"-b", "2K", "-e", "8M", "-f", "4", "-n", "20"});
  report::Table table{.columns = {{.header = "size", .align = report::TextAlign::kRight},
                                  {.header = "time", .align = report::TextAlign::kRight},
                                  {.header = "bus bandwidth", .align = report::TextAlign::kRight}}};
  if (environment.lab()) {
    table.footnotes = {
        "Small messages fit into the queue that shapes a lab's cable: they can pass faster than the cable."};
  }
  report::ChartSeries line{.name = "all-reduce"};
  for (const BandwidthRow& row : measured.rows) {
    table.rows.push_back({size_text(row.size), yoke::to_string(Seconds{row.time / 1e6}),
                          yoke::to_string(BytesPerSecond{row.bus_bandwidth * 1e9})});
    line.points.push_back({.x = row.size, .y = row.bus_bandwidth});
  }
  phase_run.print(measured.transport);
  phase_run.show(table);
  report::LineChart chart{.title = "All-reduce of all nodes",
                          .x = {.label = "size", .scale = report::AxisScale::kLog2, .format = size_text},
                          .y = {.label = "bus bandwidth (GB/s)", .include = {0}},
                          .series = {std::move(line)}};
  if (measured.limit) chart.references = {{.value = *measured.limit, .label = "limit of the link"}};
  phase_run.block(std::move(chart));
  phase_run.figure({.name = size_text(measured.rows.front().size), .value = measured.rows.front().time, .unit = "us"});
  phase_run.figure({.name = size_text(measured.rows.back().size),
                    .value = measured.largest(),
                    .unit = "GB/s",
                    .note = measured.against_limit()});
  phase_run.expect(measured.wrong == 0, "every result is right");
  expect_complete(phase_run, measured, "the largest size reaches the link's limit");
}

}  // namespace yoke::gameday

// The phase about the collective that tensor parallelism waits for, twice in every layer.
#include <fmt/format.h>

#include "yoke/base/units.h"
#include "yoke/gameday/bandwidth.h"
#include "yoke/gameday/phases.h"

namespace yoke {
namespace {

std::string size_text(double bytes) { return to_string(Bytes{static_cast<std::int64_t>(bytes)}); }

}  // namespace

void play_all_reduce(Venue& venue, Scene& scene) {
  const Bandwidth measured = measure(scene, venue.cluster_word(), {"-b", "2K", "-e", "8M", "-f", "4", "-n", "20"});
  Table table{.columns = {{.header = "size", .align = TextAlign::kRight},
                          {.header = "time", .align = TextAlign::kRight},
                          {.header = "bus bandwidth", .align = TextAlign::kRight}}};
  if (venue.lab()) {
    table.footnotes = {
        "Small messages fit into the queue that shapes a lab's cable: they can pass faster than the cable."};
  }
  ChartSeries line{.name = "all-reduce"};
  for (const BandwidthRow& row : measured.rows) {
    table.rows.push_back(
        {size_text(row.size), to_string(Seconds{row.time / 1e6}), to_string(BytesPerSecond{row.bus_bandwidth * 1e9})});
    line.points.push_back({.x = row.size, .y = row.bus_bandwidth});
  }
  scene.say(measured.transport);
  scene.show(table);
  LineChart chart{.title = "All-reduce of all nodes",
                  .x = {.label = "size", .scale = AxisScale::kLog2, .format = size_text},
                  .y = {.label = "bus bandwidth (GB/s)", .include = {0}},
                  .series = {std::move(line)}};
  if (measured.limit) chart.references = {{.value = *measured.limit, .label = "limit of the link"}};
  scene.block(std::move(chart));
  scene.figure({.name = size_text(measured.rows.front().size), .value = measured.rows.front().time, .unit = "us"});
  scene.figure({.name = size_text(measured.rows.back().size),
                .value = measured.largest(),
                .unit = "GB/s",
                .note = measured.against_limit()});
  scene.expect(measured.wrong == 0, "every result is right");
  expect_whole(scene, measured, "the largest size reaches the link's limit");
}

}  // namespace yoke

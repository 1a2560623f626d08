// A calibration as a table, and as a record of the history.
#include <fmt/format.h>

#include "yoke/bench/calibrate.h"
#include "yoke/bench/run_record.h"
#include "yoke/report/table.h"

namespace yoke::bench {

std::string calibration_text(const plan::Calibration& calibration, const std::optional<CalibrationCheck>& check) {
  report::Table table{.title = fmt::format("Calibration of {}: {} node{}, engine '{}'", calibration.name,
                                           calibration.nodes, calibration.nodes == 1 ? "" : "s", calibration.backend),
                      .columns = {{.header = "what"},
                                  {.header = "measured", .align = report::TextAlign::kRight},
                                  {.header = "shipped", .align = report::TextAlign::kRight},
                                  {.header = "unit"}}};
  const auto row = [&](std::string name, double value, const std::string& shipped, std::string unit) {
    table.rows.push_back({std::move(name), plain_number(value), shipped, std::move(unit)});
  };
  row("memory available", calibration.memory / 1e9, "", "GB");
  row("memory bandwidth, read", calibration.bandwidth / 1e9, "", "GB/s");
  row("arithmetic", calibration.arithmetic / 1e9, "", "GFLOP/s");
  for (const plan::MeasuredConstant& constant : calibration.constants) {
    for (const plan::ConstantRow& known : plan::constant_table()) {
      if (known.name != constant.name) continue;
      row(constant.name, constant.value, fmt::format("{:.3g}", known.value), std::string(known.unit));
    }
  }
  for (const plan::ReadRate& read : calibration.reads) {
    row(fmt::format("{}, {} a rank", read.constant, to_string(Bytes{static_cast<std::int64_t>(read.bytes)})),
        read.rate / 1e9, "", "GB/s");
  }
  for (const plan::CurvePoint& point : calibration.all_reduce) {
    row(fmt::format("all-reduce of {}", to_string(Bytes{static_cast<std::int64_t>(point.bytes)})), point.seconds * 1e6,
        "", "us");
  }
  std::string text = report::render_text(table);
  if (check) {
    text += fmt::format("Check with a model that took no part: {} tok/s predicted, {} measured ({:+.0f}%).\n",
                        plain_number(check->predicted), plain_number(check->measured),
                        100 * (check->predicted / check->measured - 1));
  }
  return text;
}

RunRecord calibration_record(const plan::Calibration& calibration, const std::optional<CalibrationCheck>& check) {
  RunRecord record =
      new_record("calibrate", Document::map({{"name", Document::string(calibration.name)},
                                             {"nodes", Document::number(std::int64_t{calibration.nodes})},
                                             {"backend", Document::string(calibration.backend)}}));
  const auto add = [&](std::string name, double value, std::string unit) {
    record.rows.push_back(
        {.name = std::move(name), .size = 0, .value = value, .low = value, .high = value, .unit = std::move(unit)});
  };
  add("memory bandwidth", calibration.bandwidth / 1e9, "GB/s");
  add("arithmetic", calibration.arithmetic / 1e9, "GFLOP/s");
  if (check) {
    add("decode of the check model", check->measured, "tok/s");
    record.rows.back().predicted = check->predicted;
  }
  record.summary =
      fmt::format("{}: {} constants, {} nodes", calibration.name, calibration.constants.size(), calibration.nodes);
  return record;
}

}  // namespace yoke::bench

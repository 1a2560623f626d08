#include "yoke/plan/plan_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "yoke/base/terminal.h"
#include "yoke/report/table.h"
#include "yoke/report/text_plot.h"

namespace yoke::plan {
namespace {

constexpr std::size_t kPlanWidth = 100;

std::string gigabytes(double bytes) { return short_number(bytes / 1e9) + " GB"; }

std::string tokens_text(double tokens) {
  if (tokens >= 10240) return fmt::format("{:.0f}k tokens", tokens / 1024);
  return fmt::format("{:.0f} tokens", tokens);
}

report::Table memory_table(const MemoryUse& use, int gpus_per_node) {
  report::Table table{.title = "Memory of one GPU",
                      .columns = {{.header = "part"}, {.header = "size", .align = report::TextAlign::kRight}}};
  for (const auto& [part, bytes] :
       {std::pair{"weights", use.weights}, std::pair{"cache", use.cache}, std::pair{"activations", use.activations},
        std::pair{"gradients", use.gradients}, std::pair{"optimizer", use.optimizer},
        std::pair{"engine and collectives", use.runtime}, std::pair{"reserve (stays free)", use.reserve}}) {
    if (bytes > 0) table.rows.push_back({part, gigabytes(bytes)});
  }
  table.rows.push_back({use.fits() ? "left" : "missing", gigabytes(std::abs(use.left()))});
  table.rows.push_back({"in all", gigabytes(use.capacity)});
  if (gpus_per_node > 1) {
    table.rows.push_back(
        {fmt::format("used of a node of {} GPUs", gpus_per_node), gigabytes(gpus_per_node * use.used())});
  }
  return table;
}

report::Table layouts_table(const Plan& plan) {
  const bool is_training = plan.goal == Goal::kTrain;
  const std::string unit = plan.goal == Goal::kDraw ? "images/min" : is_training ? "tok/s" : "tok/s, prompts read";
  report::Table table{.title = plan.fits ? "Layouts, best first" : "Nearest layout",
                      .columns = {{.header = "layout"},
                                  {.header = unit, .align = report::TextAlign::kRight},
                                  {.header = "why", .fit = report::ColumnFit::kShrinks}}};
  for (const PlannedLayout& planned : plan.layouts) {
    const double score = plan.goal == Goal::kDraw ? 60 * planned.score : planned.score;
    std::string why = planned.why;
    if (is_training) {
      why += fmt::format("; sharding {}, recompute {}, micro-batch {:.0f}", planned.sharding, planned.recompute,
                         planned.micro_batch);
    }
    table.rows.push_back({planned.name, short_number(score), std::move(why)});
  }
  return table;
}

report::Table estimates_table(const Plan& plan, std::vector<std::string>& notes) {
  report::Table table{.title = "Expected, with the interval that holds four of five measurements",
                      .columns = {{.header = "what"},
                                  {.header = "value", .align = report::TextAlign::kRight},
                                  {.header = "80% interval"},
                                  {.header = "from", .align = report::TextAlign::kRight}}};
  for (const Estimate& estimate : plan.estimates) {
    auto known = std::find(notes.begin(), notes.end(), estimate.provenance);
    if (known == notes.end()) known = notes.insert(notes.end(), estimate.provenance);
    table.rows.push_back({estimate.name, fmt::format("{} {}", short_number(estimate.value), estimate.unit),
                          fmt::format("{} to {}", short_number(estimate.low), short_number(estimate.high)),
                          fmt::format("[{}]", known - notes.begin() + 1)});
  }
  return table;
}

report::Table step_table(const Plan& plan) {
  double total = 0;
  for (const TimeShare& share : plan.step) total += share.seconds;
  const std::string what = plan.goal == Goal::kServe  ? "Where a decode step goes"
                           : plan.goal == Goal::kDraw ? "Where an image's time goes"
                                                      : "Where a token's GPU time goes";
  report::Table table{.title = what,
                      .columns = {{.header = "part"},
                                  {.header = "time", .align = report::TextAlign::kRight},
                                  {.header = "share", .align = report::TextAlign::kRight}}};
  for (const TimeShare& share : plan.step) {
    if (share.seconds <= 0) continue;
    table.rows.push_back(
        {share.part, yoke::to_string(Seconds{share.seconds}), fmt::format("{:.1f}%", 100 * share.seconds / total)});
  }
  return table;
}

std::string bullets(std::string_view title, const std::vector<std::string>& lines) {
  if (lines.empty()) return "";
  std::string out = fmt::format("\n{}\n", title);
  for (const std::string& line : lines) {
    const std::vector<std::string> wrapped = report::wrap_text(line, output_width(kPlanWidth) - 4);
    for (std::size_t i = 0; i < wrapped.size(); ++i) out += (i == 0 ? "  - " : "    ") + wrapped[i] + "\n";
  }
  return out;
}

std::string cabling_text(const Plan& plan, const Request& request) {
  if (request.machines.nodes == 1) return "";
  std::string out = fmt::format("\nCabling: {}\n{}", plan.cabling.shape, draw_text(plan.cabling, request.machines));
  if (!plan.cabling.approved.empty()) {
    out += "  Approved cables:\n";
    for (const spec::ApprovedCable& cable : plan.cabling.approved) {
      out += fmt::format("    {}, {}\n", cable.part, cable.length);
    }
    out += fmt::format("    ({})\n", plan.cabling.approved.front().source);
  }
  return out + bullets("About the cabling", plan.cabling.notes);
}

std::string verdict_text(const Plan& plan, const Request& request) {
  const PlannedLayout& best = plan.layouts.front();
  if (!plan.fits) {
    return fmt::format("{} ({}) does not fit {}: {} are missing on each GPU.\n", plan.model, plan.format, plan.machines,
                       gigabytes(-best.memory.left()));
  }
  std::string out = fmt::format("{} ({}) fits {} as {}: {} of {} used on each GPU, {} left.", plan.model, plan.format,
                                plan.machines, best.name, gigabytes(best.memory.used()),
                                gigabytes(best.memory.capacity), gigabytes(best.memory.left()));
  if (plan.goal == Goal::kServe) {
    const double most = request.model.context > 0
                            ? std::min(plan.context_max, static_cast<double>(request.model.context))
                            : plan.context_max;
    out += fmt::format("\nLongest context: {}{}. Most requests of {}: {:.0f}.", tokens_text(most),
                       most < plan.context_max ? " (the model's limit)" : "", tokens_text(plan.context),
                       plan.sequences_max);
  }
  if (plan.goal == Goal::kTrain) {
    out += fmt::format("\nLargest micro-batch of {}: {:.0f}. Longest sequence: {}.", tokens_text(plan.context),
                       plan.sequences_max, tokens_text(plan.context_max));
  }
  std::string wrapped;
  for (const std::string& line : report::wrap_text(out, output_width(kPlanWidth))) wrapped += line + "\n";
  return wrapped;
}

}  // namespace

std::string short_number(double value) {
  if (value == 0) return "0";
  const double magnitude = std::abs(value);
  if (magnitude >= 1000) {
    const double digits = std::pow(10, std::floor(std::log10(magnitude)) - 2);
    std::string text = fmt::format("{:.0f}", std::round(value / digits) * digits);
    for (std::ptrdiff_t at = std::ssize(text) - 3; at > (value < 0 ? 1 : 0); at -= 3) {
      text.insert(static_cast<std::size_t>(at), ",");
    }
    return text;
  }
  if (magnitude >= 100) return fmt::format("{:.0f}", value);
  if (magnitude >= 10) return fmt::format("{:.1f}", value);
  if (magnitude >= 1) return fmt::format("{:.2f}", value);
  return fmt::format("{:#.2g}", value);
}

std::string plan_text(const Plan& plan, const Request& request) {
  std::string out = verdict_text(plan, request);
  out += bullets("To change that:", plan.fits ? std::vector<std::string>{} : plan.changes);
  out += bullets("Mind:", plan.warnings);
  std::vector<std::string> notes;
  const report::Table estimates = estimates_table(plan, notes);
  for (const report::Table& table :
       {layouts_table(plan), memory_table(plan.layouts.front().memory, request.machines.gpus_per_node),
        step_table(plan), estimates}) {
    out += "\n" + report::render_text(table, report::for_output(kPlanWidth));
  }
  for (std::size_t i = 0; i < notes.size(); ++i) {
    const std::vector<std::string> wrapped =
        report::wrap_text(fmt::format("[{}] {}", i + 1, notes[i]), output_width(kPlanWidth) - 4);
    for (std::size_t line = 0; line < wrapped.size(); ++line) out += (line == 0 ? "" : "    ") + wrapped[line] + "\n";
  }
  out += cabling_text(plan, request);
  if (plan.fits) out += bullets("Could be more:", plan.changes);
  return out + bullets("Guessed:", plan.guesses);
}

std::string scale_text(const std::vector<ScalePoint>& points, const Request& request) {
  report::Table table{
      .title = fmt::format("{} on 1 to {} x {}", request.model.name, points.back().nodes, request.machines.hardware),
      .columns = {{.header = "nodes", .align = report::TextAlign::kRight},
                  {.header = "tok/s", .align = report::TextAlign::kRight},
                  {.header = "per node", .align = report::TextAlign::kRight},
                  {.header = "layout"}}};
  report::LineChart chart{.title = "tokens/s by nodes",
                          .x = {.label = "nodes", .scale = report::AxisScale::kLog2},
                          .y = {.label = "tok/s", .scale = report::AxisScale::kLog10},
                          .series = {{.name = "planned"}, {.name = "perfect"}}};
  double first = 0;
  for (const ScalePoint& point : points) {
    const bool fits = point.rate > 0;
    table.rows.push_back({fmt::format("{}", point.nodes), fits ? short_number(point.rate) : "-",
                          fits ? fmt::format("{:.0f}%", 100 * point.efficiency) : "-", point.layout});
    if (!fits) continue;
    if (first == 0) first = point.rate / point.nodes;
    chart.series[0].points.push_back({.x = static_cast<double>(point.nodes), .y = point.rate});
    chart.series[1].points.push_back({.x = static_cast<double>(point.nodes), .y = first * point.nodes});
  }
  std::string out = report::render_text(table, report::for_output(kPlanWidth));
  if (chart.series[0].points.size() > 1) out += "\n" + report::render_text(chart);
  return out +
         "\nWeak scaling: each node brings its own requests, or its own part of the batch, so a step grows with\n"
         "the nodes. Stragglers, failures and what a larger batch costs in learning are not counted.\n";
}

std::string validation_text(const Validation& validation, const std::string& file) {
  report::Table table{.title = fmt::format("Error of the planner on {}", file),
                      .columns = {{.header = "class"},
                                  {.header = "rows", .align = report::TextAlign::kRight},
                                  {.header = "median", .align = report::TextAlign::kRight},
                                  {.header = "p90", .align = report::TextAlign::kRight},
                                  {.header = "in 80% interval", .align = report::TextAlign::kRight},
                                  {.header = "in-sample median", .align = report::TextAlign::kRight},
                                  {.header = "in-sample p90", .align = report::TextAlign::kRight}}};
  const auto percent = [](double value) { return fmt::format("{:.1f}%", 100 * value); };
  for (const auto& [name, summary] : validation.held_out) {
    const ErrorSummary& inside = validation.in_sample.at(name);
    table.rows.push_back({name, fmt::format("{}", summary.rows), percent(summary.median), percent(summary.p90),
                          fmt::format("{:.0f}%", 100 * summary.within_interval), percent(inside.median),
                          percent(inside.p90)});
  }
  std::string out = report::render_text(table, report::for_output(kPlanWidth));
  out += "Median and p90: each model predicted by constants fitted without it (leave one model out).\n";
  out += "In-sample: with the shipped constants, which were chosen with these rows in view.\n";
  std::vector<const RowResult*> worst;
  std::vector<std::string> declined;
  for (const RowResult& result : validation.rows) {
    if (result.held_out) {
      worst.push_back(&result);
    } else {
      declined.push_back(fmt::format("{}: {}", result.row.id, result.why));
    }
  }
  const auto error = [](const RowResult* result) { return *result->held_out / result->row.value - 1; };
  std::stable_sort(worst.begin(), worst.end(),
                   [&](const auto* a, const auto* b) { return std::abs(error(a)) > std::abs(error(b)); });
  report::Table rows{.title = "Worst rows",
                     .columns = {{.header = "id"},
                                 {.header = "class"},
                                 {.header = "model", .fit = report::ColumnFit::kShrinks},
                                 {.header = "measured", .align = report::TextAlign::kRight},
                                 {.header = "held out", .align = report::TextAlign::kRight},
                                 {.header = "shipped", .align = report::TextAlign::kRight},
                                 {.header = "error", .align = report::TextAlign::kRight}}};
  for (std::size_t i = 0; i < std::min<std::size_t>(worst.size(), 10); ++i) {
    const RowResult& result = *worst[i];
    rows.rows.push_back({result.row.id, result.class_name, result.row.model, short_number(result.row.value),
                         short_number(*result.held_out), short_number(*result.predicted),
                         fmt::format("{:+.0f}%", 100 * error(worst[i]))});
  }
  if (!rows.rows.empty()) out += "\n" + report::render_text(rows, report::for_output(kPlanWidth));
  out += bullets("Declined:", declined);
  if (validation.left_out > 0) {
    out += fmt::format("\n{} rows of confidence other than A and B were left out.\n", validation.left_out);
  }
  return out;
}

std::string claim_text(const ClaimExplained& explained) {
  std::string out =
      fmt::format("{} {}: {}. Expected {} ({} to {}) as {}.\n", short_number(explained.claimed), explained.unit,
                  explained.verdict, short_number(explained.expected.value), short_number(explained.expected.low),
                  short_number(explained.expected.high), explained.layout);
  if (explained.bandwidth_percent > 0) {
    out += explained.bandwidth_percent < 1000
               ? fmt::format("It would read {:.0f}% of the memory bandwidth.\n", explained.bandwidth_percent)
               : fmt::format("It would read {:.0f} times the memory bandwidth.\n", explained.bandwidth_percent / 100);
  }
  if (explained.arithmetic_percent > 0) {
    out += fmt::format("It would use {} of the dense arithmetic peak.\n",
                       short_number(explained.arithmetic_percent) + "%");
  }
  return out + bullets("Notes:", explained.notes);
}

std::string hardware_text(const spec::HardwareFacts& facts) {
  report::Table table{.title = fmt::format("{}: {}", facts.hardware->name, facts.hardware->title),
                      .columns = {{.header = "figure"},
                                  {.header = "value", .align = report::TextAlign::kRight},
                                  {.header = "source", .fit = report::ColumnFit::kShrinks}}};
  const auto add = [&](std::string_view name, const spec::Figure& figure, double scale, std::string_view unit) {
    const std::string value =
        figure.value > 0 ? fmt::format("{} {}", short_number(figure.value / scale), unit) : std::string("none");
    table.rows.push_back({std::string(name), value, std::string(figure.source)});
  };
  table.rows.push_back({"GPUs", fmt::format("{}", facts.hardware->gpus), std::string(facts.hardware->gpu)});
  add("memory of a GPU", facts.memory, 1073741824.0, "GiB");
  add("memory bandwidth", facts.bandwidth, 1e9, "GB/s");
  add("BF16 dense", facts.bf16, 1e12, "TFLOP/s");
  add("FP8 dense", facts.fp8, 1e12, "TFLOP/s");
  add("FP4 dense", facts.fp4, 1e12, "TFLOP/s");
  add("NVLink, both directions", facts.nvlink, 1e9, "GB/s");
  add("power of a GPU", facts.gpu_power, 1, "W");
  add("idle power of the machine", facts.idle_power, 1, "W");
  add("power under load", facts.load_power, 1, "W");
  add("network, each direction", facts.nic_limit, 1e9 / 8, "Gb/s");
  std::string out = report::render_text(table, report::for_output(kPlanWidth));
  std::vector<std::string> remarks;
  for (const std::string_view remark : facts.remarks) remarks.emplace_back(remark);
  out += bullets("Remarks", remarks);
  std::vector<std::string> cables;
  for (const spec::ApprovedCable& cable : facts.cables) {
    cables.push_back(fmt::format("{}, {} ({})", cable.part, cable.length, cable.source));
  }
  return out + bullets("Approved cables", cables);
}

}  // namespace yoke::plan

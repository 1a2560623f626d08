#include "yoke/bench/perf_table.h"

#include <fmt/format.h>

#include "yoke/base/build_info.h"
#include "yoke/base/text.h"
#include "yoke/bench/shape.h"

namespace yoke::bench {
namespace {

constexpr std::string_view kFormVersion = "2.19.6";  // of nccl-tests, whose form this is

std::string first_lines(const CollectiveRun& run) {
  const CollectiveOptions& o = run.options;
  const bool by_factor = o.factor > 1;
  // The words "nccl-tests version" are what some scripts look for first; what really runs is said before them.
  std::string text = fmt::format("# yoke {} ({}) in the form of nccl-tests version {} nccl-headers=0 nccl-library=0\n",
                                 build_info().version, build_info().commit, kFormVersion);
  text += fmt::format("# Collective test starting: {}\n", traits_of(o.kind).program);
  text += fmt::format(
      "# nThread {} nGpus {} minBytes {} maxBytes {} step: {}({}) warmup iters: {} iters: {} agg iters: {} validation: "
      "{} graph: 0 unalign: {}\n",
      o.threads, o.gpus, o.size_min.value, o.size_max.value, by_factor ? o.factor : o.step.value,
      by_factor ? "factor" : "bytes", o.warmup_iterations, o.iterations, o.aggregate, o.checks, o.unalign);
  return text;
}

std::string mode_lines(const CollectiveOptions& o) {
  std::string text;
  if (o.blocking == Blocking::kWaitAndBarrier)
    text += "# Blocking Enabled: wait and barrier after each inner iteration (-m) \n";
  if (o.blocking == Blocking::kWait) text += "# Blocking Enabled: wait after each inner iteration (-m), no barrier \n";
  if (o.blocking == Blocking::kWaitBarrierOutside)
    text += "# Blocking Enabled: wait and barrier after each outer iteration (-n); time excludes barrier \n";
  if (o.per_iteration) {
    text += "# Per-Iteration Report: host clock timing; i_* uses max over process rows";
    if (o.per_iteration_skip > 0) text += fmt::format("; summary skips first {} iterations", o.per_iteration_skip);
    text += " \n";
  }
  return text;
}

std::string device_lines(const CollectiveRun& run) {
  std::string text = "# Using devices\n";
  int rank = 0;
  for (const RankFacts& facts : run.ranks) {
    text += fmt::format("#  Rank {:2} Group  0 Pid {:6} on {:>10} device {:2} [{}] {}\n", rank++, facts.pid,
                        printable(facts.host), facts.device, facts.bus, printable(facts.device_name));
  }
  return text;
}

std::string column_titles(const CollectiveOptions& o) {
  const std::string_view time = o.report_cpu_time ? "cputime" : "time";
  const std::string stamp = o.report_timestamps ? fmt::format("{:>19}", "timestamp") : "";
  const std::string stamp_form = o.report_timestamps ? fmt::format("{:>19}", "%Y-%m-%d %H:%M:%S") : "";
  const std::string_view extra = "  {:>7}  {:>7}  {:>7}  {:>7}";
  const auto group = [&](std::string_view a, std::string_view b, std::string_view c, std::string_view d,
                         const std::array<std::string_view, 4>& iterations) {
    std::string text = fmt::format("  {:>7}  {:>6}  {:>6}  {:>6}", a, b, c, d);
    if (o.per_iteration)
      text += fmt::format(fmt::runtime(extra), iterations[0], iterations[1], iterations[2], iterations[3]);
    return text;
  };
  const auto lead = [](std::string_view size, std::string_view count, std::string_view type, std::string_view op,
                       std::string_view root) {
    return fmt::format("# {:>10}  {:>12}  {:>8}  {:>6}  {:>6}", size, count, type, op, root);
  };
  std::string text = lead("", "", "", "", "");
  text += o.per_iteration ? "              out-of-place (+ per-iteration)                                in-place (+ "
                            "per-iteration)\n"
                          : "           out-of-place                       in-place          \n";
  const std::string names = group(time, "algbw", "busbw", "#wrong", {"i_min", "i_max", "i_p99", "i_cv%"});
  const std::string units = group("(us)", "(GB/s)", "(GB/s)", "", {"(us)", "(us)", "(us)", "(%)"});
  text += lead("size", "count", "type", "redop", "root") + names + names + " " + stamp + "\n";
  text += lead("(B)", "(elements)", "", "", "") + units + units + " " + stamp_form + "\n";
  return text;
}

std::string placement_columns(const CollectiveOptions& o, const PlacementResult& result) {
  std::string text = fmt::format("  {}  {}  {}", fit_number(o.report_cpu_time ? result.cpu_time : result.time, 7),
                                 fit_number(result.algorithm_bandwidth, 6), fit_number(result.bus_bandwidth, 6));
  text += result.wrong ? fmt::format("  {:6g}", static_cast<double>(*result.wrong)) : "    N/A";
  if (o.per_iteration) {
    text += fmt::format("  {}  {}  {}  {}", fit_number(result.stats.min, 7), fit_number(result.stats.max, 7),
                        fit_number(result.stats.p99, 7), fit_number(result.stats.variation_percent(), 7));
  }
  return text;
}

}  // namespace

std::string fit_number(double value, int width) {
  for (const int digits : {2, 1, 0}) {
    std::string text = fmt::format("{:{}.{}f}", value, width, digits);
    if (text.size() <= static_cast<std::size_t>(width)) return text;
  }
  return fmt::format("{:{}.{}e}", value, width, width >= 7 ? 1 : 0).substr(0, static_cast<std::size_t>(width));
}

std::string table_head(const CollectiveRun& run) {
  std::string text = first_lines(run) + mode_lines(run.options) + "#\n" + device_lines(run);
  text += fmt::format("#\n# Transport: {}\n", printable(run.transport, 2000));
  for (const std::string& note : run.options.notes) text += fmt::format("# Note: {}\n", printable(note, 500));
  if (run.reduced_to) text += fmt::format("#\n# Reducing maxBytes to {} due to memory limitation\n", *run.reduced_to);
  return text + "#\n" + column_titles(run.options);
}

std::string table_row(const CollectiveRun& run, const CollectiveRow& row) {
  std::string text = fmt::format("{:12}  {:12}  {:>8}  {:>6}  {:6}", row.size, row.count, row.type, row.op, row.root);
  text += placement_columns(run.options, row.out_of_place) + placement_columns(run.options, row.in_place);
  if (run.options.report_timestamps) text += fmt::format("{:>21}", row.time);
  return text + "\n";
}

std::string table_foot(const CollectiveRun& run) {
  const std::int64_t wrong = run.wrong();
  const double mean = run.mean_bus_bandwidth();
  std::string evaluated;
  if (const auto wanted = run.options.bus_bandwidth_wanted) evaluated = mean < *wanted * 0.9 ? "FAILED" : "OK";
  if (run.rows.empty() && run.failure) return fmt::format("# error: {}\n", printable(run.failure->message, 500));
  std::string text = fmt::format("# {:<20} : {} {}\n", "Out of bounds values", wrong, wrong ? "FAILED" : "OK");
  text += fmt::format("# {:<20} : {:g} {}\n", "Avg bus bandwidth", mean, evaluated);
  text += fmt::format("#\n# Collective test concluded: {}\n#\n", traits_of(run.options.kind).program);
  return text + (run.failure ? fmt::format("# error: {}\n", printable(run.failure->message, 500)) : "\n");
}

}  // namespace yoke::bench

#include "yoke/bench/perf_files.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>

#include "yoke/base/files.h"
#include "yoke/bench/shape.h"
#include "yoke/report/table.h"

namespace yoke::bench {
namespace {

Document text(std::string_view value) { return Document::string(std::string(value)); }
Document number(std::int64_t value) { return Document::number(value); }
Document number(double value) { return Document::number(value); }
Document word(bool value) { return text(value ? "true" : "false"); }  // booleans are words in this form

Document numbers(const std::vector<double>& values) {
  Document list = Document::list();
  for (const double value : values) list.items.push_back(number(value));
  return list;
}

Document config(const CollectiveRun& run) {
  const CollectiveOptions& o = run.options;
  Document devices = Document::list();
  std::int64_t rank = 0;
  for (const RankFacts& facts : run.ranks) {
    devices.items.push_back(Document::map({{"rank", number(rank++)},
                                           {"group", number(std::int64_t{0})},
                                           {"pid", number(std::int64_t{facts.pid})},
                                           {"hostname", text(facts.host)},
                                           {"device", number(std::int64_t{facts.device})},
                                           {"device_hex", text(facts.bus)},
                                           {"device_info", text(facts.device_name)}}));
  }
  Document map = Document::map({{"nthreads", number(std::int64_t{o.threads})},
                                {"ngpus", number(std::int64_t{o.gpus})},
                                {"minimum_bytes", number(o.size_min.value)},
                                {"maximum_bytes", number(o.size_max.value)}});
  if (o.factor > 1) {
    map.add("step_factor", number(std::int64_t{o.factor}));
  } else {
    map.add("step_bytes", number(o.step.value));
  }
  map.add("warmup_iters", number(std::int64_t{o.warmup_iterations}));
  map.add("iterations", number(std::int64_t{o.iterations}));
  map.add("aggregated_iterations", number(std::int64_t{o.aggregate}));
  map.add("validation", number(std::int64_t{o.checks}));
  map.add("graph", number(std::int64_t{0}));
  map.add("blocking_collectives", word(o.blocking != Blocking::kNone));
  map.add("per_iter_timing", word(o.per_iteration));
  map.add("per_iter_skip", number(std::int64_t{o.per_iteration_skip}));
  map.add("parallel_init", word(false));
  map.add("devices", std::move(devices));
  return map;
}

Document placement(const CollectiveOptions& o, const PlacementResult& result) {
  return Document::map(
      {{o.report_cpu_time ? "cpu_time" : "time", number(o.report_cpu_time ? result.cpu_time : result.time)},
       {"alg_bw", number(result.algorithm_bandwidth)},
       {"bus_bw", number(result.bus_bandwidth)},
       {"nwrong", result.wrong ? number(static_cast<double>(*result.wrong)) : Document::null()}});
}

Document per_iteration(const CollectiveOptions& o, const PlacementResult& result) {
  std::vector<double> slowest(static_cast<std::size_t>(o.iterations), 0);
  Document by_rank = Document::list();
  for (const std::vector<double>& times : result.iterations) {
    by_rank.items.push_back(numbers(times));
    for (std::size_t i = 0; i < std::min(times.size(), slowest.size()); ++i)
      slowest[i] = std::max(slowest[i], times[i]);
  }
  const SampleStats& stats = result.stats;
  Document map = Document::map({{"skipped_iterations", number(std::int64_t{o.per_iteration_skip})},
                                {"min_us", number(stats.min)},
                                {"max_us", number(stats.max)},
                                {"avg_us", number(stats.mean)},
                                {"p50_us", number(stats.p50)},
                                {"p95_us", number(stats.p95)},
                                {"p99_us", number(stats.p99)},
                                {"stdev_us", number(stats.deviation)},
                                {"cv_pct", number(stats.variation_percent())},
                                {"times_us", numbers(slowest)}});
  if (result.iterations.size() > 1) map.add("per_process_max_times_us", std::move(by_rank));
  return map;
}

Document result_row(const CollectiveOptions& o, const CollectiveRow& row) {
  Document map = Document::map({{"size", number(row.size)},
                                {"count", number(row.count)},
                                {"type", text(row.type)},
                                {"redop", text(row.op)},
                                {"root", text(fmt::format("{:6}", row.root))}});
  map.add("out_of_place", placement(o, row.out_of_place));
  if (o.per_iteration) map.add("out_of_place_per_iter", per_iteration(o, row.out_of_place));
  map.add("in_place", placement(o, row.in_place));
  if (o.per_iteration) map.add("in_place_per_iter", per_iteration(o, row.in_place));
  map.add("actual_iterations", number(std::int64_t{o.iterations}));
  map.add("experiment_name", text(""));
  return map;
}

}  // namespace

Document perf_json(const CollectiveRun& run, const std::vector<std::string>& arguments) {
  Document results = Document::list();
  for (const CollectiveRow& row : run.rows) results.items.push_back(result_row(run.options, row));
  Document args = Document::list();
  for (const std::string& argument : arguments) args.items.push_back(text(argument));
  Document errors = Document::list();
  if (run.failure) errors.items.push_back(text(run.failure->message));
  const auto wanted = run.options.bus_bandwidth_wanted;
  const double mean = run.mean_bus_bandwidth();
  return Document::map(
      {{"version", number(std::int64_t{3})},
       {"start_time", text(run.started)},
       {"args", std::move(args)},
       {"env", Document::list()},
       {"nccl_version", number(std::int64_t{0})},
       {"config", config(run)},
       {"results", std::move(results)},
       {"out_of_bounds", Document::map({{"count", number(run.wrong())}, {"okay", word(run.wrong() == 0)}})},
       {"average_bus_bandwidth", Document::map({{"bandwidth", number(mean)},
                                                {"okay", wanted ? word(mean >= *wanted * 0.9) : text("unchecked")}})},
       {"errors", std::move(errors)},
       {"end_time", text(run.ended)}});
}

std::string perf_csv(const CollectiveRun& run) {
  report::Table table;
  for (const std::string_view header :
       {"size", "count", "type", "redop", "root", "placement", "time_us", "algbw_GBps", "busbw_GBps", "wrong", "p50_us",
        "p95_us", "p99_us", "max_us", "last_rank", "late_us"})
    table.columns.push_back({.header = std::string(header)});
  const auto plain = [](double value) { return fmt::format("{:.6g}", value); };
  for (const CollectiveRow& row : run.rows) {
    for (const bool in_place : {false, true}) {
      const PlacementResult& result = in_place ? row.in_place : row.out_of_place;
      table.rows.push_back({fmt::format("{}", row.size), fmt::format("{}", row.count), row.type, row.op,
                            fmt::format("{}", row.root), in_place ? "in-place" : "out-of-place", plain(result.time),
                            plain(result.algorithm_bandwidth), plain(result.bus_bandwidth),
                            result.wrong ? fmt::format("{}", *result.wrong) : "", plain(result.stats.p50),
                            plain(result.stats.p95), plain(result.stats.p99), plain(result.stats.max),
                            fmt::format("{}", result.straggler.rank), plain(result.straggler.late)});
    }
  }
  return report::render_csv(table);
}

std::filesystem::path write_new_file(const std::filesystem::path& file, const std::string& content) {
  std::filesystem::path name = file;
  for (int attempt = 0;; ++attempt) {
    const UniqueFd fd(open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
    if (fd) {
      write_all(fd, content, name);
      return name;
    }
    if (errno != EEXIST || attempt == 10'000)
      throw system_error(errno, fmt::format("cannot write {}", name.native()), "name another file");
    name = fmt::format("{}.{}", file.native(), attempt);
  }
}

}  // namespace yoke::bench

#include "yoke/bench/perf_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "yoke/base/text.h"
#include "yoke/bench/sample_run_testing.h"
#include "yoke/bench/verdict.h"

namespace yoke::bench {
namespace {

using testing::HasSubstr;

// Lines of the table but those that only yoke has.
std::string without_ours(const std::string& text) {
  std::string kept;
  for (const std::string& line : split(text, '\n')) {
    if (!line.starts_with("# yoke") && !line.starts_with("# Transport")) kept += line + "\n";
  }
  kept.pop_back();
  return kept;
}

// As nccl-tests 2.19.6 prints it, with the blanks at the ends of lines.
TEST(PerfTable, IsTheTableOfNcclTestsByteForByte) {
  const CollectiveRun run = sample_run();
  EXPECT_EQ(
      without_ours(table_head(run)),
      "# Collective test starting: all_reduce_perf\n"
      "# nThread 1 nGpus 1 minBytes 16384 maxBytes 16384 step: 2(factor) warmup iters: 1 iters: 20 agg iters: 1 "
      "validation: 1 graph: 0 unalign: 0\n"
      "#\n"
      "# Using devices\n"
      "#  Rank  0 Group  0 Pid 1666603 on spark-d708 device  0 [000f:01:00] NVIDIA GB10\n"
      "#  Rank  1 Group  0 Pid 1669515 on spark-dbf4 device  0 [000f:01:00] NVIDIA GB10\n"
      "#\n"
      "#\n"
      "#                                                              out-of-place                       in-place  "
      "        \n"
      "#       size         count      type   redop    root     time   algbw   busbw  #wrong     time   algbw   "
      "busbw  #wrong \n"
      "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)             (us)  (GB/s)  "
      "(GB/s)         \n");
  EXPECT_EQ(table_row(run, run.rows[0]),
            "       16384          4096     float     sum      -1    31.67    0.52    0.52       0    30.75    0.53    "
            "0.53       0\n");
  EXPECT_EQ(table_foot(run),
            "# Out of bounds values : 0 OK\n"
            "# Avg bus bandwidth    : 0.525 \n"
            "#\n"
            "# Collective test concluded: all_reduce_perf\n"
            "#\n"
            "\n");
}

TEST(PerfTable, OptionsChangeColumnsAsInNcclTests) {
  CollectiveRun run = sample_run();
  run.options.report_timestamps = true;
  run.options.report_cpu_time = true;
  run.options.factor = 1;
  run.rows[0].in_place.wrong.reset();
  run.rows[0].out_of_place.cpu_time = 1.5;
  EXPECT_THAT(table_head(run), HasSubstr("step: 1048576(bytes)"));
  EXPECT_THAT(table_head(run), HasSubstr("  cputime   algbw   busbw  #wrong           timestamp\n"));
  EXPECT_EQ(table_row(run, run.rows[0]),
            "       16384          4096     float     sum      -1     1.50    0.52    0.52       0     0.00    0.53    "
            "0.53    N/A  2026-11-15 09:30:00\n");
  run.options = {.per_iteration = true, .per_iteration_skip = 1};
  EXPECT_THAT(table_head(run), HasSubstr("i_min    i_max    i_p99    i_cv%     time"));
  EXPECT_THAT(table_head(run), HasSubstr("; summary skips first 1 iterations \n"));
  EXPECT_THAT(table_row(run, run.rows[0]), HasSubstr("       0    31.67    33.67    33.67     3.06    30.75"));
}

TEST(PerfTable, NumbersFitTheirColumns) {
  EXPECT_EQ(fit_number(31.674, 7), "  31.67");
  EXPECT_EQ(fit_number(12345.678, 7), "12345.7");
  EXPECT_EQ(fit_number(1234567.8, 7), "1234568");
  EXPECT_EQ(fit_number(12345678.0, 7), "1.2e+07");
  EXPECT_EQ(fit_number(1234.5, 6), "1234.5");
  EXPECT_EQ(fit_number(12345678.0, 6), " 1e+07");
  EXPECT_EQ(fit_number(0, 6), "  0.00");
}

TEST(PerfTable, FootReportsWrongValuesSlownessAndErrors) {
  CollectiveRun run = sample_run();
  run.rows[0].in_place.wrong = 3;
  run.options.bus_bandwidth_wanted = 10;
  run.failure = Failure{.code = "timeout", .message = "rank 1 on spark-2 did not come", .hint = ""};
  EXPECT_EQ(table_foot(run),
            "# Out of bounds values : 3 FAILED\n"
            "# Avg bus bandwidth    : 0.525 FAILED\n"
            "#\n"
            "# Collective test concluded: all_reduce_perf\n"
            "#\n"
            "# error: rank 1 on spark-2 did not come\n");
  EXPECT_FALSE(run.passed());
  run = sample_run();
  run.options.bus_bandwidth_wanted = 0.55;  // a tenth below still passes
  EXPECT_TRUE(run.passed());
  EXPECT_THAT(table_foot(run), HasSubstr(": 0.525 OK\n"));
}

TEST(PerfTable, DetailsAreCommentsOnly) {
  CollectiveRun run = sample_run();
  run.baseline = "mpi";
  run.rows[0].baseline = BaselineResult{.ours = 10, .theirs = 20, .wrong = 0};
  run.options.limit = LinkLimit{.rail_rate = {2e9}, .rails = 2, .source = "the cluster file"};
  const std::string details = table_details(run);
  for (const std::string& line : split(details, '\n')) EXPECT_TRUE(line.empty() || line.starts_with('#')) << line;
  EXPECT_THAT(details, HasSubstr("rank 1 on spark-dbf4 comes 12 us late"));
  EXPECT_THAT(details, HasSubstr("  10.00    20.00     0.50       0\n"));
  EXPECT_THAT(details, HasSubstr("# Verdict: best bus bandwidth 0.53 GB/s is 106% of the link's 0.5 GB/s (2 x 2 Gb/s"));
}

TEST(PerfTable, NotesAndTheMemoryGuardStandOnTop) {
  CollectiveRun run = sample_run();
  run.options.notes = {"-G has no meaning"};
  run.reduced_to = 1000;
  EXPECT_THAT(table_head(run), HasSubstr("# Note: -G has no meaning\n"));
  EXPECT_THAT(table_head(run), HasSubstr("#\n# Reducing maxBytes to 1000 due to memory limitation\n"));
}

TEST(Verdict, GradesByTheFractionOfTheLimit) {
  using Grade = LinkVerdict::Grade;
  CollectiveRun run = sample_run();
  run.rows[0].size = 4 << 20;
  EXPECT_FALSE(evaluate_link(run).has_value()) << "no limit is known";
  const auto grade_at = [&](double limit_gb) {
    run.options.limit = LinkLimit{.rail_rate = {limit_gb * 8e9}, .source = "test"};
    return evaluate_link(run)->grade;
  };
  EXPECT_EQ(grade_at(0.54), Grade::kGood);
  EXPECT_EQ(grade_at(0.65), Grade::kFair);
  EXPECT_EQ(grade_at(2), Grade::kSlow);
  EXPECT_EQ(grade_at(0.4), Grade::kAboveLimit);
  run.rows[0].size = 16384;
  EXPECT_EQ(grade_at(0.4), Grade::kGood) << "what lies in buffers has not crossed the link";
  EXPECT_THAT(evaluate_link(run)->text, HasSubstr("small messages fit into buffers"));
  EXPECT_EQ(grade_at(2), Grade::kSlow);
  EXPECT_THAT(evaluate_link(run)->text, HasSubstr("too small to evaluate the link: try -e 64M"));
}

// In a lab 512 KiB gave 107% of the link and 4 MiB 67%: only the latter had crossed it.
TEST(Verdict, LongRowsCountAndElseTheLongest) {
  CollectiveRun run = sample_run();
  run.options.limit = LinkLimit{.rail_rate = {8e9}, .source = "test"};
  run.rows.resize(3, run.rows[0]);
  const auto set = [&](std::size_t row, std::int64_t size, double bandwidth) {
    run.rows[row].size = size;
    run.rows[row].out_of_place.bus_bandwidth = run.rows[row].in_place.bus_bandwidth = bandwidth;
  };
  set(0, 512 << 10, 1.07);
  set(1, 4 << 20, 0.67);
  set(2, 16 << 20, 0.65);
  EXPECT_DOUBLE_EQ(evaluate_link(run)->best, 0.67);
  EXPECT_EQ(evaluate_link(run)->grade, LinkVerdict::Grade::kSlow);
  run.rows.resize(1);
  EXPECT_DOUBLE_EQ(evaluate_link(run)->best, 1.07);
  set(0, (4 << 20) - 4, 0.9);
  run.rows.insert(run.rows.begin(), run.rows[0]);
  set(0, 64 << 10, 1.2);
  EXPECT_DOUBLE_EQ(evaluate_link(run)->best, 0.9) << "the longest row counts, where none is long";
}

TEST(Verdict, NobodyIsLateByAMoment) {
  CollectiveRun run = sample_run();
  PlacementResult& result = run.rows[0].out_of_place;
  result.straggler.late = 4.9;
  EXPECT_EQ(describe_straggler(run, result), "together");
  result.straggler.late = 50;
  result.time = 501;
  EXPECT_EQ(describe_straggler(run, result), "together") << "below a tenth of the time";
}

}  // namespace
}  // namespace yoke::bench

#include "yoke/bench/perf_files.h"

#include <gtest/gtest.h>

#include "yoke/base/error.h"
#include "yoke/base/error_testing.h"
#include "yoke/base/files.h"
#include "yoke/base/json.h"
#include "yoke/bench/sample_run_testing.h"

namespace yoke::bench {
namespace {

TEST(PerfJson, HasTheFieldsOfVersion3WithItsQuirks) {
  CollectiveRun run = sample_run();
  run.options.iterations = 2;
  run.options.per_iteration = true;
  run.rows[0].in_place.wrong.reset();
  const Document json = parse_json(print_json(perf_json(run, {"yoke", "bench"})), "json");
  EXPECT_EQ(json.find("version")->text, "3");
  EXPECT_TRUE(json.find("env")->items.empty()) << "the environment holds secrets";
  EXPECT_EQ(json.find("config")->find("parallel_init")->text, "false");
  EXPECT_EQ(json.find("config")->find("parallel_init")->kind, Document::Kind::kText);
  EXPECT_EQ(json.find("config")->find("devices")->items.at(1).find("hostname")->text, "spark-dbf4");
  EXPECT_NE(json.find("config")->find("step_factor"), nullptr);
  const Document& row = json.find("results")->items.at(0);
  EXPECT_EQ(row.find("root")->text, "    -1");
  EXPECT_EQ(row.find("out_of_place")->find("time")->text, "31.67");
  EXPECT_EQ(row.find("in_place")->find("nwrong")->kind, Document::Kind::kNull);
  const Document& times = *row.find("out_of_place_per_iter");
  EXPECT_EQ(times.find("per_process_max_times_us")->items.size(), 2U);
  EXPECT_EQ(times.find("times_us")->items.at(1).text, "33.67") << "the slowest of both";
  EXPECT_EQ(json.find("average_bus_bandwidth")->find("okay")->text, "unchecked");
  EXPECT_TRUE(json.find("errors")->items.empty());
}

TEST(PerfJson, RunsSurviveTheWayToAnotherProcess) {
  CollectiveRun run = sample_run();
  run.options.limit = LinkLimit{.rail_rate = {2e9}, .rails = 2, .source = "x"};
  run.options.root = -1;
  run.failure = Failure{.code = "timeout", .message = "m", .hint = "h"};
  const Document once = to_json(run);
  const CollectiveRun back = from_json<CollectiveRun>(parse_json(print_json(once), "run"));
  EXPECT_EQ(print_json(to_json(back)), print_json(once));
  EXPECT_EQ(to_error(*back.failure).code(), ErrorCode::kTimeout);
}

TEST(PerfCsv, HasOneLineForEachPlacement) {
  EXPECT_EQ(perf_csv(sample_run()),
            "size,count,type,redop,root,placement,time_us,algbw_GBps,busbw_GBps,wrong,p50_us,p95_us,p99_us,max_us,"
            "last_rank,late_us\n"
            "16384,4096,float,sum,-1,out-of-place,31.67,0.52,0.52,0,31.67,33.67,33.67,33.67,1,12\n"
            "16384,4096,float,sum,-1,in-place,30.75,0.53,0.53,0,30.75,32.75,32.75,32.75,1,12\n");
}

TEST(PerfFiles, NeverOverwrite) {
  const ScratchDir scratch;
  const auto file = scratch.path() / "out.json";
  EXPECT_EQ(write_new_file(file, "a"), file);
  EXPECT_EQ(write_new_file(file, "b").filename(), "out.json.0");
  EXPECT_EQ(write_new_file(file, "c").filename(), "out.json.1");
  EXPECT_EQ(read_file(file), "a");
  EXPECT_ERROR(write_new_file(scratch.path() / "no" / "folder.json", "x"), ErrorCode::kNotFound,
               "no/folder.json: No such file");
}

TEST(SampleStats, PercentilesAreOfTheNearestRank) {
  std::vector<double> samples;
  for (int i = 100; i >= 1; --i) samples.push_back(i);
  const SampleStats stats = summarize(samples);
  EXPECT_EQ(stats.min, 1);
  EXPECT_EQ(stats.p50, 50);
  EXPECT_EQ(stats.p95, 95);
  EXPECT_EQ(stats.p99, 99);
  EXPECT_EQ(stats.max, 100);
  EXPECT_DOUBLE_EQ(stats.mean, 50.5);
  EXPECT_NEAR(stats.deviation, 28.866, 0.001);
  const double one[] = {3};
  EXPECT_EQ(summarize(one).p99, 3);
  EXPECT_EQ(summarize({}).max, 0);
}

}  // namespace
}  // namespace yoke::bench

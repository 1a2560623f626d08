#include "yoke/bench/history.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>

#include <thread>

#include "yoke/base/error.h"
#include "yoke/base/error_testing.h"
#include "yoke/base/files.h"
#include "yoke/bench/compare.h"
#include "yoke/bench/report_page.h"
#include "yoke/bench/sample_run_testing.h"
#include "yoke/report/html.h"
#include "yoke/report/well_formed_testing.h"

namespace yoke::bench {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

struct HistoryFile : testing::Test {
  ScratchDir scratch;
  fs::path file = scratch.path() / "history.sqlite";
  std::vector<std::string> names() const {
    std::vector<std::string> found;
    for (const auto& entry : fs::directory_iterator(scratch.path())) found.push_back(entry.path().filename());
    return found;
  }
};

TEST_F(HistoryFile, KeepsRunsWithTheirRows) {
  RunRecord record = record_of(sample_run());
  EXPECT_EQ(record.benchmark, "all-reduce");
  EXPECT_EQ(record.rows.size(), 2U);
  History history(file);
  EXPECT_TRUE(history.recent(5).empty());
  EXPECT_EQ(history.add(record), 1);
  record.summary = "it's \"quoted\"; DROP TABLE runs; \xc3\xa9";
  EXPECT_EQ(History(file).add(record), 2);
  const std::vector<RunRecord> recent = history.recent(5);
  ASSERT_EQ(recent.size(), 2U);
  EXPECT_EQ(recent[0].id, 2);
  EXPECT_EQ(recent[0].summary, record.summary);
  EXPECT_EQ(recent[0].rows, record.rows);
  EXPECT_EQ(recent[0].host, record.host);
  EXPECT_EQ(recent[0].settings, record.settings);
  EXPECT_EQ(history.recent(1).size(), 1U);
}

TEST_F(HistoryFile, KeepsWhatThePlanPredicted) {
  RunRecord record = record_of(sample_run());
  record.rows[0].predicted = 12.5;
  History(file).add(record);
  EXPECT_EQ(History(file).find("last").rows, record.rows);
  EXPECT_EQ(History(file).find("last").rows[1].predicted, std::nullopt);
}

// As yoke wrote it before rows had a prediction.
TEST_F(HistoryFile, TakesOverAnOlderFile) {
  { History(file).add(record_of(sample_run())); }
  sqlite3* database = nullptr;
  ASSERT_EQ(sqlite3_open(file.c_str(), &database), SQLITE_OK);
  EXPECT_EQ(sqlite3_exec(database, "ALTER TABLE rows DROP COLUMN predicted; PRAGMA user_version = 1", nullptr, nullptr,
                         nullptr),
            SQLITE_OK)
      << sqlite3_errmsg(database);
  sqlite3_close(database);
  RunRecord record = record_of(sample_run());
  record.rows[0].predicted = 3;
  History history(file);
  EXPECT_EQ(history.set_aside(), std::nullopt);
  history.add(record);
  const std::vector<RunRecord> recent = history.recent(5);
  ASSERT_EQ(recent.size(), 2U);
  EXPECT_EQ(recent[0].rows[0].predicted, 3);
  EXPECT_EQ(recent[1].rows[0].predicted, std::nullopt);
}

TEST_F(HistoryFile, FindsRunsByNumberAndFromTheEnd) {
  History history(file);
  for (int i = 0; i < 3; ++i) history.add(record_of(sample_run()));
  EXPECT_EQ(history.find("last").id, 3);
  EXPECT_EQ(history.find("last-2").id, 1);
  EXPECT_EQ(history.find("2").id, 2);
  for (const char* name : {"4", "last-3", "0"}) {
    const auto found = try_to([&] { return history.find(name); });
    ASSERT_FALSE(found) << name;
    EXPECT_EQ(found.error().code(), ErrorCode::kNotFound);
  }
  for (const char* name : {"", "first", "last-", "last-x", "-1", "1x", "999999999999999999999"}) {
    const auto found = try_to([&] { return history.find(name); });
    ASSERT_FALSE(found) << name;
    EXPECT_EQ(found.error().code(), ErrorCode::kUsage) << name;
  }
}

TEST_F(HistoryFile, ManyWritersLoseNothing) {
  std::vector<std::jthread> writers;
  for (int w = 0; w < 4; ++w) {
    writers.emplace_back([&] {
      for (int i = 0; i < 5; ++i) EXPECT_TRUE(keep_record(record_of(sample_run()), file).id);
    });
  }
  writers.clear();
  EXPECT_EQ(History(file).recent(100).size(), 20U);
}

TEST_F(HistoryFile, ABrokenFileIsSetAsideAndSaid) {
  write_file_atomically(file, std::string(5000, 'x'));
  const StoredRun kept = keep_record(record_of(sample_run()), file);
  EXPECT_EQ(kept.id, 1);
  ASSERT_EQ(kept.warnings.size(), 1U);
  EXPECT_THAT(kept.warnings[0], HasSubstr("was broken; it is now history.sqlite.corrupt-20"));
  EXPECT_THAT(names(), testing::Contains(testing::StartsWith("history.sqlite.corrupt-20")));
  EXPECT_TRUE(keep_record(record_of(sample_run()), file).warnings.empty()) << "the next one is sound";
}

TEST_F(HistoryFile, ADamagedPageIsFoundToo) {
  RunRecord large = record_of(sample_run());
  large.rows.resize(2000, large.rows[0]);
  History(file).add(large);
  std::string content = read_file(file);
  for (std::size_t at = 4096; at < content.size(); ++at) content[at] = static_cast<char>(at * 31);
  write_file_atomically(file, content);
  EXPECT_TRUE(History(file).set_aside().has_value());
}

TEST_F(HistoryFile, AFileOfANewerYokeIsLeftAlone) {
  { History history(file); }
  std::string content = read_file(file);
  content[63] = 9;  // user_version, the last byte of the word at offset 60 of the header
  write_file_atomically(file, content);
  const auto opened = try_to([&] { History history(file); });
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code(), ErrorCode::kUnsupported);
  EXPECT_EQ(read_file(file), content);
}

TEST_F(HistoryFile, WhatCannotBeWrittenOnlyWarns) {
  for (const fs::path& bad : {scratch.path() / "no" / "folder", scratch.path(), fs::path("/dev/full")}) {
    const StoredRun kept = keep_record(record_of(sample_run()), bad);
    EXPECT_FALSE(kept.id) << bad;
    ASSERT_FALSE(kept.warnings.empty()) << bad;
    EXPECT_THAT(kept.warnings[0], HasSubstr("not in the history")) << bad;
  }
}

RecordRow row_of(double value, double low, double high, std::string unit = "us") {
  return {.name = "row", .size = 8, .value = value, .low = low, .high = high, .unit = std::move(unit)};
}
Change change_of(const RecordRow& a, const RecordRow& b) {
  RunRecord left = new_record("x", Document::map()), right = left;
  left.rows = {a};
  right.rows = {b};
  return compare_runs(left, right).rows.at(0).change;
}

TEST(PlainNumber, HasThreeDigitsAndNoExponentWherePeopleReadIt) {
  EXPECT_EQ(plain_number(0.0812), "0.0812");
  EXPECT_EQ(plain_number(41.87), "41.9");
  EXPECT_EQ(plain_number(1250), "1250");
  EXPECT_EQ(plain_number(12'196), "12196");
}

TEST(Compare, CallsAChangeOnlyBeyondNoise) {
  EXPECT_EQ(change_of(row_of(100, 98, 102), row_of(80, 78, 82)), Change::kFaster);
  EXPECT_EQ(change_of(row_of(80, 78, 82), row_of(100, 98, 102)), Change::kSlower);
  EXPECT_EQ(change_of(row_of(100, 70, 130), row_of(80, 78, 82)), Change::kSame) << "the spreads overlap";
  EXPECT_EQ(change_of(row_of(100, 100, 100), row_of(97, 97, 97)), Change::kSame) << "less than 5%";
  EXPECT_EQ(change_of(row_of(10, 9, 11, "GB/s"), row_of(20, 19, 21, "GB/s")), Change::kFaster);
}

TEST(Compare, ReportsWhatElseDiffers) {
  RunRecord a = record_of(sample_run()), b = a;
  b.commit = "other";
  b.settings = "{\"iterations\": 7}";
  b.rows.pop_back();
  const Comparison comparison = compare_runs(a, b);
  EXPECT_EQ(comparison.only_in_a.size(), 1U);
  EXPECT_THAT(comparison.differences, testing::Contains("iterations: 20 and 7"));
  EXPECT_THAT(comparison_text(a, b, comparison), HasSubstr("differs in commit"));
  EXPECT_THAT(comparison_text(a, b, comparison), HasSubstr("Of 1 rows 0 are faster and 0 slower"));
  EXPECT_DOUBLE_EQ(comparison.speed, 1);
}

TEST(RunRecord, SurvivesJson) {
  const RunRecord record = record_of(sample_run());
  const RunRecord read = from_json<RunRecord>(to_json(record));
  EXPECT_EQ(read.rows, record.rows);
  EXPECT_EQ(read.benchmark, record.benchmark);
  EXPECT_EQ(read.summary, record.summary);
  EXPECT_EQ(read.settings, record.settings);
  EXPECT_ERROR(from_json<RunRecord>(Document::map()), ErrorCode::kInvalid, "a run without 'time'");
}

TEST(ReportPage, ShowsBandwidthLimitVerdictAndTheTrendOfTheSameBenchmark) {
  CollectiveRun run = sample_run();
  run.options.limit = LinkLimit{.rail_rate = {2e9}, .rails = 2, .source = "the cluster file"};
  RunRecord older = record_of(run, "desk"), newer = record_of(run, "desk");
  newer.rows.push_back(newer.rows[0]);
  newer.rows.back().size *= 2;
  older.id = 1;
  newer.id = 2;
  const std::string html = report::render_html(report_page({newer, older}));
  EXPECT_NE(html.find("over time"), std::string::npos);
  EXPECT_NE(html.find("bus bandwidth"), std::string::npos);
  EXPECT_NE(html.find("of the limit"), std::string::npos);
  EXPECT_NE(html.find("<dt>verdict</dt>"), std::string::npos);
  EXPECT_NE(html.find("<dt>transport</dt>"), std::string::npos);
  EXPECT_NE(html.find("<dt>cluster</dt><dd>desk</dd>"), std::string::npos);
  const std::string chart = html.substr(html.find("all-reduce, run 2"));
  EXPECT_NE(chart.find("bus bandwidth (GB/s)"), std::string::npos) << "not the time, which rises on every machine";
  EXPECT_NE(chart.find("limit of the link"), std::string::npos);
  EXPECT_EQ(report::render_html(report_page({newer})).find("over time"), std::string::npos) << "one run is no trend";
}

TEST(ReportPage, ShowsTimesInUnitsThatPeopleReadAndFoldsLongTables) {
  RunRecord recovery = new_record("recovery", Document::map());
  recovery.rows = {row_of(41'870, 41'000, 43'000), row_of(96'300, 96'000, 97'000)};
  RunRecord products = new_record("matmul", Document::map());
  for (int i = 0; i < 5; ++i) {
    products.rows.push_back(row_of(100 + i, 99, 106, "GFLOP/s"));
    products.rows.push_back(row_of(300 + i, 299, 306, "GOP/s"));
  }
  const std::string html = report::render_html(report_page({recovery, products}));
  EXPECT_NE(html.find(">41.9 ms<"), std::string::npos);
  EXPECT_EQ(html.find("41870"), std::string::npos) << "microseconds on an axis";
  EXPECT_EQ(html.find("GFLOP/s, GOP/s"), std::string::npos) << "two units on one axis";
  EXPECT_NE(html.find("<summary>All 10 rows</summary>"), std::string::npos);
}

TEST(ReportPage, IsWellFormedWhateverARunHolds) {
  RunRecord sized = record_of(sample_run());
  sized.rows.push_back(sized.rows[0]);
  sized.rows.back().size *= 2;
  RunRecord bars = new_record("memory", Document::map());
  bars.host = "<script>alert(1)</script>";
  bars.rows = {{.name = "read", .value = 3, .low = 2, .high = 4, .unit = "GB/s"}};
  const RunRecord empty = new_record("all-reduce", Document::map());
  const std::string html = report::render_html(report_page({sized, bars, empty}));
  EXPECT_EQ(report::find_xml_error(html), std::nullopt);
  EXPECT_EQ(html.find("<script>"), std::string::npos);
  EXPECT_NE(html.find("<svg"), std::string::npos);
  EXPECT_NE(html.find("ended before its first row"), std::string::npos);
}

}  // namespace
}  // namespace yoke::bench

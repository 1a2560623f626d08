#include "yoke/bench/history.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <thread>

#include "yoke/base/error.h"
#include "yoke/base/files.h"
#include "yoke/bench/compare.h"
#include "yoke/bench/report_page.h"
#include "yoke/bench/sample_run_testing.h"
#include "yoke/report/html.h"
#include "yoke/report/well_formed_testing.h"

namespace yoke {
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
  const Kept kept = keep_record(record_of(sample_run()), file);
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
    const Kept kept = keep_record(record_of(sample_run()), bad);
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

TEST(Compare, CallsAChangeOnlyBeyondNoise) {
  EXPECT_EQ(change_of(row_of(100, 98, 102), row_of(80, 78, 82)), Change::kFaster);
  EXPECT_EQ(change_of(row_of(80, 78, 82), row_of(100, 98, 102)), Change::kSlower);
  EXPECT_EQ(change_of(row_of(100, 70, 130), row_of(80, 78, 82)), Change::kSame) << "the spreads overlap";
  EXPECT_EQ(change_of(row_of(100, 100, 100), row_of(97, 97, 97)), Change::kSame) << "less than 5%";
  EXPECT_EQ(change_of(row_of(10, 9, 11, "GB/s"), row_of(20, 19, 21, "GB/s")), Change::kFaster);
}

TEST(Compare, TellsWhatElseDiffers) {
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

TEST(ReportPage, IsWellFormedWhateverARunHolds) {
  RunRecord sized = record_of(sample_run());
  sized.rows.push_back(sized.rows[0]);
  sized.rows.back().size *= 2;
  RunRecord bars = new_record("memory", Document::map());
  bars.host = "<script>alert(1)</script>";
  bars.rows = {{.name = "read", .value = 3, .low = 2, .high = 4, .unit = "GB/s"}};
  const RunRecord empty = new_record("all-reduce", Document::map());
  const std::string html = render_html(report_page({sized, bars, empty}));
  EXPECT_EQ(find_xml_error(html), std::nullopt);
  EXPECT_EQ(html.find("<script>"), std::string::npos);
  EXPECT_NE(html.find("<svg"), std::string::npos);
  EXPECT_NE(html.find("ended before its first row"), std::string::npos);
}

}  // namespace
}  // namespace yoke

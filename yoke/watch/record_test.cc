#include "yoke/watch/record.h"

#include <gtest/gtest.h>

#include "yoke/base/error_testing.h"
#include "yoke/base/files.h"
#include "yoke/base/json.h"
#include "yoke/watch/record_reader.h"
#include "yoke/watch/sample_testing.h"

namespace yoke::watch {
namespace {

using namespace literals;

std::string recorded(int seconds) {
  RecordEncoder encoder(plan_of_two());
  std::string text = encoder.header();
  text += encoder.encode({.node = 0, .time = 1e9, .machine = machine_of_two()});
  for (int second = 0; second < seconds; ++second) {
    for (std::size_t node = 0; node < 2; ++node) {
      Sample sample = sample_at(second, second * 1'000'000LL, second);
      if (second % 7 == 3) sample.gpus.resize(1);  // comes and goes
      text += encoder.encode(observe(node, second, sample));
    }
  }
  return text;
}

struct WholeRecord {
  WatchPlan plan;
  std::vector<Observation> observations;
  std::size_t damaged = 0;
};
WholeRecord read_whole(RecordReader record) {
  WholeRecord whole{.plan = record.plan(), .observations = {}};
  while (auto observation = record.next()) whole.observations.push_back(*std::move(observation));
  whole.damaged = record.damaged();
  return whole;
}

TEST(Record, GivesBackWhatWentIn) {
  const WholeRecord record = read_whole({recorded(150), "x"});
  EXPECT_EQ(record.plan.cluster, plan_of_two().cluster);
  EXPECT_EQ(record.damaged, 0U);
  ASSERT_EQ(record.observations.size(), 301U);
  EXPECT_EQ(record.observations[0].machine, machine_of_two());
  for (int second = 0; second < 150; ++second) {
    Sample expected = sample_at(second, second * 1'000'000LL, second);
    if (second % 7 == 3) expected.gpus.resize(1);
    EXPECT_EQ(record.observations[static_cast<std::size_t>(1 + 2 * second)].sample, expected) << second;
  }
}

TEST(Record, IsSmall) {
  const std::string text = recorded(3600);
  // Two nodes for an hour; the goal is 5 MB a node.
  EXPECT_LT(text.size(), 2U * 5'000'000U);
}

TEST(Record, CutOffAnywhereGivesAllThatIsWhole) {
  const std::string text = recorded(20);
  const std::size_t header = text.find('\n') + 1;
  for (std::size_t size = header; size < text.size(); size += 97) {
    const WholeRecord record = read_whole({text.substr(0, size), "x"});
    const auto lines = static_cast<std::size_t>(std::count(text.begin(), text.begin() + static_cast<long>(size), '\n'));
    EXPECT_GE(record.observations.size() + 1, lines);
    EXPECT_LE(record.damaged, 1U);
  }
}

TEST(Record, ADamagedLineCostsSamplesOnlyUntilTheNextWholeOnes) {
  const std::string whole = recorded(130);
  for (std::size_t at = whole.find('\n') + 100; at < whole.size(); at += 5003) {
    std::string text = whole;
    text[at] = text[at] == '1' ? '2' : '1';
    const WholeRecord record = read_whole({text, "x"});
    EXPECT_LE(record.damaged, 2U);  // a line end that goes joins two
    EXPECT_GE(record.observations.size(), 261U - 2 * 31);
    for (const Observation& observation : record.observations) {
      if (!observation.sample) continue;
      const int second = static_cast<int>(observation.time - 1e9);
      Sample expected = sample_at(second, second * 1'000'000LL, second);
      if (second % 7 == 3) expected.gpus.resize(1);
      EXPECT_EQ(observation.sample, expected) << at;
    }
  }
}

TEST(Record, IsRefusedWhereItIsNone) {
  EXPECT_ERROR(RecordReader(std::string("hello\n"), "x"), ErrorCode::kInvalid, "no record");
  EXPECT_ERROR(RecordReader(std::filesystem::path("/dev/zero")), ErrorCode::kInvalid, "is no regular file");
  EXPECT_ERROR(RecordReader(std::string(), "x"), ErrorCode::kInvalid, "no record");
  const std::string other = record_line(0, parse_json(R"({"yoke_watch":99})", "x"));
  EXPECT_ERROR(RecordReader(other, "x"), ErrorCode::kUnsupported, "another version");
}

TEST(Record, NeverGrowsBeyondItsLimitAndKeepsTheNewest) {
  const ScratchDir scratch;
  const auto file = scratch.path() / "r.watch";
  RecordWriter writer(file, plan_of_two(), 1_MiB);
  writer.add({.node = 0, .time = 1e9, .machine = machine_of_two()});
  constexpr int kSeconds = 6000;
  for (int second = 0; second < kSeconds; ++second) {
    writer.add(observe(0, second, sample_at(second, second, second)));
    writer.add(observe(1, second, sample_at(second, second, second)));
  }
  EXPECT_LE(writer.size(), 1_MiB);
  EXPECT_LE(std::filesystem::file_size(file), 1U << 20U);
  const WholeRecord record = read_whole(RecordReader(file));
  ASSERT_GT(record.observations.size(), 1000U);
  EXPECT_EQ(record.observations.back().sample, sample_at(kSeconds - 1, kSeconds - 1, kSeconds - 1));
  EXPECT_LE(record.damaged, 2U);  // where the new lines end, and where the ones before them did
  EXPECT_TRUE(std::any_of(record.observations.begin(), record.observations.end(),
                          [](const Observation& observation) { return observation.machine.has_value(); }));
  for (std::size_t i = 1; i < record.observations.size(); ++i) {
    EXPECT_LE(record.observations[i - 1].time, record.observations[i].time);
  }
}

// A record of 256 MiB took 9 GB; a file without line ends its own size.
TEST(Record, OnlyPlacesOfLinesAreInMemory) {
  const ScratchDir scratch;
  const auto file = scratch.path() / "r.watch";
  write_file_atomically(file, recorded(3));
  std::filesystem::resize_file(file, std::uintmax_t{64} << 20);  // zeros, and no newline any more
  const WholeRecord record = read_whole(RecordReader(file));
  EXPECT_EQ(record.observations.size(), 7U);
  EXPECT_EQ(record.damaged, 1U);
  RecordReader read(recorded(3), "x");
  for (int i = 0; i < 7; ++i) EXPECT_TRUE(read.next());
  EXPECT_FALSE(read.next());
  EXPECT_FALSE(read.next());
}

TEST(Record, IsPlayedByItsTimes) {
  RecordSource at_once(RecordReader(recorded(100), "x"), 0);
  const double first = at_once.now();
  int observations = 0;
  while (at_once.next(Deadline::after({0}))) ++observations;
  EXPECT_EQ(observations, 201);
  EXPECT_TRUE(at_once.at_end());
  EXPECT_EQ(at_once.now() - first, 99);
  RecordSource slow(RecordReader(recorded(100), "x"), 1e-6);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(slow.next(Deadline::after({0}))) << "the machine and the first second";
  EXPECT_FALSE(slow.next(Deadline::after({0.01})));
  EXPECT_FALSE(slow.at_end());
}

TEST(Record, DifferencesAreApplied) {
  const Document before = parse_json(R"({"a":1,"b":{"c":[1,2],"d":"x"},"e":[{"f":1},{"f":2}],"g":3})", "x");
  const Document after = parse_json(R"({"a":1,"b":{"c":[1,2,3],"d":"y"},"e":[{"f":1},{"f":5,"h":6}]})", "x");
  Document copy = before;
  apply_difference(copy, difference(before, after));
  EXPECT_EQ(print_json(copy), print_json(after));
  EXPECT_TRUE(difference(after, after).fields.empty());
  Document number = Document::number(std::int64_t{1});
  EXPECT_ERROR(apply_difference(number, parse_json("{\"a\":1}", "x")), ErrorCode::kInvalid, "does not follow");
}

}  // namespace
}  // namespace yoke::watch

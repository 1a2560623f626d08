// What happens to a group of ranks under load when something breaks: each kind of fault is made for real in a lab of
// two nodes, must be named rightly and in time, and must leave nothing behind. YOKE_FAULT_ROUNDS says how often.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <thread>

#include "tests/lab_fixture.h"
#include "yoke/base/clock.h"
#include "yoke/base/text.h"

namespace yoke::tests {
namespace {

using namespace literals;
using testing::HasSubstr;

int rounds() {
  const char* given = std::getenv("YOKE_FAULT_ROUNDS");
  return given ? std::atoi(given) : 2;
}

// `yoke bench all-reduce` without end on both nodes.
class Load {
 public:
  Load(const TestLab& lab, const std::string& size)
      : process_({.argv = {YOKE_PROGRAM, "bench", "all-reduce", "-b", size, "-e", size, "-n", "5", "-w", "1", "-N", "0",
                           "--no-history"},
                  .environment = {{"NO_COLOR", "1"}},
                  .folder = lab.folder}) {}

  // Waits for rows of the table; false where the load ends first, or nothing comes for so long.
  bool sees_rows(int count, Seconds limit = 20_s) {
    const Deadline deadline = Deadline::after(limit);
    while (count > 0) {
      const auto line = process_.read_line(deadline);
      if (!line) return false;
      if (line->stream == OutputStream::kErr) errors_ += line->text + "\n";
      if (line->stream == OutputStream::kOut && line->text.find(" float ") != std::string::npos) --count;
    }
    return true;
  }
  // What it says on standard error, until it says this or the time is up.
  bool says(std::string_view text, Seconds limit) {
    const Deadline deadline = Deadline::after(limit);
    while (errors_.find(text) == std::string::npos) {
      const auto line = process_.read_line(deadline);
      if (!line) return false;
      if (line->stream == OutputStream::kErr) errors_ += line->text + "\n";
    }
    return true;
  }
  // How it ended; nothing where it goes on.
  std::optional<Outcome> ends(Seconds limit) {
    const Deadline deadline = Deadline::after(limit);
    while (const auto line = process_.read_line(deadline)) {
      if (line->stream == OutputStream::kErr) errors_ += line->text + "\n";
    }
    return process_.at_end() ? process_.wait(Deadline::after(5_s)) : std::nullopt;
  }
  const std::string& errors() const { return errors_; }

 private:
  Process process_;
  std::string errors_;
};

struct RankFault {
  const char* name;
  std::vector<std::string> command;  // of yoke, behind `lab`; {} stands for the lab's name
  const char* named;                 // what must be said
  Seconds limit;
  bool goes_on = false;
  bool needs_power = false;
  const char* size = "64K";
};

void PrintTo(const RankFault& fault, std::ostream* out) { *out << fault.name; }

class RankFaults : public testing::TestWithParam<RankFault> {
 protected:
  static Outcome make_fault(const TestLab& lab) {
    std::vector<std::string> arguments = {"lab"};
    for (const std::string& word : GetParam().command) arguments.push_back(word == "{}" ? lab.name : word);
    return lab.yoke(arguments);
  }
  static void expect_nothing_left(const TestLab& lab) {
    for (const char* node : {"1", "2"}) {
      std::string left;
      for (int i = 0; i < 30; ++i) {
        left = lab.exec(node, {"sh", "-c", "ps -eo pid,args | grep -E 'bench-ran[k]|yoke nod[e]'"}).out;
        if (left.empty()) break;
        std::this_thread::sleep_for(std::chrono::milliseconds(100));
      }
      EXPECT_EQ(left, "") << "on node " << node;
    }
  }
};

TEST_P(RankFaults, AreNamedInTimeAndLeaveNothing) {
  if (const auto why = why_no_labs()) GTEST_SKIP() << *why;
  const TestLab lab;
  for (int round = 0; round < rounds(); ++round) {
    SCOPED_TRACE(fmt::format("round {}", round));
    Load load(lab, GetParam().size);
    ASSERT_TRUE(load.sees_rows(3)) << load.errors();
    const Outcome made = make_fault(lab);
    ASSERT_EQ(made.exit_status, 0) << made.err;
    // From here on the fault is there. Under a load that fills the cores the command alone may take half a second.
    const Instant start = real_clock().now();
    const bool said = load.says(GetParam().named, 10_s);
    const Seconds took = to_seconds(real_clock().now() - start);
    ASSERT_TRUE(said) << load.errors();
    EXPECT_LE(took.value, GetParam().limit.value) << load.errors();
    fmt::print("{}: named after {:.2f} s: {}", GetParam().name, took.value, load.errors());
    if (GetParam().goes_on) {
      EXPECT_TRUE(load.sees_rows(5, 10_s)) << load.errors();
    } else {
      const auto outcome = load.ends(10_s);
      ASSERT_TRUE(outcome) << "it goes on: " << load.errors();
      EXPECT_NE(outcome->exit_status, 0);
    }
    if (round + 1 < rounds() || GetParam().needs_power) {
      const Outcome cleared = lab.yoke({"lab", "fault", "--name", lab.name, "clear"});
      EXPECT_EQ(cleared.exit_status, 0) << cleared.err;
    }
    if (!GetParam().goes_on) expect_nothing_left(lab);
  }
}

const std::vector<std::string> kExecOn2 = {"exec", "--name", "{}", "2", "--"};
std::vector<std::string> on_node_2(std::vector<std::string> command) {
  std::vector<std::string> words = kExecOn2;
  words.insert(words.end(), command.begin(), command.end());
  return words;
}

INSTANTIATE_TEST_SUITE_P(
    LabTiming, RankFaults,
    testing::Values(
        RankFault{"rank_killed", on_node_2({"pkill", "-KILL", "-f", "yoke rank bench"}),
                  "rank 1 on spark-2 was killed by signal 9", 2_s},
        RankFault{"rank_stopped", on_node_2({"pkill", "-STOP", "-f", "yoke rank bench"}),
                  "rank 1 on spark-2 is stopped", 2_s},
        RankFault{"one_rail_cut",
                  {"fault", "--name", "{}", "rail-down", "--node", "2", "--rail", "B"},
                  "rail B between spark-1 and spark-2 is cut",
                  2_s,
                  true},
        // Many frames are under way on both rails when one of them goes.
        RankFault{.name = "one_rail_cut_in_long_messages",
                  .command = {"fault", "--name", "{}", "rail-down", "--node", "2", "--rail", "B"},
                  .named = "rail B between spark-1 and spark-2 is cut",
                  .limit = 2_s,
                  .goes_on = true,
                  .size = "8M"},
        RankFault{"both_rails_cut",
                  {"fault", "--name", "{}", "cable-pulled", "--node", "2"},
                  "both rails between spark-1 and spark-2 are cut",
                  2_s},
        RankFault{
            "node_dead", {"fault", "--name", "{}", "power-off", "--node", "2"}, "spark-2 is dead", 5_s, false, true},
        RankFault{"channel_gone",
                  {"exec", "--name", "{}", "1", "--", "pkill", "-KILL", "-x", "ssh"},
                  "the channel to spark-2 has closed, though the node answers",
                  2_s}),
    [](const auto& test) { return std::string(test.param.name); });

}  // namespace
}  // namespace yoke::tests

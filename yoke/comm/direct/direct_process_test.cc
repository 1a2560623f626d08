// Ranks as processes of their own, killed and stopped, and the group built again. The other ranks are this very
// program, which runs the disabled test below.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <iostream>

#include "tests/emulation.h"
#include "yoke/base/error_testing.h"
#include "yoke/base/hash.h"
#include "yoke/base/json.h"
#include "yoke/base/process.h"
#include "yoke/comm/direct/group_testing.h"

namespace yoke::comm {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr Seconds kMakeTime{20};

// Sums of ones, until something goes wrong or `times` are done.
void sum_ones(Communicator& comm, int times, std::size_t count = 5000) {
  for (int i = 0; i < times; ++i) {
    std::vector<float> values(count, 1);
    all_reduce(comm, values.data(), values.size(), tensor::DType::kF32);
    if (values != std::vector<float>(count, static_cast<float>(comm.size())))
      throw Error(ErrorCode::kInternal, "a wrong sum");
  }
}

// A rank: tells its endpoints, reads memberships line by line, and sums in each until it fails or is told the next one.
TEST(DirectRank, DISABLED_Runs) {
  const auto listener = DirectListener::open(kTwoRails);
  const int rank = std::atoi(getenv("YOKE_TEST_RANK"));
  const spec::Membership self{.token = "-", .members = {{getenv("YOKE_TEST_NODE"), listener->endpoints()}}};
  std::cout << "\n@" << print_json(spec::to_json(self), JsonLayout::kOneLine) << std::endl;
  std::unique_ptr<Communicator> comm;
  for (std::string line; std::getline(std::cin, line);) {
    try {
      const spec::Membership membership = from_json<spec::Membership>(parse_json(line, "standard input"));
      const Deadline deadline = Deadline::after(kMakeTime);
      if (comm) {
        comm->rebuild(membership, deadline);
      } else {
        comm = make_direct(listener, membership, rank, {}, deadline);
      }
      std::cout << "\n@made" << std::endl;
      sum_ones(*comm, 1'000'000);
    } catch (const Error& error) {
      std::cout << "\n@" << error.message() << std::endl;
    }
  }
}

class RankProcess {
 public:
  RankProcess(int rank, const std::string& node)
      : process_({.argv = command(),
                  .environment = {{"YOKE_TEST_RANK", std::to_string(rank)}, {"YOKE_TEST_NODE", node}},
                  .input_mode = InputMode::kPipe}) {
    const spec::Membership self = from_json<spec::Membership>(parse_json(answer(), "a rank"));
    member_ = self.members[0];
  }
  const spec::Member& member() const { return member_; }
  void join(const spec::Membership& membership) {
    process_.write(print_json(spec::to_json(membership), JsonLayout::kOneLine) + "\n", Deadline::after({5}));
  }
  void signal(int number) { kill(process_.pid(), number); }
  std::string answer() {
    const Deadline deadline = Deadline::after({30});
    while (const auto line = process_.read_line(deadline)) {
      if (line->text.starts_with("@")) return line->text.substr(1);
    }
    return "no answer";
  }

 private:
  static std::vector<std::string> command() {
    std::vector<std::string> argv = tests::this_test_program();
    argv.insert(argv.end(), {"--gtest_filter=DirectRank.*", "--gtest_also_run_disabled_tests"});
    return argv;
  }

  Process process_;
  spec::Member member_;
};

// This test is rank 0 of a group with processes.
struct Job {
  explicit Job(const std::vector<std::string>& nodes) : listener(DirectListener::open(kTwoRails)) {
    membership.token = random_token_hex(16);
    membership.members.push_back({nodes[0], listener->endpoints()});
    for (std::size_t rank = 1; rank < nodes.size(); ++rank) {
      others.push_back(std::make_unique<RankProcess>(static_cast<int>(rank), nodes[rank]));
      membership.members.push_back(others.back()->member());
    }
    for (auto& other : others) other->join(membership);
    comm = make_direct(listener, membership, 0, {}, Deadline::after(kMakeTime));
    for (auto& other : others) EXPECT_EQ(other->answer(), "made");
  }
  void replace(std::size_t rank) {
    auto& other = others[rank - 1];
    other = std::make_unique<RankProcess>(static_cast<int>(rank), membership.members[rank].node);
    membership.members[rank] = other->member();
  }
  void rebuild() {
    ++membership.epoch;
    for (auto& other : others) other->join(membership);
    comm->rebuild(membership, Deadline::after(kMakeTime));
  }
  // What the group fails with while it sums, and how long after `fault` it does.
  std::pair<Error, double> failure_after(const std::function<void()>& fault) {
    std::optional<Instant> begin;
    try {
      for (int i = 0;; ++i) {
        sum_ones(*comm, 1);
        if (i == 50) {
          begin = real_clock().now();
          fault();
        }
      }
    } catch (const Error& error) {
      return {error, begin ? to_seconds(real_clock().now() - *begin).value : -1};
    }
  }

  std::shared_ptr<DirectListener> listener;
  std::vector<std::unique_ptr<RankProcess>> others;
  spec::Membership membership;
  std::unique_ptr<Communicator> comm;
};

TEST(DirectProcess, AKilledPeerIsNamedAtOnce) {
  Job job({"spark-1", "spark-2"});
  const auto [error, seconds] = job.failure_after([&] { job.others[0]->signal(SIGKILL); });
  EXPECT_EQ(error.code(), ErrorCode::kUnavailable);
  EXPECT_THAT(error.message(), AllOf(HasSubstr("rank 1 on spark-2 is gone: connection "), HasSubstr("on rail A"),
                                     HasSubstr("on rail B")));
  EXPECT_LT(seconds, 2) << "0.2 on a quiet machine";
}

TEST(DirectProcess, AKilledPeerOfTheSameNodeIsNamedAtOnce) {
  Job job({"spark-1", "spark-1"});
  const auto [error, seconds] = job.failure_after([&] { job.others[0]->signal(SIGKILL); });
  EXPECT_EQ(error.message(), "rank 1 on spark-1 is gone: its process has ended");
  EXPECT_LT(seconds, 2);
}

TEST(DirectProcess, AStoppedPeerIsNamedAfterTheSilenceLimit) {
  Job job({"spark-1", "spark-2", "spark-1"});
  const auto [error, seconds] = job.failure_after([&] { job.others[0]->signal(SIGSTOP); });
  EXPECT_EQ(error.code(), ErrorCode::kUnavailable);
  EXPECT_THAT(error.message(), HasSubstr("rank 1 on spark-2 is gone: no sign of life on rail A for "));
  EXPECT_LT(seconds, 4) << "1.5 on a quiet machine";
  EXPECT_THAT(job.others[1]->answer(), HasSubstr("rank 1 on spark-2 is gone"));
}

TEST(DirectProcess, TheGroupIsBuiltAgainAfterADeathUnderLoad) {
  Job job({"spark-1", "spark-2", "spark-2"});
  for (int round = 0; round < 2; ++round) {
    const auto [error, seconds] = job.failure_after([&] { job.others[0]->signal(SIGKILL); });
    EXPECT_THAT(error.message(), HasSubstr("rank 1 on spark-2 is gone"));
    EXPECT_THAT(job.others[1]->answer(), HasSubstr("rank 1 on spark-2 is gone"));
    job.replace(1);
    const Instant begin = real_clock().now();
    job.rebuild();
    sum_ones(*job.comm, 1);
    EXPECT_LT(to_seconds(real_clock().now() - begin).value, 5) << "1.5 on a quiet machine";
    for (auto& other : job.others) EXPECT_EQ(other->answer(), "made");
  }
  sum_ones(*job.comm, 100);
}

TEST(DirectProcess, ADeathDuringTheRebuildIsReportedAndTheNextRebuildWorks) {
  Job job({"spark-1", "spark-2", "spark-2"});
  job.failure_after([&] { job.others[0]->signal(SIGKILL); });
  EXPECT_THAT(job.others[1]->answer(), HasSubstr("is gone"));
  // The newcomer dies before it comes; the survivors' attempt ends in time, or is overtaken by the next epoch.
  job.replace(1);
  ++job.membership.epoch;
  job.others[1]->join(job.membership);
  job.others[0]->signal(SIGKILL);
  EXPECT_ERROR(job.comm->rebuild(job.membership, Deadline::after({0.5})), ErrorCode::kTimeout,
               "waited too long for rank 1 on spark-2");
  job.replace(1);
  ++job.membership.epoch;
  std::thread others([&] {
    job.others[0]->join(job.membership);
    EXPECT_THAT(job.others[1]->answer(), HasSubstr("the group has gone on to epoch 3"));
    job.others[1]->join(job.membership);
  });
  job.comm->rebuild(job.membership, Deadline::after(kMakeTime));
  others.join();
  sum_ones(*job.comm, 100);
}

}  // namespace
}  // namespace yoke::comm

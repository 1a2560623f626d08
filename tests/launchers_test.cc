// Ranks that others start: the program finds its place under mpirun, torchrun's variables and srun, and the ranks meet.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>

#include "tests/lab_fixture.h"
#include "yoke/base/build_info.h"
#include "yoke/base/socket.h"

namespace yoke {
namespace {

using namespace literals;
using testing::HasSubstr;

const std::vector<std::string> kBench = {"bench", "all-reduce", "-b", "64K", "-e", "64K", "-n", "5", "--no-history"};

std::optional<std::string> why_no_mpi() {
  if (!find_program("mpirun")) return "mpirun is not installed";
  if (!build_info().sanitizers.empty()) return "Open MPI itself makes sanitizers report";
  return std::nullopt;
}

Outcome run_under_mpirun(const ScratchDir& scratch, const std::vector<std::string>& more) {
  std::vector<std::string> argv = {"mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "-np", "3"};
  return run({.argv = joined(joined(std::move(argv), joined({YOKE_PROGRAM}, kBench)), more),
              .environment = {{"OMPI_MCA_mpi_yield_when_idle", "1"}},
              .folder = scratch.path(),
              .timeout = 60_s});
}

TEST(Launchers, MpirunsRanksMeasureMpi) {
  if (const auto why = why_no_mpi()) GTEST_SKIP() << *why;
  const ScratchDir scratch;
  const Outcome outcome = run_under_mpirun(scratch, {});
  ASSERT_TRUE(outcome.ok()) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("# Transport: mpi: Open MPI"));
  EXPECT_THAT(outcome.out, HasSubstr("# Out of bounds values : 0 OK"));
}

TEST(Launchers, MpirunsRanksCanTalkDirectly) {
  if (const auto why = why_no_mpi()) GTEST_SKIP() << *why;
  const ScratchDir scratch;
  const Outcome outcome = run_under_mpirun(scratch, {"--transport", "direct"});
  ASSERT_TRUE(outcome.ok()) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("# Transport: direct: memory among ranks 0, 1, 2"));
  EXPECT_THAT(outcome.out, HasSubstr("# Out of bounds values : 0 OK"));
}

TEST(Launchers, OurOwnMpirunTimesPlainMpiBeside) {
  if (const auto why = why_no_mpi()) GTEST_SKIP() << *why;
  const ScratchDir scratch;
  const Outcome outcome = run_yoke(joined(kBench, {"--beside", "mpi"}), {.folder = scratch.path(), .timeout = 60_s});
  ASSERT_TRUE(outcome.ok()) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("# Transport: direct: memory among ranks 0, 1"));
  EXPECT_THAT(outcome.out, HasSubstr("# Beside Open MPI"));
}

TEST(Launchers, RanksOfTorchrunMeetAtItsMaster) {
  const ScratchDir scratch;
  const std::string port = fmt::format("{}", listen_tcp({"127.0.0.1", 0}).local().port - 1);
  const auto start = [&](int rank) {
    return std::async(std::launch::async, [&, rank] {
      return run_yoke(kBench, {.environment = {{"RANK", fmt::format("{}", rank)},
                                               {"LOCAL_RANK", fmt::format("{}", rank)},
                                               {"WORLD_SIZE", "2"},
                                               {"LOCAL_WORLD_SIZE", "2"},
                                               {"TORCHELASTIC_RUN_ID", "none"},
                                               {"MASTER_ADDR", "localhost"},
                                               {"MASTER_PORT", port}},
                               .folder = scratch.path(),
                               .timeout = 60_s});
    });
  };
  auto second = start(1);
  auto first = start(0);
  const Outcome outcome = first.get();
  ASSERT_TRUE(outcome.ok()) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("# Out of bounds values : 0 OK"));
  const Outcome other = second.get();
  EXPECT_TRUE(other.ok()) << other.err;
  EXPECT_EQ(other.out, "") << "rank 0 prints for all";
}

TEST(Launchers, SrunsRanksOnTwoNodesMeasureMpi) {
  if (const auto why = why_no_labs({"srun", "slurmctld", "munged"})) GTEST_SKIP() << *why;
  if (const auto why = why_no_mpi()) GTEST_SKIP() << *why;
  const TestLab lab({"--with", "slurm"});
  const Outcome outcome = lab.exec("1", joined({"srun", "-N2", "--mpi=pmix", "/usr/local/bin/yoke"}, kBench), 100_s);
  ASSERT_TRUE(outcome.ok()) << outcome.out << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("# Transport: mpi: Open MPI"));
  EXPECT_THAT(outcome.out, HasSubstr("on    spark-2"));
}

}  // namespace
}  // namespace yoke

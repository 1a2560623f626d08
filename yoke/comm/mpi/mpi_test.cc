// The ranks of these tests are real processes under the real launchers: a test starts mpirun with this very program,
// which runs one of the disabled MpiRank tests as each rank.
#include "yoke/comm/mpi/mpi.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <future>

#include "tests/emulation.h"
#include "yoke/base/error_testing.h"
#include "yoke/base/process.h"
#include "yoke/comm/communicator_testing.h"

namespace yoke::comm::mpi {
namespace {

using namespace literals;
using testing::HasSubstr;

struct Launcher {
  std::string program;
  std::vector<std::string> options;
  std::string library;     // as describe() names it
  std::vector<int> ranks;  // MPICH spins without ever yielding, so more of its ranks than cores take for ever
  friend std::ostream& operator<<(std::ostream& out, const Launcher& one) { return out << one.program; }
};

const Launcher kOpenMpi{
    "mpirun.openmpi",
    {"--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "--mca", "mpi_yield_when_idle", "1"},
    "Open MPI",
    {1, 2, 3, 4, 8}};
const Launcher kMpich{"mpirun.mpich", {}, "MPICH", {1, 2, 3}};

std::string why_not(const Launcher& launcher) {
  if (kCasesSanitized) return "MPI libraries are not built for sanitizers, which report errors inside them";
  if (tests::kEmulated) return "this machine's MPI is of another processor than the emulated one";
  if (!is_installed(launcher.program)) return launcher.program + " is not installed";
  return {};
}

Outcome run_ranks(const Launcher& launcher, int ranks, const std::string& test,
                  std::map<std::string, std::string> environment = {}) {
  std::vector<std::string> argv{launcher.program};
  argv.insert(argv.end(), launcher.options.begin(), launcher.options.end());
  const std::string self = std::filesystem::read_symlink("/proc/self/exe");
  argv.insert(argv.end(), {"-np", std::to_string(ranks), self, "--gtest_also_run_disabled_tests", "--gtest_brief=1",
                           "--gtest_filter=MpiRank.DISABLED_" + test});
  environment["YOKE_TEST_MPI_LIBRARY"] = launcher.library;
  environment["YOKE_TEST_MPI_RANKS"] = std::to_string(ranks);
  return run({.argv = argv, .environment = std::move(environment), .timeout = 120_s});
}

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// What a rank does. -----------------------------------------------------------------------------------------------

TEST(MpiRank, DISABLED_PassesTheCommonCases) {
  const auto comm = make_mpi(MpiSession::start());
  EXPECT_EQ(std::to_string(comm->size()), variable("YOKE_TEST_MPI_RANKS"));
  EXPECT_THAT(comm->describe(), HasSubstr("mpi: " + variable("YOKE_TEST_MPI_LIBRARY")));
  // Ranks that outnumber the cores take turns by the scheduler's slices, so they get fewer cases of the table.
  const bool spins = variable("YOKE_TEST_MPI_LIBRARY") == "MPICH";
  CaseOptions options{.every = spins && comm->size() > 2 ? 77U : 7U, .promise = CasePromise::kRoundingOnce};
  if (comm->size() > 4) options.bytes_max = 64 << 10;
  EXPECT_THAT(run_communicator_cases(*comm, options), testing::IsEmpty());
}

TEST(MpiRank, DISABLED_ExchangesTexts) {
  const auto session = MpiSession::start();
  std::vector<std::string> expected;
  for (int r = 0; r < session->size(); ++r) expected.push_back(std::string(static_cast<std::size_t>(r) * 3, 'x'));
  EXPECT_EQ(session->exchange(expected[static_cast<std::size_t>(session->rank())]), expected);
  std::vector<float> values(3, 1);
  const Collective plain{
      .kind = CollectiveKind::kAllReduce, .send = values.data(), .receive = values.data(), .count = values.size()};
  session->plain_all_reduce(plain, Deadline::after(30_s));
  EXPECT_THAT(values, testing::Each(static_cast<float>(session->size())));
  EXPECT_ERROR(MpiSession::start(), ErrorCode::kConflict, "MPI was started in this process before")
      << "a second session in one process";
  const auto comm = make_mpi(session);
  EXPECT_ERROR(comm->rebuild({}, Deadline::after(1_s)), ErrorCode::kUnsupported, "MPI cannot rebuild a group");
}

// Element i of every rank's input.
float element(std::size_t i) { return static_cast<float>(i % 100); }

// With calls of at most 1000 elements, by MPI's arithmetic and by ours.
TEST(MpiRank, DISABLED_CutsWhatIsMoreThanMpiCounts) {
  const auto session = MpiSession::start(1000);
  const auto comm = make_mpi(session);
  constexpr std::size_t kCount = 2503;
  std::vector<float> plain(kCount), sums(kCount), moved(kCount);
  std::vector<std::uint16_t> rails(kCount, 0x3f80);  // 1.0 in bf16
  for (std::size_t i = 0; i < kCount; ++i) sums[i] = plain[i] = moved[i] = element(i);
  const Collective reduction{
      .kind = CollectiveKind::kAllReduce, .send = plain.data(), .receive = plain.data(), .count = kCount};
  session->plain_all_reduce(reduction, Deadline::after(30_s));
  all_reduce(*comm, sums.data(), kCount, tensor::DType::kF32);
  all_reduce(*comm, rails.data(), kCount, tensor::DType::kBf16);
  if (comm->rank() != 1) std::fill(moved.begin(), moved.end(), -1.0F);
  broadcast(*comm, moved.data(), kCount, tensor::DType::kF32, 1);
  const auto ranks = static_cast<float>(comm->size());
  for (std::size_t i = 0; i < kCount; ++i) {
    ASSERT_EQ(plain[i], ranks * element(i)) << i;
    ASSERT_EQ(sums[i], ranks * element(i)) << i;
    ASSERT_EQ(moved[i], element(i)) << i;
    ASSERT_EQ(rails[i], comm->size() == 2 ? 0x4000 : 0x4040) << i;  // 2.0 or 3.0
  }
}

TEST(MpiRank, DISABLED_RefusesOnlyWhatAllRanksTogetherHaveTooMuchOf) {
  const auto comm = make_mpi(MpiSession::start(1000));
  const auto ranks = static_cast<std::size_t>(comm->size());
  std::vector<float> mine(1000, 1), all(ranks * 1000);
  all_gather(*comm, mine.data(), all.data(), 1000 / ranks, tensor::DType::kF32);
  EXPECT_EQ(all[1000 / ranks * ranks - 1], 1);
  try {
    all_gather(*comm, mine.data(), all.data(), 1000 / ranks + 1, tensor::DType::kF32);
    ADD_FAILURE() << "it was not refused";
  } catch (const Error& error) {
    EXPECT_EQ(error.message(), fmt::format("all-gather of {} f32 for each of {} ranks is more than MPI counts (1000 "
                                           "elements in all)",
                                           1000 / ranks + 1, ranks));
  }
  barrier(*comm);  // the group goes on
}

// As a rank that failed ends; mpirun drops lines that it has not forwarded when it sees the end.
[[noreturn]] void exit_with_error(const Error& error) {
  fmt::print(stderr, "thrown: {}\n", error.message());
  real_clock().sleep(300_ms);
  std::_Exit(7);
}

// Rank 1 comes to nothing and waits for its end.
TEST(MpiRank, DISABLED_WaitsInVain) {
  const auto session = MpiSession::start();
  const auto comm = make_mpi(session, {.operation_timeout = 200_ms});
  if (comm->rank() == 1) {
    if (variable("YOKE_TEST_MPI_KIND") == "plain") raise(SIGSTOP);
    real_clock().sleep(60_s);
    return;
  }
  const std::string kind = variable("YOKE_TEST_MPI_KIND");
  float value = 1;
  if (kind == "all-reduce") all_reduce(*comm, &value, 1, tensor::DType::kF32);
  if (kind == "plain") {
    session->plain_all_reduce({.kind = CollectiveKind::kAllReduce,
                               .send = &value,
                               .receive = &value,
                               .count = 1,
                               .type = tensor::DType::kF32},
                              Deadline::after(200_ms));
  }
  EXPECT_ERROR(barrier(*comm), ErrorCode::kTimeout, "rank 0: barrier did not end in time");
  try {
    barrier(*comm);
  } catch (const Error& error) {  // after an Error there is nothing more
    exit_with_error(error);
  }
}

TEST(MpiRank, DISABLED_IsAborted) {
  const auto comm = make_mpi(MpiSession::start());
  if (comm->rank() == 1) {
    real_clock().sleep(60_s);
    return;
  }
  std::jthread aborter([&] { comm->abort(Error(ErrorCode::kInterrupted, "enough of this")); });
  try {
    barrier(*comm);
  } catch (const Error& error) {
    exit_with_error(error);
  }
}

// What the test does. ----------------------------------------------------------------------------------------------

class MpiLaunchers : public testing::TestWithParam<Launcher> {
 protected:
  void SetUp() override {
    if (const std::string why = why_not(GetParam()); !why.empty()) GTEST_SKIP() << why;
  }
};
INSTANTIATE_TEST_SUITE_P(Both, MpiLaunchers, testing::Values(kOpenMpi, kMpich),
                         [](const auto& one) { return one.param.library == "MPICH" ? "Mpich" : "OpenMpi"; });

TEST_P(MpiLaunchers, RanksPassTheCommonCases) {
  ASSERT_FALSE(GetParam().ranks.empty());
  for (const int ranks : GetParam().ranks) {
    const Outcome outcome = run_ranks(GetParam(), ranks, "PassesTheCommonCases");
    EXPECT_TRUE(outcome.ok()) << ranks << " ranks: " << outcome.describe() << outcome.out << outcome.err;
  }
}

TEST_P(MpiLaunchers, ASessionExchangesTextsForOtherBackends) {
  const Outcome outcome = run_ranks(GetParam(), 2, "ExchangesTexts");
  EXPECT_TRUE(outcome.ok()) << outcome.describe() << outcome.out << outcome.err;
}

TEST_P(MpiLaunchers, AnOperationThatIsNotJoinedThrowsAtItsDeadline) {
  const Outcome outcome = run_ranks(GetParam(), 2, "WaitsInVain");
  EXPECT_FALSE(outcome.ok() || outcome.timed_out) << outcome.describe();
  EXPECT_THAT(outcome.err, HasSubstr("thrown: rank 0: barrier did not end in time"));
}

TEST_P(MpiLaunchers, AReductionThatIsNotJoinedEndsTheJobAtItsDeadline) {
  const Outcome outcome = run_ranks(GetParam(), 2, "WaitsInVain", {{"YOKE_TEST_MPI_KIND", "all-reduce"}});
  EXPECT_FALSE(outcome.ok() || outcome.timed_out) << outcome.describe();
  EXPECT_THAT(outcome.err, HasSubstr("rank 0: all-reduce of 1 f32 (sum) did not end in time"));
}

TEST_P(MpiLaunchers, PlainMpiBesideAStoppedRankEndsTheJobAtItsDeadline) {
  const Outcome outcome = run_ranks(GetParam(), 2, "WaitsInVain", {{"YOKE_TEST_MPI_KIND", "plain"}});
  EXPECT_FALSE(outcome.ok() || outcome.timed_out) << outcome.describe();
  EXPECT_THAT(outcome.err, HasSubstr("rank 0: plain all-reduce of 1 f32 (sum) did not end in time"));
}

TEST_P(MpiLaunchers, MoreElementsThanMpiCountsGoInParts) {
  for (const int ranks : {2, 3}) {
    for (const char* test : {"CutsWhatIsMoreThanMpiCounts", "RefusesOnlyWhatAllRanksTogetherHaveTooMuchOf"}) {
      const Outcome outcome = run_ranks(GetParam(), ranks, test);
      EXPECT_TRUE(outcome.ok()) << ranks << " ranks: " << outcome.describe() << outcome.out << outcome.err;
    }
  }
}

TEST_P(MpiLaunchers, AbortEndsWhatIsUnderWay) {
  const Outcome outcome = run_ranks(GetParam(), 2, "IsAborted");
  EXPECT_FALSE(outcome.ok() || outcome.timed_out) << outcome.describe();
  EXPECT_THAT(outcome.err, HasSubstr("thrown: enough of this"));
}

TEST(Mpi, VersionsAreShortened) {
  EXPECT_EQ(short_mpi_version("Open MPI v4.1.4, package: Debian OpenMPI, ident: 4.1.4"), "Open MPI 4.1.4");
  EXPECT_EQ(short_mpi_version("MPICH Version:\t4.0.2\nMPICH Release date:\tThu Apr  7"), "MPICH 4.0.2");
  EXPECT_EQ(short_mpi_version("Intel(R) MPI Library 2021.9 for Linux* OS"),
            "Intel(R) MPI Library 2021.9 for Linux* OS");
}

// Takes the place of MPI_Abort: remembers the first reason.
class EndOfJob {
 public:
  void operator()(const Error& reason) { reason_.set_value(reason.message()); }
  std::string await() {
    std::future<std::string> reason = reason_.get_future();
    return reason.wait_for(std::chrono::seconds(30)) == std::future_status::ready ? reason.get() : "none";
  }

 private:
  std::promise<std::string> reason_;
};

TEST(MpiWatchdog, EndsTheJobWhenACallIsOverdueAndNotForAnother) {
  EndOfJob end;
  MpiWatchdog watchdog(std::ref(end));
  {
    const MpiWatchdog::Guard returned(
        watchdog, [] { return "the first"; }, Deadline::after(10_s));
  }
  const MpiWatchdog::Guard patient(
      watchdog, [] { return "the second"; }, Deadline::never());
  const MpiWatchdog::Guard stuck(
      watchdog, [] { return "the third"; }, Deadline::after(1_ms));
  EXPECT_EQ(end.await(), "the third did not end in time");
}

TEST(MpiWatchdog, EndsTheJobForItsReasonWhenACallOutlivesAnAbort) {
  EndOfJob end;
  MpiWatchdog watchdog(std::ref(end));
  const MpiWatchdog::Guard patient(
      watchdog, [] { return "a call"; }, Deadline::never());
  watchdog.hurry(Error(ErrorCode::kInterrupted, "enough"));
  EXPECT_EQ(end.await(), "enough");
}

}  // namespace
}  // namespace yoke::comm::mpi

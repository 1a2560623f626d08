#include "yoke/comm/nccl/nccl.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>

#include "tests/emulation.h"
#include "yoke/base/error_testing.h"
#include "yoke/comm/communicator_testing.h"
#include "yoke/comm/nccl/nccl_ranks_testing.h"

namespace yoke::comm::nccl {
namespace {

using namespace literals;

class NcclTest : public testing::Test {
 protected:
  void SetUp() override {
    if (const auto why = nccl_missing()) GTEST_SKIP() << *why;
  }
};
// The parameter is the number of ranks.
class NcclRanksTest : public testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    if (const auto why = nccl_missing()) GTEST_SKIP() << *why;
  }
};

// Device memory for the common cases.
class DeviceArena final : public CaseArena {
 public:
  DeviceArena() : device_(0), stream_(device_) {}
  tensor::Stream stream() const { return stream_.stream(); }
  std::byte* allocate(std::size_t bytes) override {
    return static_cast<std::byte*>(blocks_.emplace_back(device_, bytes).data());
  }
  void write(std::byte* to, const std::byte* from, std::size_t bytes) override { copy(to, from, bytes); }
  void read(std::byte* to, const std::byte* from, std::size_t bytes) override { copy(to, from, bytes); }

 private:
  void copy(std::byte* to, const std::byte* from, std::size_t bytes) {
    stream_.copy(to, from, bytes);
    stream_.wait(Deadline::after(20_s));
  }
  cuda::CudaDevice device_;
  cuda::CudaStream stream_;
  std::deque<cuda::CudaMemory> blocks_;
};

TEST(Nccl, ReportsWhatIsMissing) {
  if (std::getenv("YOKE_NCCL") == nullptr) {  // in a process of its own, which looks for a library that is nowhere
    std::vector<std::string> argv = tests::this_test_program();
    argv.emplace_back("--gtest_filter=Nccl.ReportsWhatIsMissing");
    const Outcome outcome =
        run({.argv = std::move(argv), .environment = {{"YOKE_NCCL", "/no/such/libnccl.so"}}, .timeout = 60_s});
    EXPECT_TRUE(outcome.ok()) << outcome.out;
    return;
  }
  const auto nccl = NcclLibrary::find();
  ASSERT_FALSE(nccl);
  EXPECT_TRUE(
      is_error(nccl.error(), ErrorCode::kUnsupported, "NCCL cannot be loaded: /no/such/libnccl.so", "YOKE_NCCL"));
  const Error error = error_of([] { make_nccl({}, Deadline::after(1_s)); });
  EXPECT_EQ(error.code(), ErrorCode::kUnsupported) << error.message();
  EXPECT_NE(error.hint().find("install"), std::string::npos) << error.hint();
}

TEST_F(NcclTest, NamesItselfAndItsDevice) {
  const auto comm = make_nccl({.id = make_nccl_id()}, Deadline::after(40_s));
  EXPECT_THAT(comm->describe(),
              testing::StartsWith(fmt::format("nccl {} on {} (device 0); ", NcclLibrary::get().version(),
                                              cuda::CudaDriver::get().device_name(0))));
}

TEST_F(NcclTest, AnIdThatIsNoneIsInvalid) {
  try {
    make_nccl({.id = "too short"}, Deadline::after(10_s));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalid) << error.message();
  }
}

TEST_F(NcclTest, WhoWaitsForARankThatDoesNotComeGetsAnError) {
  try {
    make_nccl({.size = 2, .id = make_nccl_id()}, Deadline::after(1_s));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kTimeout) << error.message();
  }
}

// The heartbeat of the control communicator notices a dead rank long before NCCL does.
TEST_F(NcclTest, ACallerThatKnowsSoonerEndsTheWait) {
  const Instant begin = real_clock().now();
  const auto watch = [] { throw Error(ErrorCode::kConflict, "rank 1 is gone"); };
  try {
    make_nccl({.size = 2, .id = make_nccl_id(), .watch = watch}, Deadline::after(40_s));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kConflict) << error.message();
  }
  EXPECT_LT(to_seconds(real_clock().now() - begin).value, 20);
}

TEST_F(NcclTest, EventsAreUsedAgainInOrder) {
  const auto comm = make_nccl({.id = make_nccl_id()}, Deadline::after(40_s));
  Numbers numbers(1, 0);
  for (int round = 0; round < 200; ++round) all_reduce_rightly(*comm, numbers);
}

// Ranks that share one GPU take turns on it, which makes milliseconds of each call, so there are fewer cases.
TEST_P(NcclRanksTest, PassTheCommonCases) {
  if (const auto part = rank_part()) {
    const auto comm = join(*part);
    DeviceArena arena;
    CaseOptions options{.bytes_max = 1 << 20,
                        .every = GetParam() == 1 ? 1U : 7U,
                        .promise = CasePromise::kAnyOrder,
                        .stream = arena.stream(),
                        .arena = &arena,
                        .deadline = 20_s};
    EXPECT_THAT(run_communicator_cases(*comm, options), testing::IsEmpty());
    if (GetParam() == 2) {
      options.stream = tensor::Stream::cpu();
      options.every = 49;
      EXPECT_THAT(run_communicator_cases(*comm, options), testing::IsEmpty());
    }
    return;
  }
  RankProcesses(GetParam()).expect_success(Deadline::after(90_s));
}
INSTANTIATE_TEST_SUITE_P(Sizes, NcclRanksTest, testing::Values(1, 2, 4));

// Only the members of a group call split(), and groups overlap.
TEST_F(NcclTest, SplitsIntoGroups) {
  if (const auto part = rank_part()) {
    const auto comm = join(*part);
    const auto sum_over = [&](const std::vector<int>& group) {
      const auto found = std::find(group.begin(), group.end(), part->rank);
      if (found == group.end()) return;
      const auto sub = comm->split(group);
      ASSERT_EQ(sub->size(), static_cast<int>(group.size()));
      ASSERT_EQ(sub->rank(), found - group.begin());
      Numbers numbers(7, sub->rank());
      all_reduce_rightly(*sub, numbers);
    };
    sum_over({0, 2});
    sum_over({1, 3});
    sum_over({1, 2, 3});
    sum_over({2});
    Numbers numbers(7, part->rank);
    all_reduce_rightly(*comm, numbers);
    return;
  }
  RankProcesses(4).expect_success(Deadline::after(60_s));
}

}  // namespace
}  // namespace yoke::comm::nccl

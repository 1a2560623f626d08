#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>

#include "yoke/base/error.h"
#include "yoke/base/error_testing.h"
#include "yoke/bench/machine_facts.h"
#include "yoke/bench/matmul_rate.h"
#include "yoke/bench/memory_rate.h"
#include "yoke/bench/pinned_threads.h"
#include "yoke/bench/sample_run_testing.h"
#include "yoke/bench/scaling.h"
#include "yoke/ops/cpu/instructions.h"

namespace yoke::bench {
namespace {

using namespace literals;
using testing::HasSubstr;

TEST(Matmul, KernelsOfThisProcessorAgreeWithThePlainLoop) {
  for (const ops::cpu::Kernels& kernels : ops::cpu::usable_kernels()) {
    for (const tensor::DType type : {tensor::DType::kF32, tensor::DType::kBf16, tensor::DType::kI8}) {
      for (const int k : {1, 2, 3, 8, 61, 128, 300}) {
        EXPECT_TRUE(kernels_are_right(kernels, type, 1, 1, k)) << kernels.name << tensor::to_string(type) << k;
        EXPECT_TRUE(kernels_are_right(kernels, type, 70, 37, k)) << kernels.name << tensor::to_string(type) << k;
      }
    }
  }
}

TEST(Matmul, AWrongKernelIsFound) {
  ops::cpu::Kernels kernels = ops::cpu::usable_kernels().back();
  kernels.multiply_f32 = [](const ops::cpu::PanelView&, std::int64_t, const ops::cpu::InputRows&, const std::int32_t*,
                            std::int64_t, float*) {};
  EXPECT_FALSE(kernels_are_right(kernels, tensor::DType::kF32, 8, 16, 16));
}

TEST(Matmul, RatesAreOfOneCoreAndAll) {
  const auto rates = measure_matmul({.depth = 48, .rounds = 2, .round = 1_ms});
  const std::size_t groups = usable_cores().size() > 1 ? 2 : 1;
  ASSERT_EQ(rates.size(), 3 * groups);
  for (const MatmulRate& rate : rates) {
    EXPECT_GT(rate.median, 1e6);
    EXPECT_GE(rate.best, rate.median);
  }
  EXPECT_THAT(matmul_text(rates), HasSubstr("GFLOP/s"));
  EXPECT_THAT(matmul_text(rates), HasSubstr("TOPS"));
  EXPECT_EQ(record_of(rates).rows.size(), rates.size());
}

TEST(Memory, RatesCountWhatCrosses) {
  const MemoryRates rates = measure_memory({.block = 4_MiB, .rounds = 3});
  ASSERT_GE(rates.rates.size(), 2U);
  EXPECT_EQ(rates.rates.front().what, "read");
  EXPECT_EQ(rates.rates.back().what, "copy");
  for (const MemoryRate& rate : rates.rates) {
    EXPECT_GT(rate.median.value, 1e7);
    EXPECT_GE(rate.best, rate.median);
    EXPECT_GE(rate.high, rate.low);
  }
  EXPECT_EQ(record_of(rates).rows.front().unit, "GB/s");
}

TEST(Memory, BlocksAreFarBeyondTheCachesButLeaveRoom) {
  EXPECT_EQ(choose_block(1_MiB, 64_GiB), 256_MiB);
  EXPECT_EQ(choose_block(100_MiB, 64_GiB), 800_MiB);
  EXPECT_EQ(choose_block(1_GiB, 64_GiB), 2_GiB);
  EXPECT_EQ(choose_block(1_GiB, 1_GiB), 128_MiB);
  EXPECT_EQ(choose_block(Bytes{}, std::nullopt), 256_MiB);
}

TEST(PinnedThreads, RunEveryRoundOnEveryCoreAndPassOnWhatTheyThrow) {
  std::atomic<int> calls = 0;
  const PinnedRounds rounds =
      run_pinned({usable_cores().front(), usable_cores().back()}, 3, [&](int) { return [&] { ++calls; }; });
  EXPECT_EQ(calls, 2 * (3 + 1));
  EXPECT_EQ(rounds.seconds.size(), 3U);
  const auto failing = [](int) -> std::function<void()> { throw Error(ErrorCode::kExhausted, "no memory"); };
  EXPECT_ERROR(run_pinned({usable_cores().front()}, 3, failing), ErrorCode::kExhausted, "no memory");
  std::atomic<int> turn = 0;
  const auto fails_later = [&](int) {
    return [&] {
      if (++turn == 3) throw Error(ErrorCode::kInternal, "wrong");
    };
  };
  EXPECT_ERROR(run_pinned({usable_cores().front(), usable_cores().back()}, 3, fails_later), ErrorCode::kInternal,
               "wrong");
}

TEST(MachineFacts, NameTheProcessorOnBothKindsOfMachine) {
  MemoryTree x86;
  x86.add_file("/proc/cpuinfo", "processor\t: 0\nmodel name\t: AMD EPYC 9B14\n");
  x86.add_file("/sys/devices/system/cpu/cpu0/cache/index2/size", "1024K\n");
  x86.add_file("/sys/devices/system/cpu/cpu0/cache/index3/size", "32M\n");
  EXPECT_EQ(facts_of_this_machine(x86).processor, "AMD EPYC 9B14");
  EXPECT_EQ(facts_of_this_machine(x86).last_cache, 32_MiB);
  MemoryTree arm;
  arm.add_file("/proc/cpuinfo", "processor\t: 0\nCPU part\t: 0xd85\n");
  arm.add_file("/sys/class/dmi/id/product_name", "NVIDIA_DGX_Spark\n");
  EXPECT_EQ(facts_of_this_machine(arm).processor, "NVIDIA_DGX_Spark (Arm part 0xd85)");
  EXPECT_EQ(facts_of_this_machine(MemoryTree()).processor, "unknown processor");
  EXPECT_FALSE(facts_of_this_machine(MemoryTree()).host.empty());
}

TEST(Scaling, ReadsRisingNumbersOfRanks) {
  EXPECT_THAT(parse_rank_counts("1,2,4"), testing::ElementsAre(1, 2, 4));
  EXPECT_THAT(parse_rank_counts(" 3 "), testing::ElementsAre(3));
  for (const char* text : {"", "0", "2,1", "2,2", "1,", "x", "1;2", "99999", "-1,2"})
    EXPECT_ERROR(parse_rank_counts(text), ErrorCode::kUsage, fmt::format("--ranks cannot be '{}'", text)) << text;
}

TEST(Scaling, EfficiencyIsAgainstTheFewestRanksAboveOne) {
  CollectiveRun one = sample_run(), two = sample_run(), four = sample_run();
  one.ranks.resize(1);
  four.ranks.resize(4);
  four.rows[0].out_of_place.stats.p50 = two.rows[0].out_of_place.stats.p50 * 3;  // ideal is 1.5
  const std::vector<CollectiveRun> runs = {one, two, four};
  const auto rows = scaling_rows(runs);
  ASSERT_EQ(rows.size(), 3U);
  EXPECT_FALSE(rows[0].efficiency.has_value());
  EXPECT_DOUBLE_EQ(*rows[1].efficiency, 1);
  EXPECT_DOUBLE_EQ(*rows[2].efficiency, 0.5);
  EXPECT_THAT(scaling_text(runs), HasSubstr("50%"));
  EXPECT_EQ(scaling_record(runs).summary, "all-reduce at 1, 2, 4 ranks");
}

}  // namespace
}  // namespace yoke::bench

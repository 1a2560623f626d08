#include "yoke/spec/memory_fit.h"

#include <gtest/gtest.h>

namespace yoke::spec {
namespace {

constexpr std::int64_t kMiB = 1 << 20;
constexpr std::int64_t kGiB = 1 << 30;

MemoryNeed need_of(std::int64_t weights) {
  return {.weights = Bytes{weights},
          .work_space = Bytes{10 * kMiB},
          .others = Bytes{5 * kMiB},
          .cache = [](std::int64_t tokens) { return paged_cache(tokens, Bytes{1000}); }};
}

TEST(MemoryFit, CountsEveryPartAndTheReserve) {
  const MemoryFit fit = fit_memory(need_of(100 * kMiB), {.available = Bytes{320 * kMiB}}, 17);
  EXPECT_EQ(fit.needed.value, 115 * kMiB + 32 * 1000) << "17 tokens are two pages of 16";
  EXPECT_EQ(fit.reserve.value, 32 * kMiB + 10 * kMiB);
  EXPECT_EQ(fit.left.value, 320 * kMiB - fit.reserve.value - fit.needed.value);
  EXPECT_TRUE(fit.fits());
}

TEST(MemoryFit, FitsToTheByteAndNotBeyond) {
  const MemoryNeed need{.weights = Bytes{100 * kMiB}, .work_space = Bytes{0}};
  std::int64_t least = 100 * kMiB;
  while (!fit_memory(need, {.available = Bytes{least}}, 0).fits()) least += 1024;
  const MemoryFit fit = fit_memory(need, {.available = Bytes{least}}, 0);
  EXPECT_LT(fit.left.value, 1024);
  EXPECT_FALSE(fit_memory({.weights = need.weights + fit.left + Bytes{1}, .work_space = Bytes{0}},
                          {.available = Bytes{least}}, 0)
                   .fits());
}

TEST(MemoryFit, KeepsEightGibibytesAndEightPercentOfUnifiedMemoryFree) {
  EXPECT_EQ(memory_reserve(Bytes{32 * kGiB}, MemoryKind::kUnified).value, 8 * kGiB);
  EXPECT_NEAR(static_cast<double>(memory_reserve(Bytes{119 * kGiB}, MemoryKind::kUnified).value),
              0.08 * 119 * static_cast<double>(kGiB), 100);
  const MemoryNeed need{.weights = Bytes{110 * kGiB}, .work_space = Bytes{0}};
  EXPECT_FALSE(fit_memory(need, {.available = Bytes{119 * kGiB}, .kind = MemoryKind::kUnified}, 0).fits());
  EXPECT_TRUE(fit_memory(need, {.available = Bytes{119 * kGiB}, .kind = MemoryKind::kHost}, 0).fits());
}

TEST(MemoryFit, FindsTheLastTokenThatFits) {
  const MemoryRoom room{.available = Bytes{320 * kMiB}};
  const std::int64_t tokens = tokens_that_fit(need_of(100 * kMiB), room, 1'000'000'000);
  EXPECT_EQ(tokens % kCachePageTokens, 0);
  EXPECT_TRUE(fit_memory(need_of(100 * kMiB), room, tokens).fits());
  EXPECT_FALSE(fit_memory(need_of(100 * kMiB), room, tokens + 1).fits());
  EXPECT_EQ(tokens_that_fit(need_of(100 * kMiB), room, 7), 7) << "no more than asked for";
  EXPECT_EQ(tokens_that_fit(need_of(400 * kMiB), room, 7), 0);
}

TEST(MemoryFit, AbsurdSizesDoNotOverflow) {
  const MemoryNeed need{.weights = Bytes{INT64_MAX},
                        .work_space = Bytes{INT64_MAX},
                        .others = Bytes{INT64_MAX},
                        .cache = [](std::int64_t) { return Bytes{INT64_MAX}; }};
  EXPECT_FALSE(fit_memory(need, {.available = Bytes{128 * kGiB}}, INT64_MAX / 2).fits());
}

}  // namespace
}  // namespace yoke::spec

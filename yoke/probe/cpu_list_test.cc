#include "yoke/probe/cpu_list.h"

#include <gtest/gtest.h>

#include <array>

namespace yoke::probe {
namespace {

TEST(CpuList, CountsItsNumbers) {
  EXPECT_EQ(count_of_list("0"), 1);
  EXPECT_EQ(count_of_list("0-19\n"), 20);
  EXPECT_EQ(count_of_list("0-63,128-191"), 128);
  EXPECT_EQ(count_of_list(""), 0);
  for (const char* wrong : {"all", "3-1", "0,", "-1", "0-", "1 2", "0-99999999999"}) {
    EXPECT_EQ(count_of_list(wrong), std::nullopt) << wrong;
  }
}

TEST(CpuList, PrintsAMask) {
  std::array<unsigned long, 4> mask{};
  EXPECT_EQ(print_cpu_list(mask), "");
  mask[0] = 0b1011;
  EXPECT_EQ(print_cpu_list(mask), "0-1,3");
  mask = {~0UL, 0, ~0UL, 1};
  EXPECT_EQ(print_cpu_list(mask), "0-63,128-192");
}

}  // namespace
}  // namespace yoke::probe

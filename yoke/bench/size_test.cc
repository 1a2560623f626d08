#include "yoke/bench/size.h"

#include <gtest/gtest.h>

namespace yoke::bench {
namespace {

TEST(Size, IsANumberWithPowersOf1024) {
  const std::vector<std::pair<std::string, std::int64_t>> cases = {
      {"0", 0},       {"8", 8},         {"1.5M", 1572864},
      {"64K", 65536}, {"64k", 65536},   {"16g", 16LL << 30},
      {"8 K", 8192},  {" 8", 8},        {"1e3", 1000},
      {"8B", 8},      {"8MB", 8 << 20}, {"4GiB", 4LL << 30},
      {"0.5K", 512},  {"0.3", 0},       {"4294967296G", 1LL << 62}};
  for (const auto& [text, bytes] : cases) {
    const auto size = parse_size(text);
    ASSERT_TRUE(size) << text;
    EXPECT_EQ(size->value, bytes) << text;
  }
}

TEST(Size, RefusesJunkWithTheForm) {
  for (const char* text : {"", " ", "M", "8X", "8KK", "8MBs", "-1", "-0", "nan", "inf", "1e400", "0x10", "8,5M",
                           "eight", "8589934592G", "1 2", "8M 9", "\x1b[31m", "8T"}) {
    const auto size = parse_size(text);
    ASSERT_FALSE(size) << text;
    EXPECT_EQ(size.error().code(), ErrorCode::kUsage);
    EXPECT_NE(size.error().hint().find("1.5M"), std::string::npos);
    EXPECT_EQ(size.error().message().find('\x1b'), std::string::npos);
  }
}

}  // namespace
}  // namespace yoke::bench

#include "yoke/base/ip.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace yoke {
namespace {

TEST(Ipv4, IsParsedStrictly) {
  EXPECT_EQ(to_string(*parse_ipv4("192.168.100.1")), "192.168.100.1");
  for (const char* wrong :
       {"", "1.2.3", "1.2.3.4.5", "1.2.3.256", "01.2.3.4", "1.2.3.-4", "1.2.3.4 ", "a.b.c.d", "1..2.3"}) {
    EXPECT_FALSE(parse_ipv4(wrong).has_value()) << wrong;
  }
  for (const char* wrong : {"1.2.3.4", "1.2.3.4/", "1.2.3.4/33", "1.2.3.4/-1", "1.2.3.4/024", "1.2.3/24"}) {
    EXPECT_FALSE(parse_ipv4_prefix(wrong).has_value()) << wrong;
  }
}

TEST(Ipv4, PrefixesKnowTheirNetworkAndHosts) {
  const Ipv4Prefix address = *parse_ipv4_prefix("192.168.100.7/24");
  EXPECT_EQ(to_string(address.network()), "192.168.100.0/24");
  EXPECT_TRUE(address.contains(*parse_ipv4("192.168.100.255")));
  EXPECT_FALSE(address.contains(*parse_ipv4("192.168.101.7")));
  EXPECT_EQ(address.host_count(), 254U);
  EXPECT_EQ(to_string(address.host(2)), "192.168.100.2");
  EXPECT_EQ(parse_ipv4_prefix("10.0.0.0/31")->host_count(), 0U);
  EXPECT_TRUE(parse_ipv4_prefix("0.0.0.0/0")->contains(*parse_ipv4("8.8.8.8")));
}

RC_GTEST_PROP(Ipv4, NetworksOverlapExactlyWhenTheyShareAnAddress, ()) {
  const auto prefix = [] {
    return Ipv4Prefix{{*rc::gen::inRange<std::uint32_t>(0, 256)}, *rc::gen::inRange(24, 33)}.network();
  };
  const Ipv4Prefix a = prefix();
  const Ipv4Prefix b = prefix();
  bool shared = false;
  for (std::uint32_t value = 0; value < 256; ++value) shared |= a.contains({value}) && b.contains({value});
  RC_ASSERT(overlap(a, b) == shared);
  RC_ASSERT(*parse_ipv4_prefix(to_string(a)) == a);
}

}  // namespace
}  // namespace yoke

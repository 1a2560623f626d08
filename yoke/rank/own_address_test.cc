#include "yoke/rank/own_address.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "yoke/base/error.h"
#include "yoke/rank/world.h"

namespace yoke::rank {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;

TEST(OwnAddress, TheRouteToAnAddressOfOursLeavesByIt) {
  EXPECT_EQ(source_address_towards("127.0.0.1"), "127.0.0.1");
  for (const Ipv4 own : own_addresses()) {
    if (!is_loopback(to_string(own))) {
      EXPECT_EQ(source_address_towards(to_string(own)), to_string(own));
    }
  }
  EXPECT_EQ(source_address_towards("not an address"), std::nullopt);
}

TEST(OwnAddress, TheDefaultIsNeverLoopback) {
  const auto address = default_address();
  EXPECT_FALSE(address && is_loopback(*address)) << *address;
}

// The nodes of a desk, of which the second is this machine.
spec::Cluster desk_with(std::vector<spec::Rail> rails) {
  return {.name = "desk",
          .nodes = {{.name = "spark-1", .address = "203.0.113.7"},
                    {.name = "spark-2", .address = "127.0.0.1", .rails = std::move(rails)}}};
}

TEST(OwnAddress, IsTheOneGivenThenTheClusterFilesThenTheWayToTheOthers) {
  const spec::Rail rail{.interface = "eth1", .address = *parse_ipv4_prefix("192.168.100.2/24")};
  const job::Environment none, given = {{"YOKE_ADDRESS", "10.1.2.3"}};
  EXPECT_THAT(rails_here(given, desk_with({rail}), "10.9.9.9"), ElementsAre(Pair("network", "10.1.2.3")));
  EXPECT_THAT(rails_here(none, desk_with({rail}), "10.9.9.9"), ElementsAre(Pair("A", "192.168.100.2")));
  EXPECT_THAT(rails_here(none, desk_with({}), "10.9.9.9"), ElementsAre(Pair("network", "127.0.0.1")));
  EXPECT_THAT(rails_here(none, std::nullopt, "10.9.9.9"), ElementsAre(Pair("network", "10.9.9.9")));
  EXPECT_THAT(rails_here(none, std::nullopt, ""), IsEmpty());
}

TEST(OwnAddress, AGivenOneThatIsNoneIsRefused) {
  for (const char* wrong : {"", "spark-1", "10.1.2", "fe80::1", "10.1.2.3:5"}) {
    try {
      rails_here({{"YOKE_ADDRESS", wrong}}, std::nullopt, "10.9.9.9");
      ADD_FAILURE() << "taken: '" << wrong << "'";
    } catch (const Error& error) {
      EXPECT_THAT(error.message(), HasSubstr("YOKE_ADDRESS is '" + std::string(wrong) + "'"));
    }
  }
}

}  // namespace
}  // namespace yoke::rank

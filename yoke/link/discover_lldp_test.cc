#include "yoke/link/discover_lldp.h"

#include <gtest/gtest.h>

#include "yoke/base/error.h"
#include "yoke/base/error_testing.h"
#include "yoke/base/files.h"

namespace yoke::link {
namespace {

std::string corpus(const std::string& name) {
  return read_file(std::filesystem::path(YOKE_SOURCE_DIR) / "tests/corpus/discover_lldp_fuzz" / name);
}

TEST(Lldp, ANodesPortIsKnownByItsMacAddress) {
  const std::vector<LldpNeighbour> expected = {{.interface = "enp1s0f0np0",
                                                .system = "spark-2",
                                                .port_mac = "4c:bb:47:0a:20:00",
                                                .port_name = "b0",
                                                .bridge = false}};
  EXPECT_EQ(parse_lldp_neighbours(corpus("node")), expected);
}

TEST(Lldp, ASwitchIsABridgeAndNamesItsPort) {
  const auto neighbours = parse_lldp_neighbours(corpus("switch"));
  ASSERT_EQ(neighbours.size(), 2U);
  EXPECT_TRUE(neighbours[1].bridge);
  EXPECT_EQ(neighbours[1].system, "crs812");
  EXPECT_EQ(neighbours[1].port_name, "qsfp56-dd-1-2");
  EXPECT_EQ(neighbours[1].port_mac, std::nullopt);
}

TEST(Lldp, NobodyIsNoError) {
  EXPECT_TRUE(parse_lldp_neighbours(corpus("nobody")).empty());
  EXPECT_TRUE(parse_lldp_neighbours("{}").empty());
}

TEST(Lldp, OtherFormsAreRefused) {
  for (const WrongInput& wrong : {WrongInput{"", "lldpcli is not JSON"},
                                  {"[]", "lldp is not"},
                                  {R"({"lldp": {}})", "lldp is not"},
                                  {R"({"lldp": [[]]})", "interface is not"},
                                  {R"({"lldp": [{"interface": [{}]}]})", "an interface's name is not"},
                                  {R"({"lldp": [{"interface": [{"name": 3}]}]})", "name is not"}}) {
    EXPECT_ERROR(parse_lldp_neighbours(wrong.text), ErrorCode::kInvalid, wrong.words) << wrong.text;
  }
}

TEST(Lldp, WhatANeighbourSendsIsMadePrintable) {
  const auto neighbours = parse_lldp_neighbours(
      R"({"lldp":[{"interface":[{"name":"e","chassis":[{"name":[{"value":"\u001b[31mred"}]}]}]}]})");
  EXPECT_EQ(neighbours.at(0).system, "\\x1b[31mred");
}

}  // namespace
}  // namespace yoke::link

#include "yoke/link/address_changes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "yoke/base/error.h"
#include "yoke/base/error_testing.h"

namespace yoke::link {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr const char* kHalf = "enp1s0f0np0";

std::vector<std::string> lines_of(const std::vector<Argv>& commands) {
  std::vector<std::string> lines;
  for (const Argv& argv : commands) lines.push_back(fmt::format("{}", fmt::join(argv, " ")));
  return lines;
}

std::vector<HeldAddress> held(const std::vector<std::string>& list) {
  std::vector<HeldAddress> all;
  for (const std::string& words : list) all.push_back({words, false});
  return all;
}

TEST(HeldAddresses, KeepAllThatSomebodyGaveWithThem) {
  const auto found = parse_held_addresses(
      R"([{},{"ifname":"eth9","addr_info":[{"family":"inet","local":"1.2.3.4","prefixlen":8,"scope":"global"}]},
          {"ifname":"enp1s0f0np0","addr_info":[
           {"family":"inet","local":"10.0.0.1","prefixlen":24,"scope":"global","label":"enp1s0f0np0",
            "valid_life_time":4294967295,"preferred_life_time":4294967295},
           {"family":"inet","local":"10.0.0.9","prefixlen":24,"broadcast":"10.0.0.255","scope":"global",
            "secondary":true,"dynamic":true,"label":"enp1s0f0np0:1","valid_life_time":300,"preferred_life_time":200},
           {"family":"inet","local":"10.1.0.1","address":"10.1.0.2","prefixlen":32,"scope":"global",
            "noprefixroute":true,"metric":7},
           {"family":"inet","local":"169.254.3.4","prefixlen":16,"scope":"link"},
           {"family":"inet6","local":"fe80::1","prefixlen":64,"scope":"link"}]}])",
      kHalf);
  EXPECT_EQ(found, (std::vector<HeldAddress>{
                       {"10.0.0.1/24", false},
                       {"10.0.0.9/24 brd 10.0.0.255 label enp1s0f0np0:1 valid_lft 300 preferred_lft 200", true},
                       {"10.1.0.1 peer 10.1.0.2/32 metric 7 noprefixroute", false},
                       {"169.254.3.4/16 scope link", false}}));
  EXPECT_EQ(address_name(found[1].words), "10.0.0.9/24");
  EXPECT_EQ(address_name(found[2].words), "10.1.0.1 peer 10.1.0.2/32");
  EXPECT_ERROR(parse_held_addresses("{}", kHalf), ErrorCode::kInvalid, "this must be a list");
  EXPECT_ERROR(parse_held_addresses(R"([{"ifname":"enp1s0f0np0","addr_info":[{"family":4}]}])", kHalf),
               ErrorCode::kInvalid, "[0].addr_info[0].family: this must be a text");
}

TEST(AddressChanges, OthersAreDeletedAndTheWantedOneIsThere) {
  const auto commands = [](const std::vector<HeldAddress>& now) {
    return lines_of(commands_to_set_addresses(now, "192.168.100.1/24", kHalf));
  };
  EXPECT_THAT(commands({}), ElementsAre("ip address add 192.168.100.1/24 dev enp1s0f0np0"));
  EXPECT_THAT(commands(held({"192.168.100.1/24 brd 192.168.100.255"})), IsEmpty());
  EXPECT_THAT(
      commands(held({"192.168.0.1/24", "169.254.1.2/16 scope link"})),
      ElementsAre("ip address add 192.168.100.1/24 dev enp1s0f0np0", "ip address del 169.254.1.2/16 dev enp1s0f0np0",
                  "ip address del 192.168.0.1/24 dev enp1s0f0np0"));
  EXPECT_THAT(commands(held({"192.168.100.1/16"})), ElementsAre("ip address add 192.168.100.1/24 dev enp1s0f0np0",
                                                                "ip address del 192.168.100.1/16 dev enp1s0f0np0"))
      << "ssh by this address outlives it";
  EXPECT_THAT(commands({{"192.168.100.9/24", false}, {"192.168.100.1/24", true}}),
              ElementsAre("ip address del 192.168.100.9/24 dev enp1s0f0np0",
                          "ip address replace 192.168.100.1/24 dev enp1s0f0np0"))
      << "it may have gone with the first of its subnet";
}

TEST(AddressChanges, AreTakenBackInTheOrderThatWas) {
  const auto commands = [](const std::vector<std::string>& was, const std::vector<HeldAddress>& now) {
    return lines_of(commands_to_restore_addresses(was, "192.168.100.1/24", now, kHalf));
  };
  EXPECT_THAT(commands({}, held({"192.168.100.1/24"})), ElementsAre("ip address del 192.168.100.1/24 dev enp1s0f0np0"));
  EXPECT_THAT(commands({"192.168.100.1/24"}, held({"192.168.100.1/24"})), IsEmpty());
  EXPECT_THAT(commands({"10.0.0.1/24 brd 10.0.0.255", "10.0.0.2/24"}, held({"192.168.100.1/24"})),
              ElementsAre("ip address del 192.168.100.1/24 dev enp1s0f0np0",
                          "ip address add 10.0.0.1/24 brd 10.0.0.255 dev enp1s0f0np0",
                          "ip address add 10.0.0.2/24 dev enp1s0f0np0"));
  EXPECT_THAT(
      commands({"10.0.0.1/24", "192.168.100.1/24"}, held({"192.168.100.1/24"})),
      ElementsAre("ip address del 192.168.100.1/24 dev enp1s0f0np0", "ip address add 10.0.0.1/24 dev enp1s0f0np0",
                  "ip address add 192.168.100.1/24 dev enp1s0f0np0"))
      << "it was the second";
  EXPECT_THAT(commands({}, {{"192.168.100.1/24", false}, {"192.168.100.7/24 label x", true}}),
              ElementsAre("ip address del 192.168.100.1/24 dev enp1s0f0np0",
                          "ip address replace 192.168.100.7/24 label x dev enp1s0f0np0"))
      << "what somebody else added since is theirs";
}

constexpr std::string_view kPrinted =
    "default via 10.77.0.254 dev enP7s7 \n"
    "192.168.0.0/24 dev enp1s0f0np0 proto kernel scope link src 192.168.0.1 linkdown \n"
    "192.168.0.0/24 dev enP2p1s0f0np0 proto kernel scope link src 192.168.0.2 \n"
    "10.9.0.0/16 via 192.168.0.9 dev enp1s0f0np0 metric 5 \n"
    "10.8.0.0/16 \\\tnexthop via 192.168.0.9 dev enp1s0f0np0 weight 1\n"
    "192.168.0.0/24 dev enp1s0f0np0 table 101 scope link \n"
    "local 192.168.0.1 dev enp1s0f0np0 table local proto kernel scope host src 192.168.0.1 \n"
    "broadcast 192.168.0.255 dev enp1s0f0np0 table local proto kernel scope link src 192.168.0.1 \n";
constexpr const char* kOwn = "192.168.0.0/24 dev enp1s0f0np0 proto kernel scope link src 192.168.0.1";
constexpr const char* kOther = "192.168.0.0/24 dev enP2p1s0f0np0 proto kernel scope link src 192.168.0.2";
constexpr const char* kFar = "10.9.0.0/16 via 192.168.0.9 dev enp1s0f0np0 metric 5";

TEST(RoutesOf, AnInterfaceAreThoseByItAndTheirRivals) {
  EXPECT_THAT(parse_routes_of(kPrinted, kHalf),
              ElementsAre(kOwn, kOther, kFar, "192.168.0.0/24 dev enp1s0f0np0 table 101 scope link"));
  EXPECT_THAT(parse_routes_of(kPrinted, "enp1s0f0np"), IsEmpty());
}

TEST(RoutesOf, AnInterfaceComeBackInTheirOrder) {
  const auto commands = [](const std::vector<std::string>& now) {
    return lines_of(commands_to_restore_routes({kOwn, kOther, kFar}, now, kHalf));
  };
  EXPECT_THAT(commands({kOwn, kOther, kFar}), IsEmpty());
  EXPECT_THAT(commands({kFar, kOwn, kOther}), IsEmpty()) << "of different destinations the order means nothing";
  EXPECT_THAT(commands({kOwn, kOther}), ElementsAre(std::string("ip route append ") + kFar));
  EXPECT_THAT(commands({kOwn, kFar}), IsEmpty()) << "another interface's route is not ours to make";
  const auto ordered = commands({kOther, kOwn, kFar});
  EXPECT_THAT(ordered, ElementsAre(std::string("ip route del ") + kOther, std::string("ip route prepend ") + kOther,
                                   std::string("ip route del ") + kOwn, std::string("ip route prepend ") + kOwn));
}

}  // namespace
}  // namespace yoke::link

#include "yoke/survey/packet_filter.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include "yoke/base/files.h"
#include "yoke/base/json.h"

namespace yoke::survey {
namespace {

TEST(PacketFilter, ReadsThePolicyOfForwardingAndTheRulesBeforeIt) {
  const auto read = [](std::string_view rules) {
    spec::SurveyedNode node;
    read_forward_rules(rules, {"enp1s0f0np0"}, node);
    return fmt::format("{} {}{}", node.forward_policy.value_or("-"), node.forward_accepts,
                       node.forward_exceptions ? " but for some" : "");
  };
  EXPECT_EQ(read(""), "- false");
  EXPECT_EQ(read("-P FORWARD ACCEPT\n"), "ACCEPT false");
  EXPECT_EQ(read("-P FORWARD DROP\n-A FORWARD -o docker0 -j ACCEPT\n-A FORWARD -j DOCKER-USER\n"), "DROP false");
  EXPECT_EQ(read("-P FORWARD DROP\n-A DOCKER-USER -j ACCEPT\n"), "DROP true");
  EXPECT_EQ(read("-P FORWARD DROP\n-A DOCKER-USER -i enp1s0f0np0 -j ACCEPT\n"), "DROP true");
  EXPECT_EQ(read("-P FORWARD DROP\n-A DOCKER-USER -i eth0 -j ACCEPT\n"), "DROP false");
  EXPECT_EQ(read("-P FORWARD DROP\n-A DOCKER-USER -i enp1s0f0np0 -o enp+ -j ACCEPT\n"), "DROP true");
  EXPECT_EQ(read("-P FORWARD DROP\n-A DOCKER-USER -i enp1s0f0np0 -o docker0 -j ACCEPT\n"), "DROP false");
  EXPECT_EQ(read("-P FORWARD DROP\n-A DOCKER-USER -s 192.168.0.0/16 -j ACCEPT\n"), "DROP false but for some");
  EXPECT_EQ(read("-P FORWARD DROP\n-A DOCKER-USER ! -i docker0 -j ACCEPT\n"), "DROP false but for some");
  EXPECT_EQ(read("-P FORWARD DROP\n-A FORWARD -i docker0 ! -o docker0 -j ACCEPT\n"), "DROP false");
  EXPECT_EQ(read("-P FORWARD DROP\n-A FORWARD -s 10.0.0.0/8 -j DROP\n"), "DROP false");
}

// Expressions as nft 1.0.6 prints them.
constexpr const char* kCounter = R"({"counter": {"packets": 4, "bytes": 336}})";
constexpr const char* kAccept = R"({"accept": null})";
constexpr const char* kDrop = R"({"drop": null})";
std::string on(const char* key, const std::string& right, const char* op = "==") {
  return fmt::format(R"({{"match": {{"op": "{}", "left": {{"meta": {{"key": "{}"}}}}, "right": {}}}}})", op, key,
                     right);
}
const std::string kTcpPort = R"({"match": {"op": "==", "left": {"payload": {"protocol": "tcp", "field": "dport"}},
                                "right": 22}})";
const std::string kSource = R"({"match": {"op": "==", "left": {"payload": {"protocol": "ip", "field": "saddr"}},
                               "right": {"prefix": {"addr": "192.168.0.0", "len": 16}}}})";
const std::string kEstablished = R"({"match": {"op": "in", "left": {"ct": {"key": "state"}}, "right": "established"}})";

std::string reported(const std::optional<ForwardDrop>& drop) {
  return drop ? drop->where + (drop->exceptions ? ", but for some" : "") : "-";
}

// What Docker makes, by iptables over nft, with this in place of the one rule of its users' chain.
std::string with(const std::vector<std::string>& expressions) {
  std::string ruleset =
      read_file(std::filesystem::path(YOKE_SOURCE_DIR) / "tests/corpus/packet_filter_fuzz/docker.json");
  constexpr std::string_view kRule = R"([{"counter": {"packets": 0, "bytes": 0}}, {"return": null}])";
  ruleset.replace(ruleset.find(kRule), kRule.size(), fmt::format("[{}]", fmt::join(expressions, ", ")));
  return reported(find_forward_drop(parse_json(ruleset, "ruleset"), {"enp1s0f0np0", "enP2p1s0f0np0"}));
}

TEST(PacketFilter, FollowsWhatDockerForwards) {
  const std::string policy = "chain FORWARD of table ip filter: policy drop";
  EXPECT_EQ(with({kCounter, R"({"return": null})"}), policy);
  EXPECT_EQ(with({kCounter, kAccept}), "-");
  EXPECT_EQ(with({on("iifname", R"("enp1s0f0np0")"), kCounter, kAccept}), "-");
  EXPECT_EQ(with({on("iifname", R"({"set": ["eth0", "enp1s0f0np0"]})"), kAccept}), "-");
  EXPECT_EQ(with({on("iifname", R"("en*")"), on("oifname", R"("en*")"), kAccept}), "-");
  EXPECT_EQ(with({on("iifname", R"("eth0")"), kAccept}), policy);
  EXPECT_EQ(with({kTcpPort, kAccept}), policy + ", but for some");
  EXPECT_EQ(with({kSource, kAccept}), policy + ", but for some");
  EXPECT_EQ(with({kSource, R"({"jump": {"target": "ring"}})"}), policy + ", but for some");
  EXPECT_EQ(with({on("iifname", R"("docker0")", "!="), kAccept}), policy + ", but for some");
  EXPECT_EQ(with({on("iifname", R"("@rails")"), kAccept}), policy + ", but for some") << "a set that may change";
  EXPECT_EQ(with({R"({"vmap": {"key": {"ct": {"key": "state"}},
                        "data": {"set": [["established", {"accept": null}]]}}})"}),
            policy + ", but for some");
  EXPECT_EQ(with({on("oifname", R"("docker0")"), kEstablished, kAccept}), policy) << "not for our interfaces";
  EXPECT_EQ(with({R"({"jump": {"target": "DOCKER-USER"}})"}), policy) << "a loop, which the kernel would not take";
  EXPECT_EQ(with({on("iifname", R"("enp1s0f0np0")"), kDrop}),
            "chain DOCKER-USER of table ip filter: iifname enp1s0f0np0 drop");
  EXPECT_EQ(with({R"({"log": {"prefix": "dropped: "}})", kDrop}), "chain DOCKER-USER of table ip filter: drop");
}

TEST(PacketFilter, ReportsWhatDropsInAChainOfItsOwn) {
  const auto of = [](const std::string& expressions) {
    return reported(find_forward_drop(parse_json(fmt::format(R"({{"nftables": [
          {{"chain": {{"family": "inet", "table": "x", "name": "f", "hook": "forward", "policy": "accept"}}}},
          {{"rule": {{"family": "inet", "table": "x", "chain": "f", "expr": [{}]}}}}]}})",
                                                             expressions),
                                                 "ruleset"),
                                      {"enp1s0f0np0"}));
  };
  EXPECT_EQ(of(kEstablished + ", " + kDrop), "-");
  EXPECT_EQ(of(R"({"reject": {"type": "icmpx", "expr": "admin-prohibited"}})"), "chain f of table inet x: reject");
  EXPECT_EQ(of(on("oifname", R"("eth9")") + ", " + kDrop), "-");
}

TEST(PacketFilter, KnowsWhetherAnythingIsDropped) {
  const auto drops = [](std::string_view text) { return has_dropping_rule(parse_json(text, "ruleset")); };
  EXPECT_FALSE(drops(R"({"nftables": [{"chain": {"name": "drop", "policy": "accept", "comment": "drop nothing"}}]})"));
  EXPECT_TRUE(drops(R"({"nftables": [{"chain": {"name": "i", "policy": "drop"}}]})"));
  EXPECT_TRUE(drops(R"({"nftables": [{"rule": {"expr": [{"vmap": {"data": {"set": [["x", {"drop": null}]]}}}]}}]})"));
  EXPECT_FALSE(drops("{}"));
  EXPECT_FALSE(drops("[]"));
}

}  // namespace
}  // namespace yoke::survey

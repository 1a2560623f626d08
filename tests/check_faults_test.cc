// yoke check against every fault of the lab and against pairs of them: what it must tell, and that it tells nothing
// else. Two nodes and what can be seen without measuring are quick; the rest, on labs of two, three and four nodes that
// were set up from the factory's state, is long and runs by scripts/soak-check.
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <span>

#include "tests/check_findings.h"
#include "yoke/base/text.h"

namespace yoke::tests {
namespace {

enum class Looking { kAtFacts, kMeasuring };

// Faults as "fault NODE [HALF]", several joined by " + "; findings as "rule node subject", several joined by "; ",
// where A and B are the rails of port 0, A1 and B1, in a ring, those of port 1.
struct Reported {
  const char* faults;
  const char* findings;
  Looking looking = Looking::kAtFacts;
};

// Where each node has one cable: two nodes, or a switch.
constexpr Reported kOneCable[] = {
    {"cable-pulled 1", "port-down spark-1 port 0"},
    {"cable-pulled 2", "port-down spark-2 port 0"},
    {"rail-down 1 A", "rail-down spark-1 A"},
    {"rail-down 2 B", "rail-down spark-2 B"},
    {"rail-unaddressed 1 B", "rail-unaddressed spark-1 B"},
    {"rail-unaddressed 2 A", "rail-unaddressed spark-2 A"},
    {"mtu-mismatch 1 A", "mtu-differs spark-1 A"},
    {"mtu-mismatch 2 B", "mtu-differs spark-2 B"},
    {"same-subnet 1", "subnet-shared spark-1 B"},
    {"same-subnet 2", "subnet-shared spark-2 B"},
    {"gid-drift 2 B", ""},  // nobody pinned the index
    {"narrow-pcie 1 A", "pcie-narrow spark-1 A"},
    {"narrow-pcie 2 B", "pcie-narrow spark-2 B"},
    {"management-only 1", "route-elsewhere spark-1 enP7s7"},
    {"management-only 2", "route-elsewhere spark-2 enP7s7"},
    {"port-speed-100 1", "port-slow spark-1 A"},
    {"port-speed-100 2", "port-slow spark-2 A"},
    {"firewall 1", "firewall spark-1 A"},
    {"firewall 2", "firewall spark-2 A"},
    {"power-off 2", "node-unreachable spark-2 -"},
};
// A cable is slow in both directions, and told of its first node.
constexpr Reported kSlowRail[] = {
    {"slow-rail 1 A", "rail-degraded spark-1 A", Looking::kMeasuring},
    {"slow-rail 2 B", "rail-degraded spark-1 B", Looking::kMeasuring},
};
// Behind a switch what the node sends is slow.
constexpr Reported kSlowRailBehindSwitch[] = {
    {"slow-rail 1 A", "rail-degraded spark-1 A", Looking::kMeasuring},
    {"slow-rail 3 B", "rail-degraded spark-3 B", Looking::kMeasuring},
};

// In a ring a node's fault is on both of its cables.
constexpr Reported kRing[] = {
    {"cable-pulled 2", "port-down spark-2 port 0; port-down spark-2 port 1"},
    {"rail-down 1 B", "rail-down spark-1 B; rail-down spark-1 B1"},
    {"rail-down 3 A", "rail-down spark-3 A; rail-down spark-3 A1"},
    {"rail-unaddressed 2 A", "rail-unaddressed spark-2 A; rail-unaddressed spark-2 A1"},
    {"mtu-mismatch 3 B", "mtu-differs spark-3 B; mtu-differs spark-3 B1"},
    {"same-subnet 1", "subnet-shared spark-1 B; subnet-shared spark-1 B1"},
    {"gid-drift 2 A", ""},
    {"narrow-pcie 3 B", "pcie-narrow spark-3 B"},  // both ports' rails share one PCIe link
    {"management-only 2", "route-elsewhere spark-2 enP7s7"},
    {"port-speed-100 2", "port-slow spark-2 A; port-slow spark-2 A1"},
    {"firewall 2", "firewall spark-2 A1"},  // where spark-1, the first to try, meets it
    {"power-off 3", "node-unreachable spark-3 -"},
    {"slow-rail 2 B", "rail-degraded spark-1 B; rail-degraded spark-2 B", Looking::kMeasuring},
    {"rail-down 1 A + mtu-mismatch 3 B",
     "rail-down spark-1 A; rail-down spark-1 A1; mtu-differs spark-3 B; mtu-differs spark-3 B1"},
    {"management-only 1 + narrow-pcie 2 A", "route-elsewhere spark-1 enP7s7; pcie-narrow spark-2 A"},
    {"power-off 2 + firewall 3", "node-unreachable spark-2 -; firewall spark-3 A"},
};

// In a mesh A, B and A1 are links to three nodes.
constexpr Reported kMesh[] = {
    {"cable-pulled 2", "rail-down spark-2 A; rail-down spark-2 B; rail-down spark-2 A1"},
    {"rail-down 1 B", "rail-down spark-1 B"},
    {"rail-unaddressed 2 B", "rail-unaddressed spark-2 B"},
    {"mtu-mismatch 3 B", "mtu-differs spark-3 B"},
    {"same-subnet 1", "subnet-shared spark-1 B"},
    {"gid-drift 2 A", ""},
    {"narrow-pcie 3 B", "pcie-narrow spark-3 B"},
    {"management-only 2", "route-elsewhere spark-2 enP7s7"},
    {"firewall 2", "firewall spark-2 A"},
    {"slow-rail 2 B", "rail-degraded spark-2 B", Looking::kMeasuring},
    {"rail-down 1 B + mtu-mismatch 3 A", "rail-down spark-1 B; mtu-differs spark-3 A; mtu-differs spark-3 A1"},
};

// Two faults at once, as people meet them: each is reported, the one does not hide or colour the other.
constexpr Reported kPairs[] = {
    {"rail-down 1 A + mtu-mismatch 2 B", "rail-down spark-1 A; mtu-differs spark-2 B"},
    {"rail-down 1 A + rail-down 2 B", "rail-down spark-1 A; rail-down spark-2 B"},
    {"rail-down 1 B + firewall 2", "rail-down spark-1 B; firewall spark-2 A"},
    {"rail-unaddressed 1 B + rail-unaddressed 2 B", "rail-unaddressed spark-1 B; rail-unaddressed spark-2 B"},
    {"rail-unaddressed 1 B + mtu-mismatch 2 B", "mtu-differs spark-2 B; rail-unaddressed spark-1 B"},
    {"same-subnet 1 + same-subnet 2", "subnet-shared spark-1 B; subnet-shared spark-2 B"},
    {"firewall 1 + firewall 2", "firewall spark-1 A; firewall spark-2 A"},
    {"firewall 2 + management-only 1", "route-elsewhere spark-1 enP7s7; firewall spark-2 A"},
    {"cable-pulled 1 + narrow-pcie 2 B", "port-down spark-1 port 0; pcie-narrow spark-2 B"},
    {"narrow-pcie 1 B + port-speed-100 2", "pcie-narrow spark-1 B; port-slow spark-2 A"},
};
constexpr Reported kPairsMeasured[] = {
    {"slow-rail 1 B + mtu-mismatch 2 A", "mtu-differs spark-2 A; rail-degraded spark-1 B", Looking::kMeasuring},
    {"slow-rail 1 B + narrow-pcie 2 A", "rail-degraded spark-1 B; pcie-narrow spark-2 A", Looking::kMeasuring},
    // What a firewall swallows cannot be measured: the slow rail is told when it is gone.
    {"slow-rail 1 B + firewall 2", "firewall spark-2 A", Looking::kMeasuring},
    // A machine that is off takes the link with it, and its MTU is nobody's concern before it is back.
    {"power-off 2 + mtu-mismatch 1 B", "node-unreachable spark-2 -"},
};

void make_faults(const TestLab& lab, const std::string& faults) {
  for (const std::string& fault : split(faults, '+')) {
    const std::vector<std::string> words = split(trim(fault), ' ');
    std::vector<std::string> arguments = {"lab", "fault", "--name", lab.name, words.at(0), "--node", words.at(1)};
    if (words.size() > 2) arguments.insert(arguments.end(), {"--rail", words[2]});
    const Outcome outcome = lab.yoke(arguments);
    ASSERT_EQ(outcome.exit_status, 0) << fault << ": " << outcome.err;
  }
}

std::string in_order(const std::string& text, char separator) {
  std::vector<std::string> lines;
  for (const std::string& line : split(text, separator)) {
    if (!trim(line).empty()) lines.emplace_back(trim(line));
  }
  std::sort(lines.begin(), lines.end());
  std::string joined;
  for (const std::string& line : lines) joined += line + "\n";
  return joined;
}

std::string wanted_lines(const std::string& findings) {
  const std::pair<const char*, const char*> names[] = {
      {"A", "enp1s0f0np0"}, {"B", "enP2p1s0f0np0"}, {"A1", "enp1s0f1np1"}, {"B1", "enP2p1s0f1np1"}};
  std::string lines;
  for (const std::string& finding : split(findings, ';')) {
    std::vector<std::string> words = split(trim(finding), ' ');
    for (const auto& [word, name] : names) {
      if (words.back() == word) words.back() = name;
    }
    lines += fmt::format("{}\n", fmt::join(words, " "));
  }
  return in_order(lines, '\n');
}

std::string check_once(const TestLab& lab, Looking looking) {
  lab.settle();
  std::vector<std::string> arguments = {"check", "--json", "--timeout", "10s"};
  if (looking == Looking::kAtFacts) arguments.emplace_back("--no-measure");
  return in_order(findings_in(lab.yoke(arguments, Seconds{400})), '\n');
}

enum class CleanAfter { kEach, kLast };
void expect_reported(const TestLab& lab, std::span<const Reported> table, CleanAfter clean_after = CleanAfter::kEach) {
  for (const Reported& reported : table) {
    SCOPED_TRACE(reported.faults);
    make_faults(lab, reported.faults);
    const std::string wanted = wanted_lines(reported.findings);
    EXPECT_EQ(check_once(lab, reported.looking), wanted);
    ASSERT_EQ(lab.yoke({"lab", "fault", "--name", lab.name, "clear"}).exit_status, 0);
    if (clean_after == CleanAfter::kLast && &reported != &table.back()) continue;
    EXPECT_EQ(check_once(lab, Looking::kAtFacts), "") << "after clear";
  }
}

TEST(LabCheck, PairsOfFaultsAreBothNamedAndNothingElseIs) {
  if (const auto why = why_no_labs({"nft", "ping"})) GTEST_SKIP() << *why;
  expect_reported(TestLab({"--nodes", "2"}), kPairs, CleanAfter::kLast);
}

// Other faults than the lab's own, made and unmade with a shell on one node; A and B are the interfaces of its rails.
struct MadeByHand {
  const char* what;
  const char* node;
  const char* make;
  const char* unmake;
  const char* findings;
  Looking looking = Looking::kAtFacts;
};
constexpr MadeByHand kByHand[] = {
    {"a host's prefix on a rail", "2", "ip addr del 192.168.100.2/24 dev $A; ip addr add 192.168.100.2/32 dev $A",
     "ip addr del 192.168.100.2/32 dev $A; ip addr add 192.168.100.2/24 dev $A", "prefix-differs spark-2 A"},
    {"a wide prefix on a rail", "1", "ip addr del 192.168.100.1/24 dev $A; ip addr add 192.168.100.1/16 dev $A",
     "ip addr del 192.168.100.1/16 dev $A; ip addr add 192.168.100.1/24 dev $A", "prefix-differs spark-1 A"},
    {"makeshift addresses beside the proper ones", "2",
     "ip addr add 169.254.9.1/16 dev $A; ip addr add 169.254.9.2/16 dev $B",
     "ip addr del 169.254.9.1/16 dev $A; ip addr del 169.254.9.2/16 dev $B", ""},
    {"the peer's address too", "2", "ip addr add 192.168.101.1/24 dev $B", "ip addr del 192.168.101.1/24 dev $B",
     "address-twice spark-2 B"},
    {"the peer's address instead", "2", "ip addr del 192.168.101.2/24 dev $B; ip addr add 192.168.101.1/24 dev $B",
     "ip addr del 192.168.101.1/24 dev $B; ip addr add 192.168.101.2/24 dev $B", "address-twice spark-2 B"},
    {"a rail's address on the management port", "2",
     "ip addr del 192.168.101.2/24 dev $B; ip addr add 192.168.101.2/24 dev enP7s7",
     "ip addr del 192.168.101.2/24 dev enP7s7; ip addr add 192.168.101.2/24 dev $B", "rail-unaddressed spark-2 B"},
    {"the management port in a rail's network", "2", "ip addr add 192.168.101.77/24 dev enP7s7",
     "ip addr del 192.168.101.77/24 dev enP7s7", "subnet-shared spark-2 enP7s7"},
    {"a static route for one rail", "1", "ip route add 192.168.101.2/32 via 10.77.0.2", "ip route del 192.168.101.2/32",
     "route-elsewhere spark-1 enP7s7"},
    {"a host's route by the other rail", "1", "ip route add 192.168.100.2/32 dev $B", "ip route del 192.168.100.2/32",
     "route-elsewhere spark-1 B"},
    {"a route over both rails", "1", "ip route add 192.168.101.2/32 nexthop dev $A nexthop dev $B",
     "ip route del 192.168.101.2/32", "route-elsewhere spark-1 A"},
    {"a rule that leads to another table", "2",
     "ip route add default via 10.77.0.1 table 77; ip rule add to 192.168.101.1 lookup 77 pref 100",
     "ip rule del pref 100; ip route flush table 77", "route-elsewhere spark-2 enP7s7"},
    {"a rule for what is answered", "2",
     "ip route add default via 10.77.0.1 table 77; ip rule add from 192.168.101.2 lookup 77 pref 100",
     "ip rule del pref 100; ip route flush table 77", "route-elsewhere spark-2 enP7s7"},
    {"a rail's own route is gone", "2", "ip route del 192.168.101.0/24 dev $B",
     "ip route add 192.168.101.0/24 dev $B src 192.168.101.2 proto kernel scope link", "route-missing spark-2 B"},
    {"a black hole", "1", "ip route add blackhole 192.168.101.2/32", "ip route del blackhole 192.168.101.2/32",
     "route-missing spark-1 B"},
    {"IPv6 only", "2", "ip addr del 192.168.101.2/24 dev $B", "ip addr add 192.168.101.2/24 dev $B",
     "rail-unaddressed spark-2 B"},
    {"a pinned neighbour", "1", "ip neigh replace 192.168.101.2 lladdr 02:00:00:00:00:99 dev $B nud permanent",
     "ip neigh del 192.168.101.2 dev $B", "rail-silent spark-1 B"},
    {"an absent device in the environment", "2",
     "cp /etc/environment /run/e; echo NCCL_IB_HCA=mlx5_9 >> /etc/environment", "cat /run/e > /etc/environment",
     "pin-absent spark-2 NCCL_IB_HCA"},
    {"an absent device in setup's environment file", "2",
     "cp /etc/yoke/fabric.env /run/e; sed -i s/NCCL_IB_HCA=.*/NCCL_IB_HCA=mlx5_9/ /etc/yoke/fabric.env",
     "cat /run/e > /etc/yoke/fabric.env", "pin-absent spark-2 NCCL_IB_HCA"},
    {"RDMA switched off for every login", "2", "echo export NCCL_IB_DISABLE=1 > /etc/profile.d/zz-nccl.sh",
     "rm /etc/profile.d/zz-nccl.sh", "pin-no-rdma spark-2 NCCL_IB_DISABLE"},
    {"the port without a cable in the environment", "2",
     "cp /etc/environment /run/e; echo NCCL_SOCKET_IFNAME=enp1s0f1np1 >> /etc/environment",
     "cat /run/e > /etc/environment", "pin-unusable spark-2 NCCL_SOCKET_IFNAME"},
    {"one rail excluded in setup's environment file", "2",
     "cp /etc/yoke/fabric.env /run/e; sed -i 's/NCCL_IB_HCA=.*/NCCL_IB_HCA=^roceP2p1s0f0/' /etc/yoke/fabric.env",
     "cat /run/e > /etc/yoke/fabric.env", "pin-one-rail spark-2 NCCL_IB_HCA"},
    {"the rails' addresses swapped", "2",
     "ip addr flush dev $A; ip addr flush dev $B; ip addr add 192.168.100.2/24 dev $B; "
     "ip addr add 192.168.101.2/24 dev $A",
     "ip addr flush dev $A; ip addr flush dev $B; ip addr add 192.168.100.2/24 dev $A; "
     "ip addr add 192.168.101.2/24 dev $B",
     "subnet-differs spark-2 A; subnet-differs spark-2 B"},
    {"a firewall for what leaves", "2",
     "nft add table inet x; nft 'add chain inet x o { type filter hook output priority 0; }'; "
     "nft add rule inet x o oifname $B tcp flags '& (syn|ack) == syn' drop",
     "nft delete table inet x", "firewall spark-2 B"},
    {"a firewall that lets nothing in but ssh", "2",
     "nft add table inet x; nft 'add chain inet x i { type filter hook input priority 0; policy drop; }'; "
     "nft add rule inet x i ct state established,related accept; nft add rule inet x i tcp dport 22 accept; "
     "nft add rule inet x i iif lo accept",
     "nft delete table inet x", "firewall spark-2 A"},
    {"a login that is not let in any more", "2", "mv /root/.ssh/authorized_keys /root/.ssh/kept",
     "mv /root/.ssh/kept /root/.ssh/authorized_keys", "ssh-asks spark-2 -"},
    {"a firewall that rejects by ICMP", "2",
     "nft add table inet x; nft 'add chain inet x i { type filter hook input priority 0; }'; "
     "nft add rule inet x i iifname $B tcp flags '& (syn|ack) == syn' reject",
     "nft delete table inet x", "firewall spark-2 B"},
    {"a firewall that prohibits", "1",
     "nft add table inet x; nft 'add chain inet x i { type filter hook input priority 0; }'; "
     "nft add rule inet x i iifname $A tcp flags '& (syn|ack) == syn' reject with icmpx admin-prohibited",
     "nft delete table inet x", "firewall spark-1 A"},
    {"a firewall that resets", "2",  // as a port that nobody serves: told once yoke itself listens there
     "nft add table inet x; nft 'add chain inet x i { type filter hook input priority 0; }'; "
     "nft add rule inet x i iifname $B tcp flags '& (syn|ack) == syn' reject with tcp reset",
     "nft delete table inet x", "firewall spark-2 B", Looking::kMeasuring},
    {"no answer to pings", "2",  // and all else passes: nothing is wrong
     "nft add table inet x; nft 'add chain inet x i { type filter hook input priority 0; }'; "
     "nft add rule inet x i iifname $B meta l4proto icmp drop",
     "nft delete table inet x", ""},
    {"a hundredth of what arrives is lost", "2",
     "nft add table inet x; nft 'add chain inet x i { type filter hook input priority 0; }'; "
     "nft add rule inet x i iifname $B numgen random mod 100 == 0 drop",
     "nft delete table inet x", "rail-lossy spark-1 B", Looking::kMeasuring},
    {"a two-hundredth is lost on the other rail", "1",
     "nft add table inet x; nft 'add chain inet x i { type filter hook input priority 0; }'; "
     "nft add rule inet x i iifname $A numgen random mod 200 == 0 drop",
     "nft delete table inet x", "rail-lossy spark-2 A", Looking::kMeasuring},
};

// On a ring of four.
constexpr MadeByHand kByHandInARing[] = {
    {"a ring's route is gone", "1", "ip route del 192.168.110.3", "ip route add 192.168.110.3 via 192.168.100.2",
     "ring-path spark-1 ring"},
    {"a filter drops what is forwarded", "2",
     "nft add table inet x; nft 'add chain inet x f { type filter hook forward priority 0; policy drop; }'",
     "nft delete table inet x", "docker-forward spark-2 nft forward"},
    {"a filter drops what is forwarded, but for the ring's", "2",
     "nft add table inet x; nft 'add chain inet x f { type filter hook forward priority 0; policy drop; }'; "
     "nft add rule inet x f ip saddr 192.168.0.0/16 ip daddr 192.168.0.0/16 accept",
     "nft delete table inet x", ""},
    {"a filter drops what is forwarded, but for another network's", "2",
     "nft add table inet x; nft 'add chain inet x f { type filter hook forward priority 0; policy drop; }'; "
     "nft add rule inet x f ip saddr 10.0.0.0/8 accept",
     "nft delete table inet x", "docker-forward spark-2 nft forward"},
    {"a filter drops some of what is forwarded", "2",
     "nft add table inet x; nft 'add chain inet x f { type filter hook forward priority 0; }'; "
     "nft add rule inet x f ip saddr 192.168.0.0/16 drop",
     "nft delete table inet x", "ring-path spark-2 -"},
    {"one rail, by which packets come, does not forward", "3", "sysctl -q -w net.ipv4.conf.enp1s0f1np1.forwarding=0",
     "sysctl -q -w net.ipv4.conf.enp1s0f1np1.forwarding=1", "ring-path spark-3 ring"},
    {"answers are filtered by their way", "3", "sysctl -q -w net.ipv4.conf.enp1s0f1np1.rp_filter=1",
     "sysctl -q -w net.ipv4.conf.enp1s0f1np1.rp_filter=0", "ring-path spark-3 ring"},
    {"no answer to pings", "4",
     "nft add table inet x; nft 'add chain inet x i { type filter hook input priority 0; }'; "
     "nft add rule inet x i meta l4proto icmp drop",
     "nft delete table inet x", ""},
};

struct SoakCheck : testing::Test {
  void SetUp() override {
    if (const auto why = why_no_labs({"nft", "ping", "netplan"})) GTEST_SKIP() << *why;
    if (!std::getenv("YOKE_CHECK_SOAK")) GTEST_SKIP() << "takes minutes: scripts/soak-check runs it";
  }
};

// From the factory's state by yoke's own commands, as a user does it.
void bring_up(const TestLab& lab) {
  const Outcome found = lab.yoke({"link", "discover", "-o", "cluster.yaml", "--force", "--json"});
  ASSERT_EQ(found.exit_status, 0) << found.out << found.err;
  EXPECT_EQ(findings_in(found), "");
  const Outcome setup = lab.yoke({"link", "setup", "--yes"});
  ASSERT_EQ(setup.exit_status, 0) << setup.out << setup.err;
  const Outcome test = lab.yoke({"link", "test", "--seconds", "0.5", "--no-all-reduce", "--json"}, Seconds{400});
  EXPECT_EQ(findings_in(test), "");
  EXPECT_EQ(test.exit_status, 0) << test.err;
  const Outcome check = lab.yoke({"check", "--json"}, Seconds{400});
  EXPECT_EQ(findings_in(check), "");
  EXPECT_EQ(check.exit_status, 0) << check.err;
}

TEST_F(SoakCheck, TwoNodesWithACable) {
  const TestLab lab({"--nodes", "2", "--unconfigured"});
  ASSERT_NO_FATAL_FAILURE(bring_up(lab));
  for (const auto table : {std::span<const Reported>(kOneCable), std::span<const Reported>(kSlowRail),
                           std::span<const Reported>(kPairs), std::span<const Reported>(kPairsMeasured)}) {
    expect_reported(lab, table);
  }
}

void expect_reported_by_hand(const TestLab& lab, std::span<const MadeByHand> table) {
  const auto run_there = [&](const char* node, const std::string& script) {
    const Outcome outcome = lab.exec(node, {"sh", "-ec", "A=enp1s0f0np0; B=enP2p1s0f0np0; " + script});
    EXPECT_EQ(outcome.exit_status, 0) << script << outcome.err;
  };
  for (const MadeByHand& fault : table) {
    SCOPED_TRACE(fault.what);
    run_there(fault.node, fault.make);
    const std::string wanted = wanted_lines(fault.findings);
    EXPECT_EQ(check_once(lab, fault.looking), wanted);
    run_there(fault.node, fault.unmake);
    EXPECT_EQ(check_once(lab, Looking::kAtFacts), "") << "after it was unmade";
  }
}

TEST_F(SoakCheck, FaultsMadeByHand) {
  const TestLab lab({"--nodes", "2", "--unconfigured"});
  ASSERT_NO_FATAL_FAILURE(bring_up(lab));
  expect_reported_by_hand(lab, kByHand);
}

TEST(LabCheck, WhatBreaksAWayAroundARingIsReportedForItsNode) {
  if (const auto why = why_no_labs({"nft", "ping"})) GTEST_SKIP() << *why;
  const TestLab lab({"--nodes", "4", "--topology", "ring"});
  expect_reported_by_hand(lab, kByHandInARing);
}

TEST_F(SoakCheck, ThreeNodesInARing) {
  const TestLab lab({"--nodes", "3", "--topology", "ring", "--unconfigured"});
  ASSERT_NO_FATAL_FAILURE(bring_up(lab));
  expect_reported(lab, kRing);
}

TEST_F(SoakCheck, FourNodesInARing) {
  const TestLab lab({"--nodes", "4", "--topology", "ring", "--unconfigured"});
  ASSERT_NO_FATAL_FAILURE(bring_up(lab));
  expect_reported(lab, kRing);
}

TEST_F(SoakCheck, FourNodesInAMesh) {
  const TestLab lab({"--nodes", "4", "--topology", "mesh", "--unconfigured"});
  ASSERT_NO_FATAL_FAILURE(bring_up(lab));
  expect_reported(lab, kMesh);
}

TEST_F(SoakCheck, FourNodesAtASwitch) {
  const TestLab lab({"--nodes", "4", "--topology", "switch", "--unconfigured"});
  ASSERT_NO_FATAL_FAILURE(bring_up(lab));
  for (const auto table : {std::span<const Reported>(kOneCable), std::span<const Reported>(kSlowRailBehindSwitch),
                           std::span<const Reported>(kPairs)}) {
    expect_reported(lab, table);
  }
}

}  // namespace
}  // namespace yoke::tests

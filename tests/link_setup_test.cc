// What 'yoke link setup' replaces: addresses that somebody else gave go, and come back with 'yoke link undo'.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/check_findings.h"
#include "tests/lab_fixture.h"
#include "tests/terminal.h"
#include "yoke/spec/cluster.h"

namespace yoke::tests {
namespace {

using testing::HasSubstr;
using testing::Not;

struct LinkSetupReplaces : testing::Test {
  void SetUp() override {
    if (const auto why = why_no_labs()) GTEST_SKIP() << *why;
  }
};

// Addresses, routes and links as 'ip' tells them. Its local table is the kernel's own book-keeping.
std::string network_of(const TestLab& lab) {
  std::string text;
  for (const char* node : {"1", "2"}) {
    text += lab.exec(node, {"sh", "-c",
                            "ip -4 address; ip -4 route show table all | grep -v 'table local'; "
                            "ip -o link | cut -d'\\' -f1"})
                .out;
  }
  return text;
}

void run_on_nodes(const TestLab& lab, const std::vector<std::string>& scripts) {
  for (std::size_t i = 0; i < scripts.size(); ++i) {
    const Outcome outcome = lab.exec(std::to_string(i + 1), {"sh", "-ec", scripts[i]});
    ASSERT_TRUE(outcome.ok()) << outcome.describe() << outcome.err;
  }
}

// An interrupt is no "no": a script that goes on after it must see that nothing was decided.
TEST_F(LinkSetupReplaces, NothingAtCtrlCAndTheStatusSaysSo) {
  const TestLab lab;
  const std::string before = network_of(lab);
  Terminal terminal(lab.folder, {"link", "setup"});
  ASSERT_TRUE(terminal.shows(" (d: show them in full)? [y/N] ")) << terminal.screen();
  // What changes fits a screen; the files themselves come when asked for.
  EXPECT_THAT(terminal.screen(), HasSubstr("netplan file (keeps it after a reboot) (spark-1, spark-2)"));
  EXPECT_THAT(terminal.screen(), Not(HasSubstr("ethernets:")));
  terminal.type("d\n");
  ASSERT_TRUE(terminal.shows("ethernets:")) << terminal.screen();
  terminal.type("\x03");
  EXPECT_EQ(terminal.exit_status(), 130) << terminal.screen();
  EXPECT_EQ(network_of(lab), before);
}

TEST_F(LinkSetupReplaces, TheSharedSubnetOfNvidiasScriptByOneForEachRailAndUndoBringsItBack) {
  const TestLab lab({"--unconfigured"});
  // With what an owner may have added: a second address, a route over the first rail, one in a table of its own.
  run_on_nodes(lab, {"ip addr add 192.168.0.1/24 dev enp1s0f0np0; ip addr add 192.168.0.2/24 dev enP2p1s0f0np0",
                     "ip addr add 192.168.0.3/24 dev enp1s0f0np0; ip addr add 192.168.0.4/24 brd + dev enP2p1s0f0np0; "
                     "ip addr add 192.168.0.14/24 dev enP2p1s0f0np0 label enP2p1s0f0np0:1; "
                     "ip route add 10.9.0.0/16 via 192.168.0.9 dev enp1s0f0np0; "
                     "ip route add 10.0.9.0/24 dev enP2p1s0f0np0 table 101"});
  const std::string before = network_of(lab);
  ASSERT_TRUE(lab.yoke({"link", "discover", "--new-addresses", "-o", "new.yaml"}).ok());
  const Outcome dry = lab.yoke({"link", "setup", "--dry-run", "--cluster", "new.yaml"});
  EXPECT_THAT(dry.out, HasSubstr("ip address add 192.168.100.2/24 dev enp1s0f0np0\n"
                                 "      ip address del 192.168.0.3/24 dev enp1s0f0np0"));
  EXPECT_EQ(network_of(lab), before) << "a dry run changes nothing";

  const Outcome setup = lab.yoke({"link", "setup", "--yes", "--cluster", "new.yaml"});
  ASSERT_EQ(setup.exit_status, 0) << setup.err;
  EXPECT_THAT(network_of(lab), Not(HasSubstr("inet 192.168.0.")));
  EXPECT_THAT(network_of(lab), Not(HasSubstr("192.168.0.0/24")));
  EXPECT_EQ(findings_in(lab.yoke({"check", "--no-measure", "--json", "--cluster", "new.yaml"})), "");

  const Outcome undo = lab.yoke({"link", "undo", "--yes", "--cluster", "new.yaml"});
  ASSERT_EQ(undo.exit_status, 0) << undo.err;
  EXPECT_EQ(network_of(lab), before);
}

TEST_F(LinkSetupReplaces, AWrongPrefixLengthByTheClusterFiles) {
  const TestLab lab;
  for (const char* length : {"/16", "/25", "/32"}) {
    SCOPED_TRACE(length);
    run_on_nodes(lab, {"", fmt::format("ip addr flush dev enP2p1s0f0np0; ip addr add 192.168.101.2{} dev enP2p1s0f0np0",
                                       length)});
    const std::string before = network_of(lab);
    const Outcome setup = lab.yoke({"link", "setup", "--yes"});
    ASSERT_EQ(setup.exit_status, 0) << setup.err;
    EXPECT_EQ(findings_in(lab.yoke({"check", "--no-measure", "--json"})), "");
    EXPECT_THAT(lab.exec("2", {"ip", "-4", "-o", "address", "show", "dev", "enP2p1s0f0np0"}).out,
                HasSubstr("192.168.101.2/24"));
    ASSERT_EQ(lab.yoke({"link", "undo", "--yes"}).exit_status, 0);
    EXPECT_EQ(network_of(lab), before);
  }
}

TEST_F(LinkSetupReplaces, NothingWhereSshComesInByIt) {
  const TestLab lab;
  // The cluster file has a name; only ssh knows that it leads to the rail that gets another address.
  spec::Cluster cluster = spec::load_cluster(lab.folder / "cluster.yaml");
  cluster.nodes[1].address = "far";
  cluster.nodes[1].rails[0].address = *parse_ipv4_prefix("192.168.100.77/24");
  write_file_atomically(lab.folder / "named.yaml", spec::print_cluster(cluster));
  run_on_nodes(lab, {"echo '192.168.100.2 far' >> /etc/hosts; sed 's/^[^ ]*/far/' /root/.ssh/known_hosts > /run/k; "
                     "cat /run/k >> /root/.ssh/known_hosts"});
  const std::string before = network_of(lab);
  const Outcome setup = lab.yoke({"link", "setup", "--yes", "--cluster", "named.yaml"});
  EXPECT_EQ(setup.exit_status, 4) << setup.out << setup.err;
  EXPECT_THAT(setup.err, HasSubstr("enp1s0f0np0 is where ssh reaches spark-2 (192.168.100.2)"));
  EXPECT_EQ(network_of(lab), before);
}

TEST_F(LinkSetupReplaces, NothingWhileAnotherNetplanProfileMeansARail) {
  if (!find_program("netplan")) GTEST_SKIP() << "netplan is not installed";
  const TestLab lab;
  run_on_nodes(lab,
               {"",
                "printf 'network:\\n  version: 2\\n  ethernets:\\n    NM-aaaa:\\n      match: {name: enp1s0f0np0}\\n"
                "      dhcp4: true\\n      mtu: 1500\\n' > /etc/netplan/90-NM-aaaa.yaml; "
                "chmod 600 /etc/netplan/90-NM-aaaa.yaml; netplan generate --root-dir /"});
  const std::string before = network_of(lab);
  const Outcome setup = lab.yoke({"link", "setup", "--yes"});
  EXPECT_EQ(setup.exit_status, 10) << setup.out << setup.err;
  EXPECT_THAT(setup.err, HasSubstr("/etc/netplan/90-NM-aaaa.yaml: 'NM-aaaa' also configures enp1s0f0np0"));
  EXPECT_THAT(setup.err, HasSubstr("nmcli connection"));
  EXPECT_THAT(setup.err, HasSubstr("spark-2"));
  EXPECT_EQ(network_of(lab), before);
  ASSERT_TRUE(lab.exec("2", {"rm", "/etc/netplan/90-NM-aaaa.yaml"}).ok());
  EXPECT_EQ(lab.yoke({"link", "setup", "--yes"}).exit_status, 0);
}

}  // namespace
}  // namespace yoke::tests

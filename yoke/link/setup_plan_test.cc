#include "yoke/link/setup_plan.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "yoke/base/error.h"
#include "yoke/base/error_testing.h"
#include "yoke/base/process.h"
#include "yoke/link/cluster_testing.h"
#include "yoke/link/environment_file.h"

namespace yoke::link {
namespace {

SetupFacts facts_of_a_spark() {
  return {.management_interface = "enP7s7",
          .public_key = "ssh-ed25519 AAAAuser nvidia@spark",
          .host_keys = {"ssh-ed25519 AAAAhost"},
          .rdma_devices = {"rocep1s0f0", "roceP2p1s0f0"},
          .netplan = true,
          .systemd = true};
}

std::vector<NetplanInterface> two_interfaces() {
  return {{"enp1s0f0np0", *parse_ipv4_prefix("192.168.100.1/24"), {}},
          {"enP2p1s0f0np0", *parse_ipv4_prefix("192.168.101.1/24"), {{"192.168.110.3/32", "192.168.101.2"}}}};
}

TEST(Netplan, IsWhatNetplanItselfAccepts) {
  const std::string text = render_netplan(two_interfaces(), 9000);
  EXPECT_NE(text.find("    enp1s0f0np0:\n"), std::string::npos);
  EXPECT_NE(text.find("mtu: 9000\n      addresses: [192.168.101.1/24]\n      routes:\n"
                      "        - { to: 192.168.110.3/32, via: 192.168.101.2 }\n"),
            std::string::npos)
      << text;
  if (!is_installed("netplan")) GTEST_SKIP() << "netplan is not installed";
  EXPECT_NO_THROW(validate_netplan(text, kNetplanFile));
  EXPECT_ERROR(validate_netplan("network: { version: 2, ethernets: { a: { adresses: [] } } }", kNetplanFile),
               ErrorCode::kInvalid, "unknown key 'adresses'");
}

TEST(Netplan, WhatItLetsPassIsRefused) {
  EXPECT_ERROR(render_netplan(two_interfaces(), 99999999), ErrorCode::kInvalid, "an MTU of 99999999");
  EXPECT_ERROR(render_netplan(two_interfaces(), 68), ErrorCode::kInvalid, "an MTU of 68");
  auto twice = two_interfaces();
  twice[1].name = twice[0].name;
  EXPECT_ERROR(render_netplan(twice, 9000), ErrorCode::kInvalid, "enp1s0f0np0 is there twice");
  auto shared = two_interfaces();
  shared[1].address = *parse_ipv4_prefix("192.168.100.9/24");
  EXPECT_ERROR(render_netplan(shared, 9000), ErrorCode::kInvalid, "are in one subnet");
}

TEST(SetupPlan, RefusesAFileThatOmitsACabledRail) {
  spec::Cluster cluster = test_pair();
  SetupFacts facts = facts_of_a_spark();
  facts.rails = {"enp1s0f0np0", "enP2p1s0f0np0"};
  EXPECT_NO_THROW(node_steps(cluster, 0, facts));
  cluster.nodes[0].rails.pop_back();
  facts.rdma_devices.pop_back();
  EXPECT_ERROR(node_steps(cluster, 0, facts), ErrorCode::kInvalid, "enP2p1s0f0np0 of spark-1 has a cable");
  cluster.nodes[0].unused = {{"enP2p1s0f0np0", "a test of one rail"}};
  EXPECT_NO_THROW(node_steps(cluster, 0, facts));
}

TEST(FarRoutes, ThreeNodesReachEachOthersFarAddressesOverTheDirectCable) {
  const auto routes = far_routes(test_ring(3), 0);
  // Node 1 shares cables 0 and 2; of node 2 it lacks the addresses on cable 1, of node 3 too.
  ASSERT_EQ(routes.size(), 4U);
  EXPECT_EQ(routes[0].to, "192.168.110.2/32");
  EXPECT_EQ(routes[0].via, "192.168.100.2");
  EXPECT_EQ(routes[0].interface, "enp1s0f0np0");
  EXPECT_EQ(routes[1].to, "192.168.111.2/32");
  EXPECT_EQ(routes[1].interface, "enP2p1s0f0np0") << "rail B by rail B";
  EXPECT_EQ(routes[2].to, "192.168.110.3/32");
  EXPECT_EQ(routes[2].interface, "enp1s0f1np1");
  EXPECT_TRUE(far_routes(test_pair(), 0).empty());
}

TEST(FarRoutes, FourNodesGoRoundToTheFarOne) {
  const auto routes = far_routes(test_ring(4), 0);
  // Two far addresses of each neighbour and all four of the node opposite, over the next one.
  EXPECT_EQ(routes.size(), 8U);
  const auto opposite = std::count_if(routes.begin(), routes.end(), [](const FarRoute& route) {
    return route.to.ends_with(".3/32") && (route.via == "192.168.100.2" || route.via == "192.168.101.2");
  });
  EXPECT_EQ(opposite, 4);
}

TEST(FarRoutes, InAMeshLeadOverTheLinkToTheNode) {
  const spec::Cluster mesh = test_mesh();
  for (std::size_t node = 0; node < mesh.nodes.size(); ++node) {
    const auto routes = far_routes(mesh, node);
    EXPECT_EQ(routes.size(), 6U) << "two other addresses of each of three";
    for (const FarRoute& route : routes) {
      EXPECT_EQ(route.to.substr(route.to.rfind('.')), route.via.substr(route.via.rfind('.')) + "/32")
          << "the node that has the address is the next one";
    }
  }
  SetupFacts facts = facts_of_a_spark();
  facts.rdma_devices.emplace_back("rocep1s0f1");
  const auto steps = node_steps(mesh, 0, facts);
  const auto sets = [&](std::string_view name) {
    return std::any_of(steps.begin(), steps.end(), [&](const Step& step) { return step.path == name; });
  };
  EXPECT_TRUE(sets("net.ipv6.conf.enp1s0f1np1.disable_ipv6"));
  EXPECT_FALSE(sets("net.ipv4.ip_forward")) << "nobody passes anything on";
  EXPECT_FALSE(sets("net.ipv4.conf.all.rp_filter")) << "answers come by the way that they left";
}

TEST(SetupPlan, HasEveryPartInAnOrderThatCanBeUndone) {
  const auto steps = node_steps(test_pair(), 0, facts_of_a_spark());
  const auto place = [&](StepKind kind) {
    return std::find_if(steps.begin(), steps.end(), [&](const Step& step) { return step.kind == kind; });
  };
  EXPECT_EQ(steps.front().path, kNetplanFile);
  EXPECT_EQ(steps.front().mode, 0600);
  EXPECT_LT(place(StepKind::kInterface), place(StepKind::kSetting))
      << "IPv6 addresses are recorded before IPv6 is switched off";
  EXPECT_EQ(std::count_if(steps.begin(), steps.end(), [](const Step& s) { return s.kind == StepKind::kInterface; }), 2);
  EXPECT_NE(place(StepKind::kKeyPair), steps.end());
  for (const Step& step : steps) EXPECT_EQ(from_json<Step>(to_json(step)), step) << step.description;
  SetupFacts without = facts_of_a_spark();
  without.netplan = false;
  const auto bare = node_steps(test_pair(), 0, without);
  EXPECT_EQ(std::count_if(bare.begin(), bare.end(), [](const Step& s) { return s.kind == StepKind::kNetplan; }), 0);
}

TEST(SetupPlan, RefusesTheManagementInterfaceAndForeignSubnets) {
  SetupFacts facts = facts_of_a_spark();
  facts.management_interface = "enp1s0f0np0";
  EXPECT_ERROR(node_steps(test_pair(), 0, facts), ErrorCode::kInvalid, "ssh reaches spark-1 (10.77.0.1)");
  facts = facts_of_a_spark();
  facts.ssh_address = "192.168.0.1";  // behind a name in the cluster file; setup would take it away
  facts.ssh_interface = "enp1s0f0np0";
  EXPECT_ERROR(node_steps(test_pair(), 0, facts), ErrorCode::kInvalid, "ssh reaches spark-1 (192.168.0.1)");
  facts.ssh_address = "192.168.100.1";
  EXPECT_NO_THROW(node_steps(test_pair(), 0, facts)) << "it stays";
  spec::Cluster cluster = test_pair();
  cluster.fabric->subnets = {*parse_ipv4_prefix("192.168.7.0/24"), *parse_ipv4_prefix("192.168.8.0/24")};
  EXPECT_ERROR(node_steps(cluster, 0, facts_of_a_spark()), ErrorCode::kInvalid, "is in none of fabric.subnets");
}

TEST(SetupPlan, OnlyPublicKeysTravelAndHostKeysArePinnedForEveryName) {
  spec::Cluster cluster = test_pair();
  cluster.nodes[1].port = 2222;
  const auto steps = ssh_steps(cluster, 0, {facts_of_a_spark(), facts_of_a_spark()});
  ASSERT_EQ(steps.size(), 2U);
  EXPECT_EQ(steps[0].lines, (std::vector<std::string>{"ssh-ed25519 AAAAuser nvidia@spark"}));
  EXPECT_EQ(steps[1].lines,
            (std::vector<std::string>{"[spark-2]:2222,[10.77.0.2]:2222,[192.168.100.2]:2222,[192.168.101.2]:2222 "
                                      "ssh-ed25519 AAAAhost"}));
}

TEST(EnvironmentFile, PinsBothRailsExactlyAndNoGid) {
  const spec::Cluster cluster = test_pair();
  const std::string text = render_environment(cluster, cluster.nodes[0], facts_of_a_spark());
  for (const char* line : {"\nNCCL_IB_HCA==rocep1s0f0:1,roceP2p1s0f0:1\n", "\nNCCL_SOCKET_IFNAME==enp1s0f0np0\n",
                           "\nGLOO_SOCKET_IFNAME=enp1s0f0np0\n", "\nUCX_NET_DEVICES=rocep1s0f0:1,roceP2p1s0f0:1\n",
                           "\nOMPI_MCA_btl_tcp_if_include=192.168.100.0/24,192.168.101.0/24\n"}) {
    EXPECT_NE(text.find(line), std::string::npos) << line << text;
  }
  EXPECT_EQ(text.find("\nNCCL_IB_GID_INDEX"), std::string::npos) << "resolved at launch, never written down";
  EXPECT_EQ(text.find("MERGE_NICS"), std::string::npos);
}

TEST(EnvironmentFile, AProfileLeavesWhatIsSetAndAServiceReadsTheSame) {
  const spec::Cluster cluster = test_pair();
  const std::string profile = render_profile(cluster, cluster.nodes[0], facts_of_a_spark());
  const auto hca = [&](const std::string& before) {
    return run({.argv = {"sh", "-c", before + "eval \"$1\"; echo \"$NCCL_IB_HCA\"", "sh", profile}}).out;
  };
  EXPECT_EQ(hca(""), "=rocep1s0f0:1,roceP2p1s0f0:1\n");
  EXPECT_EQ(hca("NCCL_IB_HCA=mine; "), "mine\n");
  EXPECT_NE(render_user_services(cluster, cluster.nodes[0], facts_of_a_spark())
                .find("\nNCCL_IB_HCA=\"=rocep1s0f0:1,roceP2p1s0f0:1\"\n"),
            std::string::npos);
  const auto count = [&](ShellPins shell) { return node_steps(cluster, 0, facts_of_a_spark(), shell).size(); };
  EXPECT_EQ(count(ShellPins::kLogins), count(ShellPins::kNone) + 2);
}

TEST(EnvironmentFile, ARailWithoutRdmaPinsNoRailList) {
  const spec::Cluster cluster = test_pair();
  SetupFacts facts = facts_of_a_spark();
  facts.rdma_devices[1].clear();
  const std::string text = render_environment(cluster, cluster.nodes[0], facts);
  EXPECT_EQ(text.find("\nNCCL_IB_HCA="), std::string::npos);
  EXPECT_NE(text.find("\nUCX_NET_DEVICES=enp1s0f0np0,enP2p1s0f0np0\n"), std::string::npos);
}

TEST(EnvironmentFile, ARingMeetsOverManagementAndNeverMergesPorts) {
  const spec::Cluster cluster = test_ring(3);
  const std::string text = render_environment(cluster, cluster.nodes[0], facts_of_a_spark());
  EXPECT_NE(text.find("\nNCCL_SOCKET_IFNAME==enP7s7\n"), std::string::npos) << text;
  EXPECT_NE(text.find("\nNCCL_IB_SUBNET_AWARE_ROUTING=1\n"), std::string::npos);
  EXPECT_NE(text.find("\nNCCL_IB_MERGE_NICS=0\n"), std::string::npos);
}

}  // namespace
}  // namespace yoke::link

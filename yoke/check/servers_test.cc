// Servers that are as they should be: nothing is found on them, idle or busy, whole or in part.
#include "yoke/check/servers.h"

#include <gtest/gtest.h>

#include "yoke/check/rule.h"
#include "yoke/check/server_cases_testing.h"

namespace yoke::check {
namespace {

TEST(Servers, TwoHealthyOnesHaveNoFindings) { EXPECT_EQ(rules_of(made_racks()), ""); }

TEST(Servers, ABusyOneHasNoFindings) {
  spec::Survey facts = made_racks();
  for (spec::SurveyedNode& node : facts.nodes) {
    for (spec::Gpu& gpu : node.machine->gpus) {
      work_at(gpu, 1700, 1090, 78, {"power cap"});
      gpu.memory_free = Bytes{10LL << 30};
      gpu.processes = {{51002, Bytes{258LL << 30}}};
    }
  }
  EXPECT_EQ(rules_of(facts), "");
}

TEST(Servers, AnEngineThatWaitsForRequestsOnAllGpusHoldsThemRightly) {
  spec::Survey facts = made_racks();
  for (spec::Gpu& gpu : facts.nodes[1].machine->gpus) {
    gpu.memory_free = Bytes{10LL << 30};
    gpu.processes = {{51002, Bytes{258LL << 30}}};
  }
  EXPECT_EQ(rules_of(facts), "");
}

// Two of eight, as a container or a job gets them: the others are on the bus.
void give_two(spec::Machine& machine) {
  for (std::size_t i = 2; i < machine.gpus.size(); ++i) machine.gpus[i].index.reset();
  machine.topology.reset();
}

TEST(Servers, AContainerWithTwoOfEightGpusIsHealthy) {
  spec::Survey facts = made_racks();
  facts.nodes[1].machine->containers.inside = "docker";
  facts.nodes[1].machine->containers.rdma_access = {"uverbs0"};
  facts.nodes[1].machine->containers.gpu_access = {"nvidia0", "nvidia1"};
  give_two(*facts.nodes[1].machine);
  EXPECT_EQ(rules_of(facts), "");
  facts.nodes[1].machine->containers.gpu_access.push_back("nvidia2");
  EXPECT_EQ(rules_of(facts), "gpu-dead b300-2 GPU") << "one of three that it was given";
}

TEST(Servers, AJobWithTwoOfEightGpusIsHealthy) {
  spec::Survey facts = made_racks();
  facts.nodes[1].machine->allocation = "Slurm job 4711";
  give_two(*facts.nodes[1].machine);
  EXPECT_EQ(rules_of(facts), "");
}

TEST(Servers, AVirtualMachineWithOneGpuIsHealthy) {
  spec::Survey facts = made_racks();
  facts.nodes.erase(facts.nodes.begin());
  spec::Machine& machine = *facts.nodes[0].machine;
  machine.product = "Standard PC (Q35 + ICH9, 2009)";
  machine.gpus.resize(1);
  machine.gpus[0].nvlinks_active = 0;
  machine.gpus[0].fabric_state.reset();
  machine.fabric_manager = spec::FabricManager{};
  machine.topology.reset();
  EXPECT_EQ(rules_of(facts), "");
}

TEST(Servers, ACaptureOfAnEarlierVersionLacksFactsAndIsNotBlamedForIt) {
  spec::Survey facts = made_racks();
  for (spec::SurveyedNode& node : facts.nodes) {
    node.machine->modules.clear();
    node.machine->fabric_manager.reset();
    node.machine->open_driver.reset();
    for (spec::Gpu& gpu : node.machine->gpus) {
      gpu = {.index = gpu.index, .name = gpu.name, .pci_address = gpu.pci_address, .nvlinks_active = 18};
    }
    for (spec::RdmaDevice& device : node.machine->rdma_devices) device.counters.clear();
  }
  EXPECT_EQ(rules_of(facts), "");
}

TEST(Servers, AllRailsThatFlapAlikeAreTheSwitchs) {
  spec::Survey facts = made_racks();
  for (spec::RdmaDevice& device : facts.nodes[1].machine->rdma_devices) device.counters[0].value = 12;
  EXPECT_EQ(rules_of(facts), "");
}

TEST(Servers, ACaptureWithoutTheTableOfDscpsIsHeldAgainstNobody) {
  spec::Survey facts = made_racks();
  for (spec::NetworkInterface& nic : facts.nodes[1].machine->interfaces) nic.dscp.reset();
  EXPECT_EQ(rules_of(facts), "");
}

// Congestion that is answered, and a class of its own that the ports know, are how a fabric should be.
TEST(Servers, CongestionThatIsAnsweredIsNoFinding) {
  spec::Survey facts = made_racks();
  for (spec::SurveyedNode& node : facts.nodes) {
    for (spec::RdmaDevice& device : node.machine->rdma_devices) {
      for (const auto& [name, value] :
           {std::pair{"np_ecn_marked_roce_packets", 900000}, std::pair{"np_cnp_sent", 40000},
            std::pair{"rp_cnp_handled", 40000}, std::pair{"rp_cnp_ignored", 2000}}) {
        device.counters.push_back({name, value});
      }
    }
    for (spec::NetworkInterface& nic : node.machine->interfaces) {
      if (nic.dscp) nic.dscp = "40:3,41:3";
    }
    node.machine->settings = {{"NCCL_IB_TC", "160", "/etc/nccl.conf"}};
  }
  EXPECT_EQ(rules_of(facts), "");
}

TEST(Servers, RailsAreNamedByTheirLetters) {
  spec::Survey facts = made_racks();
  facts.nodes[1].machine->rdma_devices[2].counters.push_back({"packet_seq_err", 900000});
  EXPECT_NE(evaluate(facts)[0].what.find("rail C (enp26s0np0) on b300-2"), std::string::npos);
}

TEST(Servers, AHealthyLogOfEightGpusHasNoFindings) {
  spec::Survey facts;
  rack_says({kEightNics, kByRail, kByNvlink, "INFO NVLS multicast support is available on dev %",
             "INFO 16 coll channels, 16 collnet channels, 16 nvls channels, 16 p2p channels, 2 p2p channels per peer"})(
      facts);
  EXPECT_EQ(rules_of(facts), "");
  // Servers with one NIC for two GPUs are made so.
  rack_says({kEightNics.substr(0, kEightNics.find("[4]")) + "[RO]; OOB eno8303:10.0.1.11<0>", kByNvlink})(facts);
  EXPECT_EQ(rules_of(facts), "");
}

}  // namespace
}  // namespace yoke::check

#include "yoke/lab/hardware.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <set>

#include "tests/tree_differences.h"
#include "yoke/base/embedded.h"
#include "yoke/base/error.h"
#include "yoke/base/files.h"
#include "yoke/base/text.h"
#include "yoke/base/tree_file.h"
#include "yoke/lab/gid_table.h"
#include "yoke/lab/hardware_functions.h"

namespace yoke::lab {
namespace {

namespace fs = std::filesystem;
using Strings = std::vector<std::string>;

const fs::path kFixtures = fs::path(YOKE_SOURCE_DIR) / "tests/fixtures";

TEST(Embedded, EveryFileIsInTheProgramByteForByte) {
  std::set<std::string> on_disk;
  for (const auto& entry : fs::recursive_directory_iterator(kFixtures)) {
    if (entry.path().extension() != ".tree") continue;
    const std::string path = fs::relative(entry.path(), kFixtures);
    on_disk.insert(path);
    EXPECT_EQ(embedded_file(path), read_file(entry.path())) << path;
  }
  for (const std::string path : {"models/nano/tokenizer.json", "models/nano/tokenizer_config.json"}) {
    on_disk.insert(path);
    EXPECT_EQ(embedded_file(path), read_file(fs::path(YOKE_SOURCE_DIR) / path)) << path;
  }
  EXPECT_GT(on_disk.size(), 20U);
  EXPECT_EQ(embedded_file("no/such.tree"), std::nullopt);
}

TEST(LabHardware, NamesTheMachinesThatThereAre) {
  EXPECT_TRUE(lab_hardware({.machine = "none"}).entries().empty());
  try {
    lab_hardware({.machine = "sparc"});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kNotFound);
    EXPECT_EQ(error.hint(), "did you mean 'spark'?");
  }
}

TEST(LabHardware, HidesNothingThatTheKernelReportsItself) {
  for (const char* machine : {"spark", "b300"}) {
    const MemoryTree tree = lab_hardware({.machine = machine});
    for (const auto& [path, entry] : tree.entries()) {
      const bool is_etc = path == "/etc/dgx-release" || path.starts_with("/etc/nvidia/");
      EXPECT_TRUE(is_etc || path.starts_with("/sys/")) << path;
      for (const char* folder : {"/sys/class/net", "/sys/devices/virtual/net", "/sys/devices/system"}) {
        EXPECT_FALSE(path.starts_with(folder)) << path;
      }
      for (const char* name : {"/mtu", "/operstate", "/carrier", "/speed", "/ifindex", "/duplex", "/uevent"}) {
        EXPECT_FALSE(path.ends_with(name)) << path;
      }
    }
    EXPECT_TRUE(tree.read("/sys/class/dmi/id/product_name"));
  }
  EXPECT_TRUE(lab_hardware({}).read("/etc/dgx-release"));
}

// A link may also lead to where the kernel has something; nothing of ours does today.
TEST(LabHardware, EveryLinkLeadsSomewhere) {
  for (const char* machine : {"spark", "b300"}) {
    const MemoryTree tree = lab_hardware({.machine = machine});
    for (const auto& [path, entry] : tree.entries()) {
      if (entry.kind != MemoryTree::Entry::Kind::kLink) continue;
      EXPECT_FALSE(tree.list(path).empty()) << path << " -> " << entry.content;
    }
  }
}

TEST(LabHardware, CanBeLaidOutOnDisk) {
  const ScratchDir scratch;
  for (const char* machine : {"spark", "b300"}) {
    const MemoryTree tree = lab_hardware({.machine = machine, .node = 2});
    write_tree(tree, scratch.path() / machine);
    EXPECT_EQ(lab_ports(DiskTree(scratch.path() / machine)), lab_ports(tree));
  }
}

TEST(LabHardware, AllPortsAreDownAndHaveTheirOwnGidsOnly) {
  for (const char* machine : {"spark", "b300"}) {
    const MemoryTree tree = lab_hardware({.machine = machine, .node = 3});
    for (const LabPort& port : lab_ports(tree)) {
      const std::string folder = "/sys/class/infiniband/" + port.rdma_device + "/ports/1/";
      EXPECT_EQ(tree.read_trimmed(folder + "state"), "1: DOWN");
      EXPECT_EQ(tree.read_trimmed(folder + "phys_state"), "3: Disabled");
      EXPECT_EQ(tree.read_trimmed(folder + "rate"), "40 Gb/sec (4X QDR)");
      EXPECT_EQ(tree.list(folder + "gids").size(), kMinGidSlots);
      EXPECT_EQ(tree.list(folder + "gid_attrs/types"), (Strings{"0", "1"}));
      EXPECT_EQ(tree.list(folder + "gid_attrs/ndevs"), (Strings{"0", "1"}));
      for (std::size_t i = 0; i < kMinGidSlots; ++i) {
        const Gid expected = i < 2 ? link_local_gid(parse_mac(port.mac).value()) : Gid{};
        EXPECT_EQ(tree.read_trimmed(fmt::format("{}gids/{}", folder, i)), to_string(expected));
      }
    }
  }
}

TEST(LabHardware, TheFirstTwoNodesAreTheCapturedPair) {
  for (const auto& [node, fixture] : {std::pair{1, "spark-pair"}, std::pair{2, "spark-pair-2"}}) {
    const MemoryTree captured = load_tree(kFixtures / fixture / "machine.tree");
    const MemoryTree tree = lab_hardware({.machine = "spark", .node = node});
    for (const std::string& difference : tests::differences(tree, captured)) {
      // Only what the watcher looks after may differ in what both have.
      if (difference.starts_with("=")) {
        EXPECT_NE(difference.find("/ports/1/"), std::string::npos) << difference;
      }
      EXPECT_FALSE(difference.ends_with("/gids/0") || difference.ends_with("/gids/1")) << difference;
    }
  }
}

// "4c:bb:47:0a:10:04" -> "4cbb:4703:000a:1004", as in the fixtures.
std::string guid_of(const std::string& mac) {
  const Mac m = parse_mac(mac).value();
  return fmt::format("{:02x}{:02x}:{:02x}03:00{:02x}:{:02x}{:02x}", m[0], m[1], m[2], m[3], m[4], m[5]);
}

TEST(LabHardware, EveryNodeHasItsOwnConsistentIdentity) {
  for (const char* machine : {"spark", "b300"}) {
    std::set<std::string> macs;
    std::set<std::string> guids;
    std::size_t functions = 0;
    for (const int node : {1, 2, 3, 16, 17, 100, 1000}) {
      const MemoryTree tree = lab_hardware({.machine = machine, .node = node});
      std::set<std::string> images;
      for (const LabPort& port : lab_ports(tree)) {
        const std::string device = "/sys/class/infiniband/" + port.rdma_device;
        EXPECT_EQ(tree.read_trimmed(device + "/node_guid"), guid_of(port.mac));
        images.insert(tree.read_trimmed(device + "/sys_image_guid").value());
        macs.insert(port.mac);
        guids.insert(guid_of(port.mac));
        ++functions;
      }
      const std::vector<LabPort> ports = lab_ports(tree);
      const bool is_spark = std::string_view(machine) == "spark";
      EXPECT_EQ(images.size(), is_spark ? 1U : 8U) << "one adapter on a Spark, eight on a B300 server";
      EXPECT_TRUE(images.contains(guid_of(ports.front().mac)));
      macs.insert(lab_management_port(tree).value().mac);
      ++functions;
    }
    EXPECT_EQ(macs.size(), functions) << "a MAC address occurs twice";
    EXPECT_FALSE(guids.empty());
  }
}

TEST(LabPorts, OfASparkAreTwoRailsOfTwoPorts) {
  const std::vector<LabPort> expected = {
      {"enp1s0f0np0", "4c:bb:47:0a:30:00", "0000:01:00.0", "rocep1s0f0", 0, "A"},
      {"enP2p1s0f0np0", "4c:bb:47:0a:30:04", "0002:01:00.0", "roceP2p1s0f0", 0, "B"},
      {"enp1s0f1np1", "4c:bb:47:0a:30:01", "0000:01:00.1", "rocep1s0f1", 1, "A"},
      {"enP2p1s0f1np1", "4c:bb:47:0a:30:05", "0002:01:00.1", "roceP2p1s0f1", 1, "B"},
  };
  const MemoryTree tree = lab_hardware({.machine = "spark", .node = 3});
  EXPECT_EQ(lab_ports(tree), expected);
  const LabPort management = lab_management_port(tree).value();
  EXPECT_EQ(management.interface, "enP7s7");
  EXPECT_EQ(management.mac, "4c:bb:47:0a:30:10");
  EXPECT_EQ(management.pci_address, "0007:01:00.0");
  EXPECT_TRUE(lab_ports(MemoryTree{}).empty());
  EXPECT_EQ(lab_management_port(MemoryTree{}), std::nullopt);
}

TEST(LabPorts, OfAServerAreEightNics) {
  const MemoryTree tree = lab_hardware({.machine = "b300"});
  const std::vector<LabPort> ports = lab_ports(tree);
  ASSERT_EQ(ports.size(), 8U);
  for (int i = 0; i < 8; ++i) {
    const LabPort& port = ports[static_cast<std::size_t>(i)];
    EXPECT_EQ(port.port, i);
    EXPECT_EQ(port.rail, "A");
    EXPECT_EQ(port.rdma_device, fmt::format("mlx5_{}", i));
  }
  EXPECT_EQ(ports[0].interface, "enp24s0np0");
  EXPECT_EQ(ports[7].interface, "enp202s0np0");
  EXPECT_EQ(lab_management_port(tree).value().interface, "eno8303");
}

TEST(RdmaFunctions, NeedAnInterfaceInTheTree) {
  MemoryTree tree = lab_hardware({});
  // As an RDMA device of the machine that runs the lab looks in a node.
  tree.add_file("/sys/devices/pci0000:80/0000:80:01.0/0000:81:00.0/infiniband/mlx5_0/node_type", "1: CA\n");
  tree.add_link("/sys/class/infiniband/mlx5_0", "../../devices/pci0000:80/0000:80:01.0/0000:81:00.0/infiniband/mlx5_0");
  EXPECT_EQ(find_rdma_functions(tree).size(), 4U);
  Strings addresses;
  for (const auto& [address, folder] : find_pci_neighbours(tree, find_rdma_functions(tree)))
    addresses.push_back(address);
  EXPECT_EQ(addresses,
            (Strings{"0000:00:00.0", "0000:01:00.0", "0000:01:00.1", "0002:00:00.0", "0002:01:00.0", "0002:01:00.1"}));
}

}  // namespace
}  // namespace yoke::lab

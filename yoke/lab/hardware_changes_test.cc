#include "yoke/lab/hardware_changes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "tests/tree_differences.h"
#include "yoke/base/error.h"
#include "yoke/base/error_testing.h"
#include "yoke/base/files.h"
#include "yoke/base/text.h"
#include "yoke/base/tree_file.h"
#include "yoke/lab/hardware.h"

namespace yoke::lab {
namespace {

namespace fs = std::filesystem;
using Strings = std::vector<std::string>;

const std::string kRailA = "/sys/devices/pci0000:00/0000:00:00.0/0000:01:00.0/infiniband/rocep1s0f0/ports/1/";
const std::string kRailB = "/sys/devices/pci0002:00/0002:00:00.0/0002:01:00.0/infiniband/roceP2p1s0f0/ports/1/";

InterfaceState interface(std::string name, std::vector<std::string_view> addresses, std::string_view mac = {}) {
  InterfaceState state{.name = std::move(name), .mac = parse_mac(mac), .up = true, .carrier = true};
  for (const std::string_view text : addresses) state.ipv4.push_back(parse_ipv4(text).value());
  return state;
}

// As tests/fixtures/spark-pair/links.json has it.
std::vector<InterfaceState> pair_interfaces() {
  return {interface("enp1s0f0np0", {"192.168.100.10"}), interface("enP2p1s0f0np0", {"192.168.101.10"}),
          {.name = "enp1s0f1np1", .up = true},          {.name = "enP2p1s0f1np1", .up = true},
          interface("enP7s7", {"192.168.1.21"}),        interface("lo", {"127.0.0.1"})};
}

MemoryTree follow(MemoryTree tree, const std::vector<InterfaceState>& interfaces, const HardwareFaults& faults = {}) {
  apply_changes(hardware_changes(tree, interfaces, faults), tree);
  EXPECT_TRUE(hardware_changes(tree, interfaces, faults).empty()) << "a second pass finds something to do";
  return tree;
}

// A machine of the fixtures with the empty GID slots that a lab writes besides.
MemoryTree fixture(const std::string& name) {
  MemoryTree tree = load_tree(fs::path(YOKE_SOURCE_DIR) / "tests/fixtures" / name / "machine.tree");
  for (const LabPort& port : lab_ports(tree)) {
    const std::string folder = tree.resolve("/sys/class/infiniband/" + port.rdma_device).value() + "/ports/1/gids/";
    for (std::size_t i = 6; i < kMinGidSlots; ++i) tree.add_file(folder + std::to_string(i), to_string(Gid{}) + "\n");
  }
  return tree;
}

TEST(HardwareChanges, ACapturedMachineThatIsInStepStaysAsItIs) {
  EXPECT_TRUE(hardware_changes(fixture("spark-pair"), pair_interfaces(), {}).empty());
}

TEST(HardwareChanges, ALabsSparkBecomesTheCapturedOneWithItsInterfaces) {
  const MemoryTree tree = follow(lab_hardware({.machine = "spark", .node = 1}), pair_interfaces());
  for (const std::string& difference : tests::differences(tree, fixture("spark-pair"))) {
    EXPECT_TRUE(difference.starts_with("+")) << difference;
    EXPECT_EQ(difference.find("/infiniband/roce"), std::string::npos) << difference;  // /dev/infiniband is no lab's
  }
}

TEST(HardwareChanges, FaultsLookAsCapturedAndGoAwayWithoutATrace) {
  struct Case {
    std::string fixture;
    HardwareFaults faults;
  };
  const std::vector<Case> cases = {
      {"gid-drift", {.gid_drift = {"roceP2p1s0f0"}}},
      {"narrow-pcie", {.narrow_pcie = {"0002:00:00.0", "0002:01:00.0", "0002:01:00.1"}}},
      {"port-speed-100", {.port_speed_100 = {"rocep1s0f0", "roceP2p1s0f0"}}},
  };
  const MemoryTree healthy = fixture("spark-pair");
  for (const Case& each : cases) {
    const MemoryTree broken = follow(healthy, pair_interfaces(), each.faults);
    for (const std::string& difference : tests::differences(broken, fixture(each.fixture))) {
      EXPECT_TRUE(difference.ends_with("/speed")) << each.fixture << ": " << difference;
    }
    EXPECT_EQ(tests::differences(follow(broken, pair_interfaces()), healthy), Strings{}) << each.fixture;
  }
}

TEST(HardwareChanges, APortIsActiveOnlyWhenItIsUpAndHasACarrier) {
  const MemoryTree start = lab_hardware({});
  for (const bool up : {false, true}) {
    for (const bool carrier : {false, true}) {
      const MemoryTree tree = follow(start, {{.name = "enp1s0f0np0", .up = up, .carrier = carrier}});
      const bool active = up && carrier;
      EXPECT_EQ(tree.read(kRailA + "state"), active ? "4: ACTIVE\n" : "1: DOWN\n");
      EXPECT_EQ(tree.read(kRailA + "phys_state"), active ? "5: LinkUp\n" : "3: Disabled\n");
      EXPECT_EQ(tree.read(kRailA + "rate"), active ? "200 Gb/sec (4X HDR)\n" : "40 Gb/sec (4X QDR)\n");
      EXPECT_EQ(tree.read(kRailB + "state"), "1: DOWN\n") << "its interface is missing";
    }
  }
}

TEST(HardwareChanges, ADownPortDoesNotReportItsSpeed) {
  const MemoryTree tree = follow(lab_hardware({}), {}, {.port_speed_100 = {"rocep1s0f0"}});
  EXPECT_EQ(tree.read(kRailA + "rate"), "40 Gb/sec (4X QDR)\n");
}

TEST(HardwareChanges, AServersPortsRunAt800AndTheirLinksAreSixteenLanesWide) {
  const std::string pci = "/sys/bus/pci/devices/0000:18:00.0/";
  MemoryTree tree = follow(lab_hardware({.machine = "b300"}), {interface("enp24s0np0", {"10.0.0.11"})});
  EXPECT_EQ(tree.read(pci + "infiniband/mlx5_0/ports/1/rate"), "800 Gb/sec (4X XDR)\n");
  EXPECT_EQ(tree.read_trimmed(pci + "infiniband/mlx5_0/ports/1/gids/3"), "0000:0000:0000:0000:0000:ffff:0a00:000b");
  EXPECT_EQ(tree.read(pci + "current_link_width"), "16\n");
  EXPECT_EQ(tree.read("/sys/class/infiniband/mlx5_1/ports/1/state"), "1: DOWN\n");
  tree = follow(tree, {}, {.narrow_pcie = {"0000:18:00.0", "0000:1b:00.0"}});
  EXPECT_EQ(tree.read(pci + "current_link_width"), "8\n");
  EXPECT_EQ(tree.read("/sys/bus/pci/devices/0000:1b:00.0/current_link_width"), "8\n")
      << "the GPU, behind the same port";
  tree = follow(tree, {});
  EXPECT_EQ(tree.read(pci + "current_link_width"), "16\n");
}

TEST(HardwareChanges, AllLinksOfALabsMachineAreAtFullWidth) {
  for (const char* machine : {"spark", "b300"}) {
    const MemoryTree tree = lab_hardware({.machine = machine});
    for (const auto& [path, entry] : tree.entries()) {
      if (!path.ends_with("/current_link_width")) continue;
      const std::string folder = fs::path(path).parent_path();
      EXPECT_EQ(tree.read(folder + "/max_link_width"), entry.content) << "a width could not be restored: " << path;
    }
  }
}

TEST(HardwareChanges, LinksOfTheMachineBelowAreLeftAlone) {
  MemoryTree tree = lab_hardware({});
  const std::string folder = "/sys/devices/pci0000:80/0000:80:01.0";
  tree.add_file(folder + "/max_link_width", "16\n");
  tree.add_file(folder + "/current_link_width", "4\n");
  tree.add_link("/sys/bus/pci/devices/0000:80:01.0", "../../../devices/pci0000:80/0000:80:01.0");
  EXPECT_TRUE(hardware_changes(tree, {}, {.narrow_pcie = {"0000:80:01.0"}}).empty());
}

TEST(HardwareChanges, GidsFollowTheAddressesAndNameTheInterface) {
  MemoryTree tree = follow(lab_hardware({}), {interface("enp1s0f0np0", {"10.0.0.1", "10.0.0.2"})});
  EXPECT_EQ(tree.read(kRailA + "gids/4"), "0000:0000:0000:0000:0000:ffff:0a00:0002\n");
  EXPECT_EQ(tree.read(kRailA + "gid_attrs/types/4"), "IB/RoCE v1\n");
  EXPECT_EQ(tree.read(kRailA + "gid_attrs/types/5"), "RoCE v2\n");
  EXPECT_EQ(tree.read(kRailA + "gid_attrs/ndevs/5"), "enp1s0f0np0\n");
  EXPECT_EQ(tree.read(kRailA + "gids/6"), to_string(Gid{}) + "\n");
  EXPECT_EQ(tree.read(kRailA + "gid_attrs/types/6"), std::nullopt);
  tree = follow(tree, {interface("enp1s0f0np0", {"10.0.0.2"})});
  EXPECT_EQ(tree.read(kRailA + "gids/2"), to_string(Gid{}) + "\n");
  EXPECT_EQ(tree.read(kRailA + "gid_attrs/ndevs/2"), std::nullopt);
  EXPECT_EQ(tree.read(kRailA + "gids/5"), "0000:0000:0000:0000:0000:ffff:0a00:0002\n") << "an address keeps its index";
}

TEST(HardwareChanges, AReaderInBetweenNeverSeesAGidWithoutItsAttributes) {
  MemoryTree tree = lab_hardware({});
  const auto step = [&](const std::vector<InterfaceState>& interfaces, const HardwareFaults& faults) {
    for (const FileChange& change : hardware_changes(tree, interfaces, faults)) {
      apply_changes({change}, tree);
      for (std::size_t i = 0; i < kMinGidSlots; ++i) {
        const std::string slot = std::to_string(i);
        if (parse_gid(tree.read_trimmed(kRailA + "gids/" + slot).value())->empty()) continue;
        EXPECT_TRUE(tree.read(kRailA + "gid_attrs/types/" + slot)) << slot;
        EXPECT_TRUE(tree.read(kRailA + "gid_attrs/ndevs/" + slot)) << slot;
      }
    }
  };
  step({interface("enp1s0f0np0", {"10.0.0.1", "10.0.0.2"})}, {});
  step({interface("enp1s0f0np0", {"10.0.0.1"})}, {.gid_drift = {"rocep1s0f0"}});
  step({}, {});
}

TEST(HardwareChanges, AnotherMacAddressIsFollowed) {
  const MemoryTree tree = follow(lab_hardware({}), {interface("enp1s0f0np0", {}, "02:00:00:00:00:07")});
  EXPECT_EQ(lab_ports(tree).front().mac, "02:00:00:00:00:07");
  EXPECT_EQ(tree.read_trimmed(kRailA + "gids/1"), "fe80:0000:0000:0000:0000:00ff:fe00:0007");
}

TEST(HardwareChanges, CountersAreInWordsOfFourBytesAndLeftAloneWhenUnknown) {
  InterfaceState state = interface("enp1s0f0np0", {});
  state.counters = {
      .rx_bytes = 4003, .tx_bytes = 800, .rx_packets = 7, .tx_packets = 5, .rx_errors = 2, .tx_dropped = 1};
  MemoryTree tree = lab_hardware({});
  std::vector<FileChange> counted = counter_changes(tree, {state});
  EXPECT_EQ(counted.size(), 6U);
  for (const FileChange& change : hardware_changes(tree, {state}, {})) {
    const bool is_counter = change.path.find("/counters/") != std::string::npos;
    EXPECT_EQ(std::count(counted.begin(), counted.end(), change), is_counter ? 1 : 0) << change.path;
  }
  tree = follow(tree, {state});
  EXPECT_TRUE(counter_changes(tree, {state}).empty());
  state.counters.reset();
  tree = follow(tree, {state});
  const std::string counters = kRailA + "counters/";
  EXPECT_EQ(tree.read(counters + "port_rcv_data"), "1000\n");
  EXPECT_EQ(tree.read(counters + "port_xmit_data"), "200\n");
  EXPECT_EQ(tree.read(counters + "port_rcv_packets"), "7\n");
  EXPECT_EQ(tree.read(counters + "port_xmit_packets"), "5\n");
  EXPECT_EQ(tree.read(counters + "port_rcv_errors"), "2\n");
  EXPECT_EQ(tree.read(counters + "port_xmit_discards"), "1\n");
}

TEST(HardwareChanges, AreWrittenInPlaceOnDiskAsInMemory) {
  const ScratchDir scratch;
  MemoryTree tree = lab_hardware({});
  const fs::path root = scratch.path() / "root";
  write_tree(tree, root);
  const UniqueFd held = open_file(root / (kRailA + "state").substr(1), 0);
  for (const HardwareFaults& faults : {HardwareFaults{.gid_drift = {"rocep1s0f0"}}, HardwareFaults{}}) {
    apply_changes(hardware_changes(DiskTree(root), pair_interfaces(), faults), root);
    tree = follow(tree, pair_interfaces(), faults);
    for (const auto& [path, entry] : tree.entries()) {
      if (entry.kind == MemoryTree::Entry::Kind::kFile) {
        EXPECT_EQ(DiskTree(root).read(path), entry.content) << path;
      }
    }
    EXPECT_TRUE(hardware_changes(DiskTree(root), pair_interfaces(), faults).empty());
  }
  char text[16] = {};
  EXPECT_EQ(read_some(held, text, sizeof text, "state"), 10U);
  EXPECT_STREQ(text, "4: ACTIVE\n") << "who holds the file open sees the new content";
}

TEST(HardwareFaults, AreReadStrictly) {
  const HardwareFaults faults{.gid_drift = {"a"}, .narrow_pcie = {"0002:01:00.0"}, .port_speed_100 = {"b", "c"}};
  EXPECT_EQ(parse_hardware_faults(
                R"({"gid_drift": ["a"], "narrow_pcie": ["0002:01:00.0"], "port_speed_100": ["b", "c"]})", "f"),
            faults);
  EXPECT_EQ(parse_hardware_faults("{}", "f"), HardwareFaults{});
  EXPECT_NE(parse_hardware_faults(R"({"memory": {"limit": 1}})", "f").memory.find("limit"), nullptr);
  for (const WrongInput& wrong : {WrongInput{"", "f is not JSON"},
                                  {"[]", "must be a map of keys"},
                                  {R"({"gid_drift": "rocep1s0f0"})", "a list"},
                                  {R"({"gid_drft": []})", "unknown key 'gid_drft'"},
                                  {R"({"gid_drift": [1]})", "gid_drift[0]"}}) {
    EXPECT_ERROR(parse_hardware_faults(wrong.text, "f"), ErrorCode::kInvalid, wrong.words) << wrong.text;
  }
}

TEST(HardwareFaults, MustNameWhatIsThere) {
  const MemoryTree tree = lab_hardware({});
  check_hardware_faults(tree, {.gid_drift = {"rocep1s0f0"}, .narrow_pcie = {"0002:00:00.0"}});
  EXPECT_ERROR(check_hardware_faults(tree, {.gid_drift = {"mlx5_0"}}), ErrorCode::kNotFound, "no RDMA device 'mlx5_0'");
  EXPECT_ERROR(check_hardware_faults(tree, {.port_speed_100 = {"mlx5_0"}}), ErrorCode::kNotFound,
               "no RDMA device 'mlx5_0'");
  EXPECT_ERROR(check_hardware_faults(tree, {.narrow_pcie = {"000f:01:00.0"}}), ErrorCode::kNotFound,
               "no PCI address '000f:01:00.0'");
}

}  // namespace
}  // namespace yoke::lab

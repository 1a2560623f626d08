// The collectors over the machines of tests/fixtures. What `yoke probe` prints of each is in tests/golden_probe; here
// stand the rules.
#include "yoke/probe/probe.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "yoke/base/error.h"
#include "yoke/base/files.h"
#include "yoke/base/json.h"
#include "yoke/base/tree_file.h"
#include "yoke/probe/tree_values.h"

namespace yoke::probe {
namespace {

namespace fs = std::filesystem;

const fs::path kFixtures = fs::path(YOKE_SOURCE_DIR) / "tests" / "fixtures";

spec::Machine probe_fixture(const std::string& name) { return probe_machine(load_capture(kFixtures / name)); }

std::vector<std::string> fixture_names() {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(kFixtures)) {
    if (fs::exists(entry.path() / "machine.tree")) names.push_back(entry.path().filename());
  }
  return names;
}

// "0A enp1s0f0np0 rocep1s0f0 3": port, rail, interface, device, GID index.
std::vector<std::string> rails_of(const spec::Machine& machine) {
  std::vector<std::string> texts;
  for (const spec::NetworkInterface* interface : spec::fast_interfaces(machine)) {
    const spec::RdmaDevice* const device = spec::find_rdma_device(machine, interface->rdma_device.value_or(""));
    texts.push_back(fmt::format("{}{} {} {} {}", *interface->port, *interface->rail, interface->name,
                                device ? device->name : "none",
                                device && device->gid_index ? fmt::format("{}", *device->gid_index) : "-"));
  }
  return texts;
}

using Strings = std::vector<std::string>;

TEST(Probe, PairsRailsByPciFunctionAcrossDomains) {
  EXPECT_EQ(rails_of(probe_fixture("spark-ring")),
            (Strings{"0A enp1s0f0np0 rocep1s0f0 3", "0B enP2p1s0f0np0 roceP2p1s0f0 3", "1A enp1s0f1np1 rocep1s0f1 3",
                     "1B enP2p1s0f1np1 roceP2p1s0f1 3"}));
  EXPECT_EQ(rails_of(probe_fixture("nixos-names")), (Strings{"0A enp1s0f0np0 mlx5_0 3", "0B enP2p1s0f0np0 mlx5_2 3",
                                                             "1A enp1s0f1np1 mlx5_1 -", "1B enP2p1s0f1np1 mlx5_3 -"}));
}

TEST(Probe, DoesNotPairFunctionsOfDifferentAdapters) {
  Sources sources = load_capture(kFixtures / "spark-pair");
  MemoryTree tree = load_tree(kFixtures / "spark-pair" / "machine.tree");
  for (const char* name : {"roceP2p1s0f0", "roceP2p1s0f1"}) {
    const std::string function = name == std::string("roceP2p1s0f0") ? "0" : "1";
    tree.add_file(
        fmt::format("/sys/devices/pci0002:00/0002:00:00.0/0002:01:00.{}/infiniband/{}/sys_image_guid", function, name),
        "4cbb:4703:00ff:0000\n");
  }
  sources.files = std::make_shared<MemoryTree>(tree);
  EXPECT_EQ(rails_of(probe_machine(sources)),
            (Strings{"0A enp1s0f0np0 rocep1s0f0 3", "1A enP2p1s0f0np0 roceP2p1s0f0 3", "2A enp1s0f1np1 rocep1s0f1 -",
                     "3A enP2p1s0f1np1 roceP2p1s0f1 -"}));
}

TEST(Probe, FindsTheGidOfTheAddressThatTheInterfaceHasNow) {
  EXPECT_EQ(rails_of(probe_fixture("gid-drift"))[1], "0B enP2p1s0f0np0 roceP2p1s0f0 4");
  EXPECT_EQ(rails_of(probe_fixture("rail-unaddressed"))[1], "0B enP2p1s0f0np0 roceP2p1s0f0 -");
  EXPECT_EQ(rails_of(probe_fixture("rail-down"))[0], "0A enp1s0f0np0 rocep1s0f0 -");
  EXPECT_EQ(rails_of(probe_fixture("link-local"))[0], "0A enp1s0f0np0 rocep1s0f0 3") << "better than none";
  Sources stale = load_capture(kFixtures / "spark-pair");
  for (LinkEntry& link : stale.links.links) {
    if (link.ifname == "enp1s0f0np0") link.addr_info.front().local = "192.168.100.99";
  }
  EXPECT_EQ(rails_of(probe_machine(stale))[0], "0A enp1s0f0np0 rocep1s0f0 -") << "the table is of an old address";
}

TEST(Probe, TakesTheGidOfTheBondOverAFunction) {
  Sources sources = load_capture(kFixtures / "spark-pair");
  MemoryTree tree = load_tree(kFixtures / "spark-pair" / "machine.tree");
  const std::string port = "/sys/devices/pci0000:00/0000:00:00.0/0000:01:00.0/infiniband/rocep1s0f0/ports/1";
  for (const char* entry : {"0", "1", "2", "3"}) tree.add_file(port + "/gid_attrs/ndevs/" + entry, "bond0\n");
  sources.files = std::make_shared<MemoryTree>(tree);
  LinkEntry bond;
  bond.ifindex = 99;
  bond.ifname = "bond0";
  for (LinkEntry& link : sources.links.links) {
    if (link.ifname != "enp1s0f0np0") continue;
    bond.flags = link.flags;
    std::swap(bond.addr_info, link.addr_info);
    link.master = "bond0";
  }
  sources.links.links.push_back(bond);
  EXPECT_EQ(rails_of(probe_machine(sources))[0], "0A enp1s0f0np0 rocep1s0f0 -") << "a master that is no bond";
  sources.links.links.back().linkinfo = LinkInfo{.info_kind = "bond"};
  EXPECT_EQ(rails_of(probe_machine(sources))[0], "0A enp1s0f0np0 rocep1s0f0 3");
}

TEST(Probe, TakesTheGidOfAVlanOverAFunction) {
  Sources sources = load_capture(kFixtures / "spark-pair");
  MemoryTree tree = load_tree(kFixtures / "spark-pair" / "machine.tree");
  const std::string port = "/sys/devices/pci0000:00/0000:00:00.0/0000:01:00.0/infiniband/rocep1s0f0/ports/1";
  for (const char* entry : {"2", "3"}) tree.add_file(port + "/gid_attrs/ndevs/" + entry, "enp1s0f0np0.100\n");
  sources.files = std::make_shared<MemoryTree>(tree);
  LinkEntry vlan{.ifindex = 99, .ifname = "enp1s0f0np0.100", .linkinfo = LinkInfo{.info_kind = "vlan"}};
  for (LinkEntry& link : sources.links.links) {
    if (link.ifname == "enp1s0f0np0") std::swap(vlan.addr_info, link.addr_info);
  }
  sources.links.links.push_back(vlan);
  EXPECT_EQ(rails_of(probe_machine(sources))[0], "0A enp1s0f0np0 rocep1s0f0 3");
  for (LinkEntry& link : sources.links.links) {
    if (link.ifname == "enp1s0f0np0") link.addr_info = {{.family = "inet", .local = "10.0.0.1", .prefixlen = 24}};
  }
  EXPECT_EQ(rails_of(probe_machine(sources))[0], "0A enp1s0f0np0 rocep1s0f0 -") << "its own address comes first";
}

TEST(Probe, NumbersANicOfAnotherKindBehindTheFabrics) {
  EXPECT_EQ(rails_of(probe_fixture("b300"))[0], "0A enp24s0np0 mlx5_0 3");
  Sources sources = load_capture(kFixtures / "b300");
  MemoryTree tree = load_tree(kFixtures / "b300" / "machine.tree");
  tree.add_file(*tree.resolve("/sys/class/infiniband/mlx5_0") + "/board_id", "MT_0000000359\n");
  sources.files = std::make_shared<MemoryTree>(tree);
  const Strings rails = rails_of(probe_machine(sources));
  ASSERT_EQ(rails.size(), 8U);
  EXPECT_EQ(rails[0], "0A enp41s0np0 mlx5_1 3");
  EXPECT_EQ(rails[7], "7A enp24s0np0 mlx5_0 3");
}

// Rails keep their letters: a GPU that has gone, or was not given to a container, takes no NIC with it.
TEST(Probe, AMissingGpuDoesNotRenumberTheRails) {
  const std::vector<std::string> whole = rails_of(probe_fixture("b300"));
  EXPECT_EQ(rails_of(probe_fixture("gpu-lost")), whole);
  EXPECT_EQ(rails_of(probe_fixture("b300-container")), whole);
}

TEST(Probe, ABridgeThatRedirectsBetweenAGpuAndItsNicIsFound) {
  Sources sources = load_capture(kFixtures / "b300");
  sources.system.acs = {{"0000:17:00.0", 0x1d}, {"0000:17:01.0", 0x10}, {"0000:15:01.0", 0x1d}};
  EXPECT_EQ(probe_machine(sources).acs_redirects, std::vector<std::string>{"0000:17:00.0"})
      << "of the others one redirects nothing, one is above both";
}

TEST(Probe, PrefersAGivenAddressToALinkLocalOne) {
  Sources sources = load_capture(kFixtures / "link-local");
  MemoryTree tree = load_tree(kFixtures / "link-local" / "machine.tree");
  const std::string port = "/sys/devices/pci0000:00/0000:00:00.0/0000:01:00.0/infiniband/rocep1s0f0/ports/1";
  tree.add_file(port + "/gids/5", "0000:0000:0000:0000:0000:ffff:0a00:0001\n");
  tree.add_file(port + "/gid_attrs/types/5", "RoCE v2\n");
  tree.add_file(port + "/gid_attrs/ndevs/5", "enp1s0f0np0\n");
  sources.files = std::make_shared<MemoryTree>(tree);
  for (LinkEntry& link : sources.links.links) {
    if (link.ifname == "enp1s0f0np0")
      link.addr_info.push_back({.family = "inet", .local = "10.0.0.1", .prefixlen = 24});
  }
  EXPECT_EQ(rails_of(probe_machine(sources))[0], "0A enp1s0f0np0 rocep1s0f0 5");
}

TEST(Probe, ComparesPcieWithTheBestThatBothEndsCan) {
  const spec::Machine narrow = probe_fixture("narrow-pcie");
  const spec::PcieLink expected{.speed_gt_per_second = 32, .width = 2, .speed_gt_per_second_max = 32, .width_max = 4};
  EXPECT_EQ(spec::find_interface(narrow, "enP2p1s0f0np0")->pcie, expected);
  EXPECT_EQ(spec::find_interface(narrow, "enp1s0f0np0")->pcie->width, 4);
  EXPECT_EQ(narrow.gpus.at(0).pcie, std::nullopt) << "a GB10's says Gen1 x1, which means nothing";
  const spec::Machine server = probe_fixture("b300");
  EXPECT_EQ(server.gpus.at(0).pcie->speed_gt_per_second, server.gpus.at(0).pcie->speed_gt_per_second_max);
  Sources older = load_capture(kFixtures / "spark-pair");
  MemoryTree tree = load_tree(kFixtures / "spark-pair" / "machine.tree");
  tree.add_file("/sys/devices/pci0000:00/0000:00:00.0/max_link_speed", "16.0 GT/s PCIe\n");
  tree.add_file("/sys/devices/pci0000:00/0000:00:00.0/0000:01:00.0/current_link_speed", "16.0 GT/s PCIe\n");
  older.files = std::make_shared<MemoryTree>(tree);
  EXPECT_EQ(spec::find_interface(probe_machine(older), "enp1s0f0np0")->pcie->speed_gt_per_second_max, 16);
}

TEST(Probe, ReportsWhatIsAvailableOfUnifiedMemoryAndNothingOfNvmls) {
  const spec::Machine spark = probe_fixture("spark-pair");
  EXPECT_TRUE(spark.memory.unified);
  EXPECT_EQ(spark.memory.available, Bytes{119'872'016LL * 1024});
  EXPECT_EQ(spark.gpus.at(0).memory, std::nullopt);
  EXPECT_FALSE(probe_fixture("b300").memory.unified);
  Sources limited = load_capture(kFixtures / "spark-pair");
  MemoryTree tree = load_tree(kFixtures / "spark-pair" / "machine.tree");
  tree.add_file("/proc/self/cgroup", "0::/job\n");
  tree.add_file("/sys/fs/cgroup/job/memory.max", "1073741824\n");
  tree.add_file("/sys/fs/cgroup/job/memory.current", "73741824\n");
  limited.files = std::make_shared<MemoryTree>(tree);
  const spec::Memory memory = probe_machine(limited).memory;
  EXPECT_EQ(memory.limit, Bytes{1'073'741'824});
  EXPECT_EQ(memory.available, Bytes{1'000'000'000});
}

TEST(Probe, KnowsUnifiedMemoryByTheGpuWhateverNvmlReports) {
  Sources talkative = load_capture(kFixtures / "spark-pair");  // a driver that tells the system's memory as the GPU's
  talkative.nvml.gpus.at(0).memory_total = talkative.nvml.gpus.at(0).memory_free = Bytes{127'992'881'152};
  const spec::Machine still_unified = probe_machine(talkative);
  EXPECT_TRUE(still_unified.memory.unified);
  EXPECT_EQ(still_unified.gpus.at(0).memory, std::nullopt);
  EXPECT_EQ(still_unified.gpus.at(0).memory_free, std::nullopt);

  Sources silent = load_capture(kFixtures / "b300");  // one GPU of eight does not answer
  silent.nvml.gpus.at(3).memory_total = silent.nvml.gpus.at(3).memory_free = std::nullopt;
  const spec::Machine server = probe_machine(silent);
  EXPECT_FALSE(server.memory.unified);
  EXPECT_EQ(server.gpus.at(3).memory, std::nullopt);
  EXPECT_TRUE(server.gpus.at(2).memory);
}

TEST(Probe, KnowsASparkByItsBusWhereThereIsNoDriver) {
  Sources sources = load_capture(kFixtures / "spark-pair");
  sources.nvml = {.failure = "Driver/library version mismatch"};
  MemoryTree tree = load_tree(kFixtures / "spark-pair" / "machine.tree");
  tree.remove("/proc/driver");
  sources.files = std::make_shared<MemoryTree>(tree);
  const spec::Machine machine = probe_machine(sources);
  ASSERT_EQ(machine.gpus.size(), 1U);
  EXPECT_EQ(machine.gpus[0].name, "NVIDIA GB10");
  EXPECT_EQ(machine.gpus[0].index, std::nullopt);
  EXPECT_TRUE(machine.memory.unified);
  EXPECT_EQ(machine.driver, std::nullopt);
  EXPECT_EQ(machine.gpu_problem, "Driver/library version mismatch");
}

// nvidia-smi's own matrix stands in the fixtures: what the places on the bus give must be the same.
TEST(Probe, FindsTheSameWaysBetweenGpusAndNicsAsNvidiaSmi) {
  for (const char* name : {"b300", "nvlink-dead", "nic-missing"}) {
    const Sources sources = load_capture(kFixtures / name);
    const spec::Machine machine = probe_machine(sources);
    ASSERT_TRUE(machine.topology) << name;
    const NvmlTopology& reported = *sources.nvml.topology;
    ASSERT_EQ(machine.topology->devices.size(), reported.matrix.rows.size()) << name;
    for (std::size_t i = 0; i < reported.matrix.rows.size(); ++i) {
      EXPECT_EQ(machine.topology->paths[i], reported.matrix.rows[i].second)
          << name << " " << reported.matrix.rows[i].first;
    }
  }
}

TEST(Probe, ReadsReleaseFilesWithAndWithoutQuotesAndTheLastUpdate) {
  EXPECT_EQ(probe_fixture("spark-pair").dgx->update, "7.3.1");
  EXPECT_EQ(probe_fixture("hp-zgx-nano").dgx->name, "DGX Spark");
  EXPECT_EQ(probe_fixture("laptop").dgx, std::nullopt);
}

TEST(Probe, NamesTheFileThatIsBroken) {
  const std::string nic = "/sys/devices/pci0000:00/0000:00:00.0/0000:01:00.0";
  const std::string port = nic + "/infiniband/rocep1s0f0/ports/1";
  const std::vector<std::array<std::string, 3>> cases = {
      {nic + "/current_link_width", "four\n", "/sys/devices/pci0000:00/0000:00:00.0/0000:01:00.0/current_link_width"},
      {nic + "/current_link_speed", "fast\n", "current_link_speed: this must be a speed such as 32.0 GT/s PCIe"},
      {nic + "/numa_node", "\n", "numa_node: this must be a whole number, not ''"},
      {nic + "/net/enp1s0f0np0/speed", "200G\n", "/net/enp1s0f0np0/speed: this must be a whole number"},
      {port + "/state", "ACTIVE\n", "rocep1s0f0/ports/1/state: this must be a state such as 4: ACTIVE"},
      {port + "/rate", "much\n", "rocep1s0f0/ports/1/rate: this must be a rate"},
      {port + "/gids/3", "192.168.100.10\n", "rocep1s0f0/ports/1/gids/3: this must be a GID of eight groups"},
      {port + "/gid_attrs/types/3", "RoCE v9\n", "gid_attrs/types/3: this must be RoCE v2 or IB/RoCE v1"},
      {"/proc/meminfo", "MemTotal: lots kB\n", "/proc/meminfo: this must be a line such as MemTotal: 1 kB"},
      {"/sys/devices/system/cpu/online", "all\n", "/sys/devices/system/cpu/online: this must be a list"},
      {"/proc/self/limits", "Max locked memory  much  much  bytes\n", "/proc/self/limits: this must be a limit"},
  };
  for (const auto& [path, content, message] : cases) {
    Sources sources = load_capture(kFixtures / "spark-pair");
    MemoryTree tree = load_tree(kFixtures / "spark-pair" / "machine.tree");
    tree.add_file(path, content);
    sources.files = std::make_shared<MemoryTree>(tree);
    try {
      probe_machine(sources);
      FAIL() << path;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kInvalid);
      EXPECT_NE(error.message().find(message), std::string::npos) << error.message();
    }
  }
}

TEST(Probe, TakesWhateverIsAbsentAsAbsent) {
  // One file or link at a time is taken away; nothing may make the probe fail, nor what is left change its meaning.
  const MemoryTree whole = load_tree(kFixtures / "spark-pair" / "machine.tree");
  Sources sources = load_capture(kFixtures / "spark-pair");
  for (const auto& [path, entry] : whole.entries()) {
    MemoryTree tree = whole;
    tree.remove(path);
    sources.files = std::make_shared<MemoryTree>(std::move(tree));
    EXPECT_NO_THROW(probe_machine(sources)) << path;
  }
  sources = {.files = std::make_shared<MemoryTree>()};
  const spec::Machine nothing = probe_machine(sources);
  EXPECT_EQ(nothing.cpu.cores, std::nullopt);
  EXPECT_EQ(nothing.memory.total, std::nullopt);
  EXPECT_TRUE(nothing.interfaces.empty());
}

TEST(Probe, OfThisMachineFindsWhatEveryLinuxHas) {
  const spec::Machine machine = probe_machine(sources_here());
  EXPECT_FALSE(machine.hostname.empty());
  EXPECT_FALSE(machine.kernel.empty());
  EXPECT_GE(machine.cpu.cores.value_or(0), 1);
  EXPECT_GT(machine.memory.available.value_or(Bytes{0}), Bytes{0});
  EXPECT_LE(machine.memory.available, machine.memory.total);
  const spec::NetworkInterface* const loopback = spec::find_interface(machine, "lo");
  ASSERT_NE(loopback, nullptr);
  EXPECT_EQ(loopback->kind, spec::InterfaceKind::kLoopback);
}

TEST(Capture, OfEveryFixtureProbesTheSame) {
  for (const std::string& name : fixture_names()) {
    const ScratchDir scratch("capture");
    const Sources sources = load_capture(kFixtures / name);
    write_capture(sources, scratch.path() / "machine");
    EXPECT_EQ(probe_machine(load_capture(scratch.path() / "machine")), probe_machine(sources)) << name;
  }
}

TEST(Capture, OfThisMachineProbesTheSame) {
  const ScratchDir scratch("capture");
  const Sources here = sources_here();
  write_capture(here, scratch.path() / "machine");
  spec::Machine replayed = probe_machine(load_capture(scratch.path() / "machine"));
  spec::Machine now = probe_machine(here);
  for (spec::Machine* machine : {&now, &replayed}) machine->memory = {};  // that changes from moment to moment
  EXPECT_EQ(print_json(spec::to_json(replayed)), print_json(spec::to_json(now)));
}

TEST(Capture, IsForItsUserAloneWhateverTheUmask) {
  const ScratchDir scratch("capture");
  const mode_t before = umask(0);
  write_capture(load_capture(kFixtures / "laptop"), scratch.path() / "machine");
  umask(before);
  namespace fs = std::filesystem;
  EXPECT_EQ(fs::status(scratch.path() / "machine").permissions(), fs::perms::owner_all) << "it has MAC addresses";
}

TEST(Capture, HoldsNoSerialNumberAndNoSecret) {
  const ScratchDir scratch("capture");
  Sources sources = load_capture(kFixtures / "spark-pair");
  MemoryTree tree = load_tree(kFixtures / "spark-pair" / "machine.tree");
  tree.add_file("/etc/environment", "http_proxy=http://me:hunter2@proxy\nNCCL_IB_HCA=rocep1s0f0\n");
  tree.add_file("/etc/nccl.conf", "# by hand\nNCCL_DEBUG=INFO\nTOKEN=hunter2\n");
  sources.files = std::make_shared<MemoryTree>(tree);
  write_capture(sources, scratch.path() / "machine");
  const std::string text = read_file(scratch.path() / "machine" / "machine.tree");
  EXPECT_EQ(text.find("NOT-A-SERIAL"), std::string::npos);
  EXPECT_EQ(text.find("hunter2"), std::string::npos);
  const spec::Machine machine = probe_machine(load_capture(scratch.path() / "machine"));
  EXPECT_EQ(machine.settings, (std::vector<spec::NetworkSetting>{{"NCCL_IB_HCA", "rocep1s0f0", "/etc/environment"},
                                                                 {"NCCL_DEBUG", "INFO", "/etc/nccl.conf"}}));
  EXPECT_EQ(print_json(spec::to_json(machine)).find("NOT-A-SERIAL"), std::string::npos);
}

Sources spark_with(const std::vector<std::pair<std::string, std::string>>& files) {
  Sources sources = load_capture(kFixtures / "spark-pair");
  MemoryTree tree = load_tree(kFixtures / "spark-pair" / "machine.tree");
  for (const auto& [path, content] : files) tree.add_file(path, content);
  sources.files = std::make_shared<MemoryTree>(tree);
  sources.system.home = "/home/alice";
  return sources;
}

TEST(Settings, OfShellsAreReadAndTheSameLineInTwoPlacesIsOne) {
  Sources sources = spark_with({{"/etc/environment", "export NCCL_IB_HCA=rocep1s0f0\nNCCL_DEBUG=INFO\n"},
                                {"/etc/nccl.conf", "export NCCL_ALGO=Ring\n"},
                                {"/etc/profile.d/nccl.sh", "export NCCL_IB_HCA='rocep1s0f0' # by hand\n"},
                                {"/etc/profile.d/readme", "export NCCL_NET=Socket\n"},
                                {"/home/alice/.bashrc",
                                 "if true; then\n  export NCCL_IB_DISABLE=1\nfi\n"
                                 "export NCCL_ALGO=Tree GLOO_SOCKET_IFNAME=\"eth0\"; echo\n"
                                 "export UCX_NET_DEVICES=$DEVICES NCCL_NET=IB\n"}});
  sources.system.environment = {{"NCCL_IB_HCA", "rocep1s0f0", "environment"}};
  EXPECT_EQ(probe_machine(sources).settings,
            (std::vector<spec::NetworkSetting>{
                {"NCCL_IB_HCA", "rocep1s0f0", "environment, /etc/environment, /etc/profile.d/nccl.sh"},
                {"NCCL_DEBUG", "INFO", "/etc/environment"},
                {"NCCL_ALGO", "Tree", "/home/alice/.bashrc"},
                {"GLOO_SOCKET_IFNAME", "eth0", "/home/alice/.bashrc"}}));
}

TEST(Settings, OnlyLinesThatAShellTakesAsTheyStandAreRead) {
  const auto exports = [](std::string_view text) {
    std::string joined;
    for (const Assignment& found : parse_exports(text)) joined += found.name + "=" + found.value + "|";
    return joined;
  };
  EXPECT_EQ(exports("export A=1\nexport B=\"x y\" C='z'\r\nexport D= E\n"), "A=1|B=x y|C=z|D=|");
  EXPECT_EQ(exports("export A=1\nexport A=2\n"), "A=2|");
  EXPECT_EQ(exports("export A=1\nexport A=$A,2\n"), "");
  EXPECT_EQ(exports("#export A=1\n export B=1\nC=1\nexport\nexport -f f\nexport =1\n"), "");
  EXPECT_EQ(exports("export A=`x` B=1\nexport C=\"open\nexport D=a\\ b\nexport E=1&&x\n"), "");
  EXPECT_EQ(exports("export A=a'b'\"c\";B=1"), "A=abc|");
}

TEST(Capture, OfAShellsFileHoldsOurVariablesAloneAlsoBehindALink) {
  const ScratchDir scratch("capture");
  Sources sources = spark_with({{"/home/alice/dots/rc", "export HF_TOKEN=hunter2 NCCL_DEBUG=INFO\nexport A=hunter2\n"},
                                {"/etc/profile.d/x.sh", "export NCCL_ALGO=\"it's\"'\"' B=hunter2\n# hunter2\n"}});
  auto tree = std::make_shared<MemoryTree>(dynamic_cast<const MemoryTree&>(*sources.files));
  tree->add_link("/home/alice/.bashrc", "dots/rc");
  sources.files = tree;
  write_capture(sources, scratch.path() / "machine");
  EXPECT_EQ(read_file(scratch.path() / "machine" / "machine.tree").find("hunter2"), std::string::npos);
  const spec::Machine machine = probe_machine(load_capture(scratch.path() / "machine"));
  EXPECT_EQ(machine.settings, (std::vector<spec::NetworkSetting>{{"NCCL_ALGO", "it's\"", "/etc/profile.d/x.sh"},
                                                                 {"NCCL_DEBUG", "INFO", "/home/alice/.bashrc"}}));
  EXPECT_EQ(machine, probe_machine(sources));
}

TEST(Containers, AreKnownByTheirRuntimesMarks) {
  const auto inside = [](const std::vector<std::pair<std::string, std::string>>& files) {
    return probe_machine(spark_with(files)).containers.inside.value_or("none");
  };
  EXPECT_EQ(inside({}), "none");
  EXPECT_EQ(inside({{"/proc/1/cgroup", "0::/init.scope\n"}}), "none");
  EXPECT_EQ(inside({{"/proc/1/cgroup", "0::/\n"}}), "none");
  EXPECT_EQ(inside({{"/.dockerenv", ""}}), "docker");
  EXPECT_EQ(inside({{"/run/.containerenv", ""}}), "podman");
  EXPECT_EQ(inside({{"/proc/1/cgroup", "0::/kubepods.slice/kubepods-pod1.slice/cri-containerd-ab.scope\n"}}),
            "kubernetes");
  EXPECT_EQ(inside({{"/.dockerenv", ""}, {"/var/run/secrets/kubernetes.io/serviceaccount/token", "t"}}), "kubernetes");
  EXPECT_EQ(inside({{"/proc/1/cgroup", "1:name=systemd:/docker/0123\n"}}), "docker");
  EXPECT_EQ(inside({{"/proc/1/cgroup", "0::/default/0123\n1:cpu:/system.slice/containerd.service/x\n"}}), "containerd");
  EXPECT_EQ(inside({{"/.singularity.d/runscript", ""}}), "apptainer");
  EXPECT_EQ(inside({{"/.lock", ""}, {"/etc/rc", "exec \"$@\"\n"}}), "enroot");
  Sources pod = load_capture(kFixtures / "spark-pair");
  pod.system.container = "kubernetes";
  EXPECT_EQ(probe_machine(pod).containers.inside, "kubernetes");
}

TEST(Capture, ThatIsNoneOrBrokenIsReportedByItsFile) {
  const ScratchDir scratch("capture");
  const auto message = [&](const fs::path& folder) {
    const auto result = try_to([&] { return load_capture(folder); });
    return result ? "no error" : result.error().message();
  };
  EXPECT_NE(message(scratch.path() / "none").find("there is no folder"), std::string::npos);
  EXPECT_NE(message(scratch.path()).find("there is no machine.tree in"), std::string::npos);
  write_capture(load_capture(kFixtures / "laptop"), scratch.path() / "laptop");
  write_file_atomically(scratch.path() / "laptop" / "links.json", "{\"links\": [{}], \"routes\": []}");
  EXPECT_NE(message(scratch.path() / "laptop").find("links.json: links[0]: the key 'ifindex' is missing"),
            std::string::npos)
      << message(scratch.path() / "laptop");
  fs::remove(scratch.path() / "laptop" / "links.json");
  EXPECT_NE(message(scratch.path() / "laptop").find("there is no links.json in"), std::string::npos);
  const auto again = try_to([&] { write_capture(load_capture(kFixtures / "laptop"), scratch.path() / "laptop"); });
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code(), ErrorCode::kConflict);
}

}  // namespace
}  // namespace yoke::probe

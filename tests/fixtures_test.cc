// The fixtures of tests/fixtures: each machine is consistent in itself, and each variant differs from its base only in
// what is meant.
#include <arpa/inet.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <fnmatch.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "tests/program.h"
#include "tests/tree_differences.h"
#include "yoke/base/files.h"
#include "yoke/base/text.h"
#include "yoke/base/tree_file.h"

namespace yoke::tests {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using Kind = MemoryTree::Entry::Kind;
using Strings = std::vector<std::string>;

fs::path fixtures() { return kSourceFolder / "tests" / "fixtures"; }

json load_json(const std::string& machine, const std::string& file) {
  return json::parse(read_file(fixtures() / machine / file));
}

MemoryTree load_machine(const std::string& machine) { return load_tree(fixtures() / machine / "machine.tree"); }

Strings machines() {
  Strings names;
  for (const auto& folder : fs::directory_iterator(fixtures())) {
    if (fs::exists(folder.path() / "machine.tree")) names.push_back(folder.path().filename());
  }
  std::sort(names.begin(), names.end());
  return names;
}

TEST(Fixtures, AreThoseOfTheTable) {
  const std::string readme = read_file(fixtures() / "README.md");
  const Strings names = machines();
  EXPECT_EQ(names.size(), 31U);
  for (const std::string& name : names) {
    EXPECT_NE(readme.find("| `" + name + "` |"), std::string::npos)
        << name << " has no row in tests/fixtures/README.md";
  }
}

TEST(Fixtures, HaveOnlyLinksThatLeadSomewhere) {
  for (const std::string& name : machines()) {
    const MemoryTree tree = load_machine(name);
    for (const auto& [path, entry] : tree.entries()) {
      if (entry.kind != Kind::kLink) continue;
      EXPECT_TRUE(tree.read(path) || !tree.list(path).empty()) << name << ": " << path << " -> " << entry.content;
    }
  }
}

TEST(Fixtures, PrintAndCanBeLaidOut) {
  for (const std::string& name : machines()) {
    const MemoryTree tree = load_machine(name);
    EXPECT_EQ(differences(tree, parse_tree(print_tree(tree), name, {})), Strings{}) << name;
  }
  const ScratchDir scratch("tree-file");
  write_tree(load_machine("spark-pair"), scratch.path());
  const DiskTree disk(scratch.path());
  EXPECT_EQ(disk.list("/sys/class/infiniband"), (Strings{"roceP2p1s0f0", "roceP2p1s0f1", "rocep1s0f0", "rocep1s0f1"}));
  EXPECT_EQ(disk.read_trimmed("/sys/class/infiniband/rocep1s0f0/device/vendor"), "0x15b3");
  EXPECT_EQ(disk.read_trimmed("/sys/class/dmi/id/product_name"), "NVIDIA_DGX_Spark");
}

TEST(Fixtures, TellTheSameByNetlinkAndBySysfs) {
  for (const std::string& name : machines()) {
    const MemoryTree tree = load_machine(name);
    const json answer = load_json(name, "links.json");
    std::set<std::string> known;
    for (const json& link : answer.at("links")) {
      const std::string interface = link.at("ifname");
      known.insert(interface);
      const std::string at =
          link.value("parentbus", "") == "pci"
              ? fmt::format("/sys/bus/pci/devices/{}/net/{}/", link.at("parentdev").get<std::string>(), interface)
              : fmt::format("/sys/class/net/{}/", interface);
      EXPECT_EQ(tree.read_trimmed(at + "address"), link.at("address").get<std::string>()) << name << " " << interface;
      EXPECT_EQ(tree.read_trimmed(at + "mtu"), std::to_string(link.at("mtu").get<int>())) << name << " " << interface;
      EXPECT_EQ(tree.read_trimmed(at + "ifindex"), std::to_string(link.at("ifindex").get<int>()))
          << name << " " << interface;
      std::string state = link.at("operstate");
      std::transform(state.begin(), state.end(), state.begin(), [](unsigned char c) { return std::tolower(c); });
      EXPECT_EQ(tree.read_trimmed(at + "operstate"), state) << name << " " << interface;
    }
    for (const json& route : answer.at("routes")) EXPECT_TRUE(known.contains(route.at("dev"))) << name << " " << route;
    const Strings listed = tree.list("/sys/class/net");
    EXPECT_EQ(std::set<std::string>(listed.begin(), listed.end()), known) << name;
  }
}

std::string ipv4_of(const std::string& gid) {
  in6_addr bytes{};
  EXPECT_EQ(inet_pton(AF_INET6, gid.c_str(), &bytes), 1) << gid;
  if (!IN6_IS_ADDR_V4MAPPED(&bytes)) return "";
  return fmt::format("{}.{}.{}.{}", bytes.s6_addr[12], bytes.s6_addr[13], bytes.s6_addr[14], bytes.s6_addr[15]);
}

TEST(Fixtures, HaveARoceV2EntryForEachAddressOfAnRdmaPort) {
  for (const std::string& name : machines()) {
    const MemoryTree tree = load_machine(name);
    std::map<std::string, std::multiset<std::string>> by_netlink;
    const json answer = load_json(name, "links.json");
    for (const json& link : answer.at("links")) {
      for (const json& address : link.at("addr_info")) {
        if (address.at("family") == "inet")
          by_netlink[link.at("ifname")].insert(address.at("local").get<std::string>());
      }
    }
    for (const std::string& device : tree.list("/sys/class/infiniband")) {
      const std::string at = "/sys/class/infiniband/" + device;
      const Strings interfaces = tree.list(at + "/device/net");
      ASSERT_EQ(interfaces.size(), 1U) << name << " " << device;
      std::multiset<std::string> addresses;
      for (const std::string& slot : tree.list(at + "/ports/1/gids")) {
        const std::string gid = tree.read_trimmed(at + "/ports/1/gids/" + slot).value();
        const auto type = tree.read_trimmed(at + "/ports/1/gid_attrs/types/" + slot);
        const auto netdev = tree.read_trimmed(at + "/ports/1/gid_attrs/ndevs/" + slot);
        const bool empty = gid.find_first_not_of("0:") == std::string::npos;
        EXPECT_EQ(type.has_value(), !empty) << name << " " << device << " " << slot;
        EXPECT_EQ(netdev, empty ? std::nullopt : std::optional(interfaces[0])) << name << " " << device << " " << slot;
        if (const std::string ip = ipv4_of(gid); type == "RoCE v2" && !ip.empty()) addresses.insert(ip);
      }
      EXPECT_EQ(addresses, by_netlink[interfaces[0]]) << name << " " << device;
    }
  }
}

TEST(Fixtures, KnowTheSameGpusByNvmlAndByPci) {
  for (const std::string& name : machines()) {
    const MemoryTree tree = load_machine(name);
    const json nvml = load_json(name, "nvml.json");
    const json& gpus = nvml.at("gpus");
    // A container sees all of the bus, and by NVML what it was given.
    const std::size_t on_bus = tree.list("/sys/bus/pci/drivers/nvidia").size();
    EXPECT_EQ(gpus.size(), tree.exists("/.dockerenv") ? 2U : on_bus) << name;
    for (const json& gpu : gpus) {
      std::string bus = gpu.at("pci_bus_id").get<std::string>().substr(4);  // NVML writes eight digits of domain
      std::transform(bus.begin(), bus.end(), bus.begin(), [](unsigned char c) { return std::tolower(c); });
      EXPECT_EQ(tree.read_trimmed("/sys/bus/pci/devices/" + bus + "/vendor"), "0x10de") << name << " " << bus;
    }
    if (!nvml.contains("topology")) continue;
    const std::size_t nics = nvml.at("topology").at("nics").size();
    EXPECT_EQ(nics, tree.list("/sys/class/infiniband").size()) << name;
    for (const auto& [row, cells] : nvml.at("topology").at("matrix").items()) {
      EXPECT_EQ(cells.size(), gpus.size() + nics) << name << " " << row;
    }
  }
}

// Arrays become objects by name, so that a difference is told by name too.
json by_name(const json& answer) {
  json named = {{"links", json::object()}, {"routes", json::object()}};
  for (json link : answer.at("links")) {
    json addresses = json::object();
    for (const json& address : link.at("addr_info")) addresses[address.at("family").get<std::string>()] = address;
    link["addr_info"] = addresses;
    named["links"][link.at("ifname").get<std::string>()] = link;
  }
  for (const json& route : answer.at("routes")) named["routes"][route.at("dev").get<std::string>()].push_back(route);
  return named;
}

Strings differences(const json& from, const json& to) {
  Strings found;
  for (const json& change : json::diff(from, to)) {
    const std::string operation = change.at("op");
    found.push_back((operation == "replace" ? "= "
                     : operation == "add"   ? "+ "
                                            : "- ") +
                    change.at("path").get<std::string>());
  }
  return found;
}

// A variant is its base but for what is listed, with shell wildcards. Nothing else may differ, and all of it must.
struct Variant {
  std::string name;
  std::string base;
  Strings files;
  Strings links;
  Strings nvml;
};

void expect_differences(const std::string& what, const Strings& found, const Strings& expected) {
  std::set<std::string> met;
  for (const std::string& difference : found) {
    const auto pattern = std::find_if(expected.begin(), expected.end(), [&](const std::string& one) {
      return fnmatch(one.c_str(), difference.c_str(), 0) == 0;
    });
    EXPECT_NE(pattern, expected.end()) << what << " differs in more than is listed: " << difference;
    if (pattern != expected.end()) met.insert(*pattern);
  }
  for (const std::string& pattern : expected)
    EXPECT_TRUE(met.contains(pattern)) << what << " does not differ: " << pattern;
}

std::vector<Variant> variants() {
  const std::string pci_a = "/sys/devices/pci0000:00/0000:00:00.0/0000:01:00.0";  // port 0, the two rails
  const std::string pci_b = "/sys/devices/pci0002:00/0002:00:00.0/0002:01:00.0";
  const std::string net_a = pci_a + "/net/enp1s0f0np0", net_b = pci_b + "/net/enP2p1s0f0np0";
  const std::string port_a = pci_a + "/infiniband/rocep1s0f0/ports/1";
  const std::string port_b = pci_b + "/infiniband/roceP2p1s0f0/ports/1";
  const std::string nic = "/sys/devices/pci0000:c7/0000:c7:01.0/0000:c8:00.0/0000:c9:00.0/0000:ca:00.0";
  const Strings oem = {"= /etc/dgx-release", "= /proc/sys/kernel/hostname", "= /sys/devices/virtual/dmi/id/*_vendor",
                       "= /sys/devices/virtual/dmi/id/product_name", "- /sys/devices/virtual/dmi/id/board_name"};
  const auto and_also = [](Strings some, const Strings& more) {
    some.insert(some.end(), more.begin(), more.end());
    return some;
  };
  const auto no_ipv4 = [](const std::string& port) {
    return Strings{"= " + port + "/gids/[23]", "- " + port + "/gid_attrs/types/[23]",
                   "- " + port + "/gid_attrs/ndevs/[23]"};
  };
  return {
      {"spark-pair-2",
       "spark-pair",
       {"= /proc/sys/kernel/hostname", "= /proc/driver/nvidia/gpus/000f:01:00.0/information",
        "= /sys/devices/pci*/net/*/address", "= /sys/devices/pci*/infiniband/*/node_guid",
        "= /sys/devices/pci*/infiniband/*/sys_image_guid", "= /sys/devices/pci*/infiniband/*/ports/1/gids/[01]",
        "= " + port_a + "/gids/[23]", "= " + port_b + "/gids/[23]"},
       {"= /links/*/address", "= /links/*/addr_info/inet/local", "= /links/*/addr_info/inet6/local",
        "= /routes/*/prefsrc"},
       {"= /gpus/0/uuid"}},
      {"spark-ring",
       "spark-pair",
       {"= /sys/devices/*.1/net/*/operstate", "= /sys/devices/*.1/net/*/carrier", "= /sys/devices/*.1/net/*/duplex",
        "= /sys/devices/*.1/net/*/speed", "= /sys/devices/*.1/net/*/mtu",
        "= /sys/devices/*.1/infiniband/*/ports/1/state", "= /sys/devices/*.1/infiniband/*/ports/1/phys_state",
        "= /sys/devices/*.1/infiniband/*/ports/1/rate", "= /sys/devices/*.1/infiniband/*/ports/1/gids/[23]",
        "+ /sys/devices/*.1/infiniband/*/ports/1/gid_attrs/types/[23]",
        "+ /sys/devices/*.1/infiniband/*/ports/1/gid_attrs/ndevs/[23]"},
       {"? /links/en*p1s0f1np1/flags/*", "= /links/en*p1s0f1np1/mtu", "= /links/en*p1s0f1np1/operstate",
        "+ /links/en*p1s0f1np1/addr_info/inet*", "+ /routes/en*p1s0f1np1"},
       {}},
      {"dell-pro-max-gb10", "spark-pair", and_also(oem, {"- /sys/devices/virtual/dmi/id/product_version"}), {}, {}},
      {"asus-gx10",
       "spark-pair",
       and_also(oem, {"= /sys/devices/virtual/dmi/id/product_version", "+ /sys/devices/virtual/dmi/id/bios_version"}),
       {},
       {}},
      {"hp-zgx-nano", "spark-pair", and_also(oem, {"- /sys/devices/virtual/dmi/id/product_version"}), {}, {}},
      {"narrow-pcie",
       "spark-pair",
       {"= /sys/devices/pci0002:00/0002:00:00.0/current_link_width",
        "= /sys/devices/pci0002:00/0002:00:00.0/0002:01:00.[01]/current_link_width"},
       {},
       {}},
      {"rail-down",
       "spark-pair",
       and_also(no_ipv4(port_a), {"= " + net_a + "/operstate", "= " + net_a + "/carrier", "= " + net_a + "/duplex",
                                  "= " + net_a + "/speed", "= " + port_a + "/state", "= " + port_a + "/phys_state",
                                  "= " + port_a + "/rate"}),
       {"? /links/enp1s0f0np0/flags/*", "= /links/enp1s0f0np0/operstate", "- /links/enp1s0f0np0/addr_info/inet*",
        "- /routes/enp1s0f0np0"},
       {}},
      {"rail-unaddressed",
       "spark-pair",
       no_ipv4(port_b),
       {"- /links/enP2p1s0f0np0/addr_info/inet", "- /routes/enP2p1s0f0np0"},
       {}},
      {"gid-drift",
       "spark-pair",
       {"= " + port_b + "/gids/[34]", "- " + port_b + "/gid_attrs/types/3", "- " + port_b + "/gid_attrs/ndevs/3",
        "+ " + port_b + "/gid_attrs/types/4", "+ " + port_b + "/gid_attrs/ndevs/4"},
       {},
       {}},
      {"mtu-1500",
       "spark-pair",
       {"= " + net_a + "/mtu", "= " + net_b + "/mtu"},
       {"= /links/enp1s0f0np0/mtu", "= /links/enP2p1s0f0np0/mtu"},
       {}},
      {"same-subnet",
       "spark-pair",
       {"= " + port_b + "/gids/[23]"},
       {"= /links/enP2p1s0f0np0/addr_info/inet/local", "= /links/enP2p1s0f0np0/addr_info/inet/broadcast",
        "= /routes/enP2p1s0f0np0/0/dst", "= /routes/enP2p1s0f0np0/0/prefsrc"},
       {}},
      {"port-speed-100",
       "spark-pair",
       {"= " + net_a + "/speed", "= " + net_b + "/speed", "= " + port_a + "/rate", "= " + port_b + "/rate"},
       {},
       {}},
      {"link-local",
       "spark-pair",
       and_also(no_ipv4(port_b), {"= " + port_a + "/gids/[23]"}),
       {"= /links/enp1s0f0np0/addr_info/inet/local", "= /links/enp1s0f0np0/addr_info/inet/prefixlen",
        "= /links/enp1s0f0np0/addr_info/inet/broadcast", "= /links/enp1s0f0np0/addr_info/inet/scope",
        "- /links/enP2p1s0f0np0/addr_info/inet", "= /routes/enp1s0f0np0/0/dst", "= /routes/enp1s0f0np0/0/prefsrc",
        "- /routes/enP2p1s0f0np0"},
       {}},
      {"nixos-names",
       "spark-pair",
       {"- /sys/class/infiniband/roce*", "+ /sys/class/infiniband/mlx5_[0123]", "- /sys/devices/pci*/infiniband/roce*",
        "+ /sys/devices/pci*/infiniband/mlx5_[0123]/*"},
       {},
       {}},
      {"nvlink-dead",
       "b300",
       {},
       {},
       {"= /gpus/2/nvlink_links_active", "= /topology/matrix/GPU2/[013-7]", "= /topology/matrix/GPU[013-7]/2"}},
      {"nic-missing",
       "b300",
       {"- " + nic + "/*", "- /sys/bus/pci/devices/0000:ca:00.0", "- /sys/bus/pci/drivers/mlx5_core/0000:ca:00.0",
        "- /sys/class/net/enp202s0np0", "- /sys/class/infiniband/mlx5_7"},
       {"- /links/enp202s0np0", "- /routes/enp202s0np0"},
       {"- /topology/nics/7", "- /topology/matrix/NIC7", "- /topology/matrix/???[0-7]/15"}},
      {"nvlink-16", "b300", {}, {}, {"= /gpus/5/nvlink_links_active"}},
      {"gpu-hot",
       "b300",
       {},
       {},
       {"+ /gpus/3/clock_graphics_mhz", "+ /gpus/3/clock_limits", "= /gpus/3/power_w", "= /gpus/3/temperature_c",
        "= /gpus/3/utilization_percent"}},
      {"gpu-held", "b300", {}, {}, {"= /gpus/6/memory_free", "+ /gpus/6/processes/*"}},
      {"gpu-lost",
       "b300",
       {"- /sys/devices/pci0000:48/*/0000:4e:00.0/*", "- /sys/bus/pci/devices/0000:4e:00.0",
        "- /sys/bus/pci/drivers/nvidia/0000:4e:00.0", "- /dev/nvidia7"},
       {},
       {"? /gpus/*", "? /topology/matrix/*"}},
      {"nic-pinned", "b300", {"+ /etc/nccl.conf"}, {}, {}},
      {"nic-pauses",
       "b300",
       {"= /sys/devices/pci*/infiniband/mlx5_[0-7]/ports/1/counters/port_rcv_packets",
        "= /sys/devices/pci*/infiniband/mlx5_[0-7]/ports/1/counters/port_xmit_packets"},
       {"+ /links/enp*s0np0/flow_control", "+ /links/enp*s0np0/dscp", "+ /links/enp*s0np0/pause_received",
        "+ /links/enp*s0np0/pause_sent", "+ /links/enp*s0np0/discards_received"},
       {}},
      {"gpudirect-off", "b300", {"- /sys/module/nvidia_peermem/*", "= /proc/driver/nvidia/version"}, {}, {}},
      {"driver-570", "b300", {"= /proc/driver/nvidia/version"}, {}, {"= /driver_version", "= /cuda_version"}},
      {"fabric-manager-off", "b300", {}, {}, {"= /gpus/[0-7]/fabric_state", "= /gpus/[0-7]/nvlink_links_active"}},
      {"b300-busy",
       "b300",
       {},
       {},
       {"+ /gpus/[0-7]/clock_graphics_mhz", "+ /gpus/[0-7]/clock_limits", "= /gpus/[0-7]/power_w",
        "= /gpus/[0-7]/temperature_c", "= /gpus/[0-7]/utilization_percent", "= /gpus/[0-7]/memory_free",
        "+ /gpus/[0-7]/processes/*"}},
      {"b300-container",
       "b300",
       {"+ /.dockerenv", "- /dev/nvidia[2-7]"},
       {},
       {"- /gpus/[2-7]", "- /topology/matrix/GPU[2-7]", "? /topology/matrix/???[0-7]/*"}},
      {"h100",
       "b300",
       {"= /proc/sys/kernel/hostname", "= /sys/devices/virtual/dmi/id/product_name", "= /sys/devices/pci*/device",
        "= /sys/devices/pci*/net/*/speed", "= /sys/devices/pci*/infiniband/*/hca_type",
        "= /sys/devices/pci*/infiniband/*/fw_ver", "= /sys/devices/pci*/infiniband/*/board_id",
        "= /sys/devices/pci*/infiniband/*/ports/1/rate"},
       {},
       {"= /gpus/[0-7]/*"}},
  };
}

TEST(Fixtures, AVariantDiffersFromItsBaseOnlyInWhatIsMeant) {
  Strings names = {"b300", "laptop", "spark-pair"};
  for (const Variant& variant : variants()) {
    names.push_back(variant.name);
    expect_differences(variant.name + "/machine.tree",
                       tests::differences(load_machine(variant.base), load_machine(variant.name)), variant.files);
    expect_differences(
        variant.name + "/links.json",
        differences(by_name(load_json(variant.base, "links.json")), by_name(load_json(variant.name, "links.json"))),
        variant.links);
    expect_differences(variant.name + "/nvml.json",
                       differences(load_json(variant.base, "nvml.json"), load_json(variant.name, "nvml.json")),
                       variant.nvml);
  }
  std::sort(names.begin(), names.end());
  EXPECT_EQ(names, machines()) << "a machine that is no variant stands at the top of this test";
}

TEST(Fixtures, NameTheDevicesOfNixosByTheirPlaceOnly) {
  const MemoryTree renamed = load_machine("nixos-names");
  const MemoryTree base = load_machine("spark-pair");
  const std::vector<std::pair<std::string, std::string>> pairs = {{"mlx5_0", "rocep1s0f0"}, {"mlx5_3", "roceP2p1s0f1"}};
  for (const auto& [name, was] : pairs) {
    for (const char* file :
         {"node_guid", "ports/1/state", "ports/1/gids/0", "ports/1/gid_attrs/ndevs/0", "device/class"}) {
      const auto path = [&](const std::string& device) {
        return fmt::format("/sys/class/infiniband/{}/{}", device, file);
      };
      EXPECT_TRUE(base.read(path(was))) << path(was);
      EXPECT_EQ(renamed.read(path(name)), base.read(path(was))) << path(name);
    }
  }
}

}  // namespace
}  // namespace yoke::tests

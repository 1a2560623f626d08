#include "yoke/spec/machine.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "yoke/base/error.h"
#include "yoke/base/json.h"
#include "yoke/spec/finding.h"

namespace yoke::spec {
namespace {

std::string text() { return *rc::gen::container<std::string>(rc::gen::inRange<char>(0, 127)); }
template <class Make>
auto maybe(Make make) -> std::optional<decltype(make())> {
  if (*rc::gen::arbitrary<bool>()) return make();
  return std::nullopt;
}
template <class Make>
auto some(Make make) -> std::vector<decltype(make())> {
  std::vector<decltype(make())> list;
  for (int n = *rc::gen::inRange(0, 3); n > 0; --n) list.push_back(make());
  return list;
}
int number() { return *rc::gen::arbitrary<int>(); }
Bytes bytes() { return {*rc::gen::arbitrary<std::int64_t>()}; }
BitsPerSecond rate() { return {static_cast<double>(*rc::gen::arbitrary<std::int64_t>())}; }

bool coin() { return *rc::gen::arbitrary<bool>(); }
Ipv4 address() { return {*rc::gen::arbitrary<std::uint32_t>()}; }
Ipv4Prefix prefix() { return {address(), *rc::gen::inRange(0, 33)}; }
Seconds seconds() { return {static_cast<double>(number()) / 1024}; }
PcieLink pcie() {
  return {.speed_gt_per_second = 32, .width = number(), .speed_gt_per_second_max = 2.5, .width_max = number()};
}

Gpu random_gpu() {
  return {.index = maybe(number),
          .name = text(),
          .uuid = maybe(text),
          .pci_address = maybe(text),
          .compute_capability = maybe(text),
          .memory = maybe(bytes),
          .memory_free = maybe(bytes),
          .pcie = maybe(pcie),
          .numa_node = maybe(number),
          .cpu_affinity = maybe(text),
          .vbios = maybe(text),
          .persistence = maybe(coin),
          .clock_mhz = maybe(number),
          .clock_mhz_max = maybe(number),
          .power_w = maybe([] { return number() / 8.0; }),
          .power_limit_w = maybe([] { return number() / 8.0; }),
          .temperature_c = maybe(number),
          .utilization_percent = maybe(number),
          .clock_limits = some(text),
          .nvlinks = maybe(number),
          .nvlinks_active = maybe(number),
          .processes = some([] { return GpuProcess{.pid = number(), .memory = maybe(bytes)}; })};
}

NetworkInterface random_interface() {
  return {.name = text(),
          .index = number(),
          .kind = *rc::gen::element(InterfaceKind::kLoopback, InterfaceKind::kEthernet, InterfaceKind::kWifi,
                                    InterfaceKind::kBridge, InterfaceKind::kBond, InterfaceKind::kVirtual,
                                    InterfaceKind::kOther),
          .mac = text(),
          .mtu = number(),
          .up = coin(),
          .carrier = coin(),
          .addresses = some(prefix),
          .ipv6_addresses = some(text),
          .ipv6_disabled = maybe(coin),
          .master = maybe(text),
          .speed = maybe(rate),
          .driver = maybe(text),
          .pci_address = maybe(text),
          .pcie = maybe(pcie),
          .numa_node = maybe(number),
          .rdma_device = maybe(text),
          .port = maybe(number),
          .rail = maybe(text)};
}

RdmaDevice random_rdma_device() {
  const auto gid = [] {
    return GidEntry{.index = number(),
                    .type = *rc::gen::element(GidType::kRoceV1, GidType::kRoceV2),
                    .address = text(),
                    .ipv4 = maybe(address),
                    .interface = text()};
  };
  return {.name = text(),
          .state = text(),
          .physical_state = maybe(text),
          .link_layer = maybe(text),
          .rate = maybe(rate),
          .interface = maybe(text),
          .pci_address = maybe(text),
          .firmware = maybe(text),
          .board = maybe(text),
          .adapter = maybe(text),
          .gids = some(gid),
          .gid_index = maybe(number)};
}

void fill_software(Machine& machine) {
  machine.dgx = maybe([] {
    return DgxRelease{.name = maybe(text),
                      .platform = maybe(text),
                      .version = maybe(text),
                      .update = maybe(text),
                      .hot_plug = coin()};
  });
  machine.driver = maybe(text);
  machine.cuda = maybe(text);
  machine.cuda_toolkit = maybe(text);
  machine.gpu_problem = maybe(text);
  machine.nccl = some([] {
    return NcclBuild{.path = text(),
                     .version = maybe(text),
                     .build_id = maybe(text),
                     .size = maybe(bytes),
                     .architectures = some(text),
                     .ptx = some(text)};
  });
  machine.settings = some([] { return NetworkSetting{.name = text(), .value = text(), .where = text()}; });
  machine.containers = {.runtimes = some(text), .gpu = coin(), .inside = maybe(text), .rdma_access = some(text)};
  machine.memlock = maybe(bytes);
  machine.memlock_unlimited = coin();
  machine.ip_forward = maybe(coin);
  machine.firewall = maybe(text);
  machine.time = {.synchronized = maybe(coin), .error = maybe(seconds), .daemons = some(text)};
}

Machine random_machine() {
  Machine machine;
  machine.hostname = text();
  machine.architecture = text();
  machine.os = text();
  machine.kernel = text();
  machine.vendor = maybe(text);
  machine.product = maybe(text);
  machine.bios = maybe(text);
  machine.cpu = {.model = text(), .cores = maybe(number), .sockets = maybe(number), .numa_nodes = maybe(number)};
  machine.memory = {.total = maybe(bytes),
                    .available = maybe(bytes),
                    .limit = maybe(bytes),
                    .unified = coin(),
                    .cached = maybe(bytes),
                    .huge_pages = maybe(bytes),
                    .swap_total = maybe(bytes),
                    .swap_free = maybe(bytes),
                    .cma_total = maybe(bytes),
                    .cma_free = maybe(bytes)};
  machine.gpus = some(random_gpu);
  machine.topology =
      maybe([] { return DeviceTopology{.devices = some(text), .paths = some([] { return some(text); })}; });
  machine.interfaces = some(random_interface);
  machine.routes = some([] {
    return Route{.destination = maybe(prefix),
                 .gateway = maybe(address),
                 .interface = text(),
                 .source = maybe(address),
                 .metric = maybe(number),
                 .down = coin()};
  });
  machine.rdma_devices = some(random_rdma_device);
  fill_software(machine);
  return machine;
}

RC_GTEST_PROP(Machine, PrintedAsJsonIsReadBackTheSame, ()) {
  const Machine machine = random_machine();
  RC_ASSERT(from_json<Machine>(parse_json(print_json(to_json(machine)), "x")) == machine);
}

RC_GTEST_PROP(Finding, PrintedAsJsonIsReadBackTheSame, ()) {
  const Finding finding{.rule = text(),
                        .severity = *rc::gen::element(Severity::kInfo, Severity::kWarning, Severity::kError),
                        .node = maybe(text),
                        .what = text(),
                        .evidence = text(),
                        .consequence = text(),
                        .fix = text()};
  RC_ASSERT(from_json<Finding>(parse_json(print_json(to_json(finding)), "x")) == finding);
}

TEST(Machine, FromJsonNamesThePathOfWhatIsWrong) {
  Machine machine;
  machine.gpus.push_back({.name = "NVIDIA GB10"});
  Document document = to_json(machine);
  const std::string printed = print_json(document);
  std::string broken = printed;
  broken.replace(broken.find("\"NVIDIA GB10\""), 13, "[]");
  try {
    from_json<Machine>(parse_json(broken, "probe.json"));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.message(), "probe.json: gpus[0].name: this must be a text, not a list");
  }
}

TEST(Machine, FastInterfacesAreThoseWithARailInTheOrderOfPorts) {
  Machine machine;
  machine.interfaces = {{.name = "enP2p1s0f1np1", .port = 1, .rail = "B"},
                        {.name = "enP7s7"},
                        {.name = "enP2p1s0f0np0", .port = 0, .rail = "B"},
                        {.name = "enp1s0f1np1", .port = 1, .rail = "A"},
                        {.name = "enp1s0f0np0", .port = 0, .rail = "A"}};
  std::vector<std::string> names;
  for (const NetworkInterface* interface : fast_interfaces(machine)) names.push_back(interface->name);
  EXPECT_EQ(names, (std::vector<std::string>{"enp1s0f0np0", "enP2p1s0f0np0", "enp1s0f1np1", "enP2p1s0f1np1"}));
  EXPECT_EQ(find_interface(machine, "enP7s7"), &machine.interfaces[1]);
  EXPECT_EQ(find_interface(machine, "eth0"), nullptr);
  EXPECT_EQ(find_rdma_device(machine, "mlx5_0"), nullptr);
}

}  // namespace
}  // namespace yoke::spec

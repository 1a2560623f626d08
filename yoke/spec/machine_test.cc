#include "yoke/spec/machine.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "yoke/base/error.h"
#include "yoke/base/json.h"
#include "yoke/spec/finding.h"

namespace yoke {
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

Machine random_machine() {
  Machine machine;
  machine.hostname = text();
  machine.architecture = text();
  machine.os = text();
  machine.kernel = text();
  machine.product = maybe(text);
  machine.driver = maybe(text);
  machine.cpu = {.model = text(), .cores = number(), .numa_nodes = number()};
  machine.memory = {
      .total = bytes(), .available = bytes(), .limit = maybe(bytes), .unified = *rc::gen::arbitrary<bool>()};
  machine.gpus = some([] {
    return Gpu{.name = text(), .pci_address = maybe(text), .compute_capability = maybe(text), .memory = maybe(bytes)};
  });
  machine.interfaces = some([] {
    const auto link = [] {
      return PcieLink{
          .speed_gt_per_second = 32, .width = number(), .speed_gt_per_second_max = 2.5, .width_max = number()};
    };
    return NetworkInterface{.name = text(),
                            .mac = text(),
                            .mtu = number(),
                            .up = *rc::gen::arbitrary<bool>(),
                            .carrier = *rc::gen::arbitrary<bool>(),
                            .addresses = some(text),
                            .speed = maybe(rate),
                            .pci_address = maybe(text),
                            .pcie = maybe(link)};
  });
  machine.rdma_devices = some([] {
    const auto gid = [] {
      return Gid{.index = number(),
                 .type = *rc::gen::element(GidType::kRoceV1, GidType::kRoceV2),
                 .address = text(),
                 .interface = text()};
    };
    return RdmaDevice{.name = text(),
                      .state = text(),
                      .rate = maybe(rate),
                      .pci_address = maybe(text),
                      .firmware = maybe(text),
                      .gids = some(gid)};
  });
  return machine;
}

RC_GTEST_PROP(Machine, PrintedAsJsonIsReadBackTheSame, ()) {
  const Machine machine = random_machine();
  RC_ASSERT(machine_from_json(parse_json(print_json(to_json(machine)), "x")) == machine);
}

RC_GTEST_PROP(Finding, PrintedAsJsonIsReadBackTheSame, ()) {
  const Finding finding{.rule = text(),
                        .severity = *rc::gen::element(Severity::kNote, Severity::kWarning, Severity::kFault),
                        .node = maybe(text),
                        .what = text(),
                        .evidence = text(),
                        .consequence = text(),
                        .fix = text()};
  RC_ASSERT(finding_from_json(parse_json(print_json(to_json(finding)), "x")) == finding);
}

TEST(Machine, FromJsonNamesThePathOfWhatIsWrong) {
  Machine machine;
  machine.gpus.push_back({.name = "NVIDIA GB10"});
  Document document = to_json(machine);
  const std::string printed = print_json(document);
  std::string broken = printed;
  broken.replace(broken.find("\"NVIDIA GB10\""), 13, "[]");
  try {
    machine_from_json(parse_json(broken, "probe.json"));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.message(), "probe.json: gpus[0].name: this must be a text, not a list");
  }
}

}  // namespace
}  // namespace yoke

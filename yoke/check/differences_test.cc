#include "yoke/check/differences.h"

#include <gtest/gtest.h>

#include "yoke/base/json.h"

namespace yoke::check {
namespace {

spec::Machine spark() {
  spec::Machine machine;
  machine.kernel = "6.14.0-1013-nvidia";
  machine.driver = "580.126.09";
  machine.memory.total = Bytes{127'535'084LL * 1024};
  machine.gpus = {{.name = "NVIDIA GB10"}};
  machine.interfaces = {{.name = "enp1s0f0np0", .mtu = 9000, .port = 0, .rail = "A"}};
  machine.nccl = {{.path = "/usr/lib/libnccl.so.2", .version = "2.28.9+cuda13.0", .build_id = "c0db936012"}};
  return machine;
}

TEST(Differences, AreNoneBetweenEqualMachinesNorForOne) {
  spec::Machine other = spark();
  other.hostname = "spark-2";
  other.memory.total = Bytes{127'601'452LL * 1024};  // another kernel's share, of the same memory
  other.nccl[0].path = "/usr/local/lib/libnccl.so.2";
  EXPECT_EQ(find_differences({{"spark-1", spark()}, {"spark-2", other}}), std::vector<Difference>{});
  EXPECT_EQ(find_differences({{"spark-1", spark()}}), std::vector<Difference>{});
  EXPECT_EQ(find_differences({}), std::vector<Difference>{});
}

TEST(Differences, NameTheFactItsValuesAndWhoHasThem) {
  spec::Machine second = spark();
  second.driver.reset();
  second.interfaces[0].mtu = 1500;
  spec::Machine third = spark();
  third.nccl[0].build_id = "a7f420a1ff";
  const std::vector<Difference> expected = {
      {"driver", {{"580.126.09", {"n1", "n3"}}, {"none", {"n2"}}}},
      {"NCCL", {{"2.28.9+cuda13.0 (c0db9360)", {"n1", "n2"}}, {"2.28.9+cuda13.0 (a7f420a1)", {"n3"}}}},
      {"MTU of port 0 half A", {{"9000", {"n1", "n3"}}, {"1500", {"n2"}}}},
  };
  const std::vector<Difference> found = find_differences({{"n1", spark()}, {"n2", second}, {"n3", third}});
  EXPECT_EQ(found, expected) << print_json(to_json(found));
  EXPECT_EQ(to_json(found).items.at(0).find("fact")->text, "driver");
}

TEST(Differences, TakeThePortsRateWhereTheInterfaceReportsNoSpeed) {
  spec::Machine first = spark();
  first.interfaces[0].carrier = true;
  first.interfaces[0].rdma_device = "rocep1s0f0";
  first.rdma_devices = {{.name = "rocep1s0f0", .state = "ACTIVE", .rate = BitsPerSecond{200e9}}};
  spec::Machine second = first;
  second.rdma_devices[0].rate = BitsPerSecond{100e9};
  const auto found = find_differences({{"n1", first}, {"n2", second}});
  ASSERT_EQ(found.size(), 1U) << print_json(to_json(found));
  EXPECT_EQ(found[0], (Difference{"speed of port 0 half A", {{"200 Gb/s", {"n1"}}, {"100 Gb/s", {"n2"}}}}));
  for (spec::Machine* machine : {&first, &second}) machine->interfaces[0].carrier = false;
  EXPECT_TRUE(find_differences({{"n1", first}, {"n2", second}}).empty()) << "a port that is down has no rate";
}

TEST(Differences, TellOfANodeThatLacksAPort) {
  spec::Machine second = spark();
  second.interfaces.clear();
  const auto found = find_differences({{"n1", spark()}, {"n2", second}});
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].fact, "MTU of port 0 half A");
  EXPECT_EQ(found[0].values[1], (Difference::Value{"none", {"n2"}}));
}

}  // namespace
}  // namespace yoke::check

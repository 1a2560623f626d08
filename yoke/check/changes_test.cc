#include "yoke/check/changes.h"

#include <gtest/gtest.h>

#include "yoke/check/facts_testing.h"

namespace yoke::check {
namespace {

TEST(Changes, ThereAreNoneInTheSameFactsAndInWhatAlwaysDiffers) {
  spec::Survey now = made_pair();
  now.nodes[1].machine->memory.available = Bytes{1LL << 30};
  now.nodes[1].machine->gpus[0].temperature_c = 77;
  now.nodes[1].clock_ahead = Seconds{-0.2};
  EXPECT_TRUE(find_changes(made_pair(), now).empty());
}

TEST(Changes, NameNodeWhatBeforeAndNow) {
  spec::Survey now = made_pair();
  now.nodes[1].machine->kernel = "7.0.0-1019-nvidia";
  now.nodes[1].machine->nccl[0].build_id = "a7f420a1";
  interface_of(now, 1, kRailB).mtu = 1500;
  interface_of(now, 0, kRailA).addresses.clear();
  rdma_of(now, 0, "rocep1s0f0").firmware = "28.46.1000";
  rdma_of(now, 0, "rocep1s0f0").gid_index = 4;
  now.nodes[0].machine->settings = {{"NCCL_IB_GID_INDEX", "3", "/etc/nccl.conf"}};
  const std::vector<FactChange> expected = {
      {"spark-1", "enp1s0f0np0 address", "192.168.100.1/24", ""},
      {"spark-1", "rocep1s0f0 firmware", "28.45.4028", "28.46.1000"},
      {"spark-1", "rocep1s0f0 GID index", "3", "4"},
      {"spark-1", "NCCL_IB_GID_INDEX (/etc/nccl.conf)", "", "'3'"},
      {"spark-2", "kernel", "6.14.0-1013-nvidia", "7.0.0-1019-nvidia"},
      {"spark-2", "NCCL /usr/lib/libnccl.so.2", "2.28.9+cuda13.0 c0db9360", "2.28.9+cuda13.0 a7f420a1"},
      {"spark-2", "enP2p1s0f0np0 MTU", "9000", "1500"}};
  EXPECT_EQ(find_changes(made_pair(), now), expected);
}

TEST(Changes, ANodeThatIsGoneOrOffAndANewOneAreReported) {
  spec::Survey now = made_pair();
  now.nodes[1].machine.reset();
  now.nodes[1].failure = spec::NodeFailure{spec::NodeFailureKind::kUnreachable, "no answer", ""};
  EXPECT_EQ(find_changes(made_pair(), now), (std::vector<FactChange>{{"spark-2", "node", "answers", "no answer"}}));
  now.nodes.pop_back();
  EXPECT_EQ(find_changes(made_pair(), now), (std::vector<FactChange>{{"spark-2", "node", "in the cluster", ""}}));
  EXPECT_EQ(find_changes(now, made_pair()), (std::vector<FactChange>{{"spark-2", "node", "", "in the cluster"}}));
}

TEST(Changes, RatesCountFromFifteenPercent) {
  spec::Survey before = made_pair();
  before.measurement = made_measurement();
  spec::Survey now = before;
  now.measurement->rails[0].alone = BitsPerSecond{90e9};
  EXPECT_TRUE(find_changes(before, now).empty());
  now.measurement->rails[0].alone = BitsPerSecond{13e9};
  EXPECT_EQ(find_changes(before, now),
            (std::vector<FactChange>{{"spark-1", "rate of enp1s0f0np0 to spark-2", "96 Gb/s", "13 Gb/s"}}));
  now.measurement.reset();  // not measured this time: nothing to compare
  EXPECT_TRUE(find_changes(before, now).empty());
}

TEST(Changes, ARailThatAnswersNoMoreIsReported) {
  spec::Survey now = made_pair();
  now.nodes[0].paths[1].small = false;
  EXPECT_EQ(find_changes(made_pair(), now),
            (std::vector<FactChange>{{"spark-1", "enP2p1s0f0np0 to spark-2", "answers", "no answer"}}));
}

}  // namespace
}  // namespace yoke::check

// Logs as launchers, containers and older releases write them, and jobs that do not talk by RDMA or TCP.
#include "yoke/check/nccl_log_read.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "yoke/check/nccl_log_testing.h"

namespace yoke::check {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

TEST(NcclLogLine, TheHostIsFoundBehindWhateverALauncherPutBefore) {
  for (const char* const prefix :
       {"", "[1,0]<stdout>:", "[1,0]<stdout>: ", "[default0]:", "[rank0]: ", "(Worker pid=7) ", "trainer-1  | ",
        "2026-01-02T03:04:05.6Z stderr F ", "[pod/trainer-0/main] ", "[2026-01-02 03:04:05] ",
        "0: ", "Jan 02 03:04:05 head python[10]: ", "\x1b[36m", "\x1b[1;36mtrainer-1 |\x1b[0m ", "{\"log\":\""}) {
    const std::string line = std::string(prefix) + "spark_1-a.lan:10:12 [0] NCCL INFO Using network IB\r\n";
    const spec::NcclLog log = parse_nccl_log(line);
    ASSERT_EQ(log.hosts.size(), 1U) << prefix;
    EXPECT_EQ(log.hosts.begin()->first, "spark_1-a.lan") << prefix;
  }
  EXPECT_EQ(host_before("a:10:12 [3] transport/net_ib.cc:2244 (ncclIbTest) "), "a");
}

TEST(NcclLogLine, WithoutAHostTheLineStillCounts) {
  for (const char* const before : {"", " ", "[0] ", "10:12 [0] ", ":10:12 [0] ", "a:10: [0] ", "a:b:12 [0] "}) {
    EXPECT_EQ(host_before(before), "an unnamed host") << before;
  }
  EXPECT_EQ(parse_nccl_log("NCCL INFO Using network IB").lines, 1);
}

TEST(NcclLogLine, ColoursAndTheJsonOfContainersAreTakenOff) {
  const auto plain_line = [](std::string_view line) {
    std::string made;
    return std::string(check::plain_line(line, made));
  };
  EXPECT_EQ(plain_line("\x1b[1;36ma\x1b[0m b \r\x1b[K"), "a b");
  EXPECT_EQ(plain_line("a\x1b[36"), "a");
  EXPECT_EQ(plain_line(R"({"log":"a \u003c0\u003e\n","stream":"stderr"})"), "a <0>");
  EXPECT_EQ(plain_line(R"({"level":"info","message":"\u001b[36mb"})"), "b");
  for (const char* const own : {R"({"loss": 0.5})", R"({"log": 5})", R"({"log": "cut)", "{}"}) {
    EXPECT_EQ(plain_line(own), own);
  }
}

TEST(NcclLog, AFallBackToTcpShowsBehindAnyPrefix) {
  for (const char* const name : {"torchrun-tee", "docker-json"}) {
    const spec::NcclLog log = load_nccl_log(name);
    EXPECT_THAT(describe(log), HasSubstr("spark-a\n  transport    RDMA over rocep1s0f0 and roceP2p1s0f0 (both rails)"));
    EXPECT_THAT(describe(log), HasSubstr("spark-b\n  transport    TCP (NET/Socket) over enP7s7:192.168.1.16: no RDMA"));
    EXPECT_THAT(rules_of(log), ElementsAre("nccl-tcp")) << name;
  }
}

TEST(NcclLog, RanksOfOneHostThatTalkTcpAreNotHiddenByOthersThatDoRdma) {
  spec::NcclLog log = load_nccl_log("good");
  log.hosts.at("spark-a").channels["NET/Socket/0"] = 2;
  ASSERT_THAT(rules_of(log), ElementsAre("nccl-tcp"));
  EXPECT_EQ(evaluate(log)[0].what, "some ranks on spark-a talk TCP, not RDMA");
  EXPECT_THAT(describe(log), HasSubstr("RDMA by some ranks only"));
}

TEST(NcclLog, AJobInsideOneMachineHasNoNetworkToEvaluate) {
  spec::NcclLog log = load_nccl_log("one-machine");
  EXPECT_THAT(describe(log), HasSubstr("P2P (inside one machine)"));
  EXPECT_THAT(rules_of(log), IsEmpty());
  log.nodes.reset();  // releases before 2.20 do not tell
  EXPECT_THAT(rules_of(log), IsEmpty());
}

TEST(NcclLog, RanksThatReachTheirNeighboursWithoutANetworkMayBePartOfALargerJob) {
  spec::NcclLog log = load_nccl_log("one-machine");
  log.nodes = 2;
  EXPECT_THAT(rules_of(log), ElementsAre("nccl-tcp"));
  log.nodes.reset();
  log.hosts["other"] = log.hosts.at("box");
  EXPECT_THAT(rules_of(log), ElementsAre("nccl-tcp", "nccl-tcp"));
}

TEST(NcclLog, OneRankUsesNoNetworkButOneOfSeveralCommunicatorsMayBeAlone) {
  std::string text = "a:1:1 [0] NCCL INFO NET/IB : Using [0]rocep1s0f0:1/RoCE [RO]; OOB enP7s7:192.168.1.15<0>\n";
  text += "a:1:1 [0] NCCL INFO Using network IB\na:1:1 [0] NCCL INFO comm 0x1 rank 0 nranks 1 - Init COMPLETE\n";
  EXPECT_THAT(describe(parse_nccl_log(text)), HasSubstr(", 1 rank\na\n  transport    inside one machine\n"));
  EXPECT_THAT(rules_of(parse_nccl_log(text)), IsEmpty());
  EXPECT_THAT(rules_of(parse_nccl_log("a:1:1 [0] NCCL INFO comm 0x2 rank 0 nranks 2 - Init COMPLETE\n" + text)),
              ElementsAre("nccl-one-rail"));
}

TEST(NcclLog, DevicesThatOlderReleasesMergedAreKnownByTheirPlaces) {
  spec::NcclLog log = load_nccl_log("merged-2.20");
  EXPECT_THAT(describe(log), HasSubstr("NCCL 2.20.5+cuda12.4, 2 ranks\n"));
  EXPECT_THAT(describe(log), HasSubstr("rocep1s0f0+rocep1s0f1 as one device"));
  EXPECT_THAT(describe(log), HasSubstr("rocep1s0f1 index 3 (192.168.100.16)"));
  EXPECT_THAT(log.hosts.at("spark-a").devices, ElementsAre("rocep1s0f0", "rocep1s0f1", "roceP2p1s0f0", "roceP2p1s0f1"));
  EXPECT_THAT(rules_of(log), ElementsAre("nccl-one-rail"));
  log.hosts.at("spark-a").channels["NET/IB/1"] = 2;
  EXPECT_THAT(rules_of(log), IsEmpty());
}

TEST(NcclLog, ASingleDeviceBehindAMergedOneIsCountedByItsPlaceInTheList) {
  const spec::NcclLog log = parse_nccl_log(
      "a:1:1 [0] NCCL INFO NET/IB : Using [0]={[0] mlx5_0:1/RoCE, [1] mlx5_1:1/RoCE} [2]mlx5_2:1/IB [RO]; OOB "
      "eno1:10.0.0.1<0>\n"
      "a:1:1 [0] NCCL INFO NET/IB: NCCL Dev 1 IbDev 2 Port 1 qpn 5 mtu 5 GID 3 (0/1064A8C0FFFF0000)\n");
  const spec::NcclHost& host = log.hosts.at("a");
  EXPECT_THAT(host.devices, ElementsAre("mlx5_0", "mlx5_1", "mlx5_2"));
  EXPECT_THAT(host.virtual_devices.at(0), ElementsAre("mlx5_0", "mlx5_1"));
  EXPECT_THAT(host.virtual_devices.at(1), ElementsAre("mlx5_2"));
  EXPECT_THAT(describe(log), HasSubstr("mlx5_2 index 3"));
}

TEST(NcclLog, QueuesOfReleasesThatMergeNothingAreRead) {
  const spec::NcclLog log = load_nccl_log("dev-2.18");
  EXPECT_THAT(describe(log), HasSubstr("NCCL 2.18.6+cuda12.2, 2 ranks\n"));
  EXPECT_THAT(describe(log), HasSubstr("mlx5_1 index 0 (link-local)"));
  EXPECT_THAT(rules_of(log), ElementsAre("nccl-gid-link-local", "nccl-mtu-small"));
}

TEST(NcclLog, AWholeNicWithGpuDirectIsNoRailWhateverItsName) {
  const std::string list = "ws1:1:1 [0] NCCL INFO NET/IB : Using [0]rocep1s0f0:1/RoCE [RO]; OOB eno1:10.0.0.1<0>\n";
  ASSERT_THAT(rules_of(parse_nccl_log(list)), ElementsAre("nccl-one-rail"));
  for (const char* const sign : {"NET/IB : GPU Direct RDMA Enabled for HCA 0 'rocep1s0f0'",
                                 "Channel 00/0 : 0[0] -> 1[0] [send] via NET/IB/0/GDRDMA"}) {
    const spec::NcclLog log = parse_nccl_log(list + "ws1:1:1 [0] NCCL INFO " + sign + "\n");
    EXPECT_THAT(rules_of(log), IsEmpty()) << sign;
    EXPECT_THAT(describe(log), Not(HasSubstr("rail")));
  }
}

TEST(NcclLog, APluginIsNamedAndIsTcpWhereItsProviderIs) {
  spec::NcclLog log = load_nccl_log("libfabric-tcp");
  EXPECT_THAT(describe(log), HasSubstr("TCP (plugin AWS Libfabric, provider tcp;ofi_rxm): no RDMA"));
  const std::vector<spec::Finding> findings = evaluate(log);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].rule, "nccl-tcp");
  EXPECT_THAT(findings[0].fix, HasSubstr("FI_PROVIDER"));
  log.hosts.at("node-a").provider = "efa";
  EXPECT_THAT(describe(log), HasSubstr("transport    plugin AWS Libfabric, provider efa\n"));
  EXPECT_THAT(rules_of(log), IsEmpty());
}

TEST(NcclLog, DevicesThatTheLogDoesNotNameAreNotLeftBlank) {
  const spec::NcclLog log = parse_nccl_log("a:1:1 [0] NCCL INFO Using network IB\n");
  EXPECT_THAT(describe(log), HasSubstr("RDMA over devices that it does not name\n"));
}

}  // namespace
}  // namespace yoke::check

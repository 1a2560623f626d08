#include "yoke/check/nccl_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "yoke/base/error_testing.h"
#include "yoke/check/nccl_log_testing.h"

namespace yoke::check {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

TEST(NcclLog, GoodIsSaidInWordsAndNothingIsWrong) {
  const spec::NcclLog log = load_nccl_log("good");
  const std::string words = describe(log);
  EXPECT_THAT(words, HasSubstr("NCCL 2.28.9+cuda13.0, 2 ranks\n"));
  EXPECT_THAT(words, HasSubstr("RDMA over rocep1s0f1 and roceP2p1s0f1 (both rails)"));
  EXPECT_THAT(words, HasSubstr("1 by NET/IB/0, 1 by NET/IB/1"));
  EXPECT_THAT(words, HasSubstr("enP7s7:192.168.1.15\n"));
  EXPECT_THAT(words, HasSubstr("4096 bytes (Ethernet MTU 9000)"));
  EXPECT_THAT(words, HasSubstr("rocep1s0f1 index 3 (192.168.100.16), roceP2p1s0f1 index 3 (192.168.101.16)"));
  EXPECT_THAT(words, HasSubstr("off, as always on a GB10"));
  EXPECT_THAT(rules_of(log), IsEmpty());
}

TEST(NcclLog, OneRailIsReported) {
  const spec::NcclLog log = load_nccl_log("one-rail");
  EXPECT_THAT(describe(log), HasSubstr("RDMA over rocep1s0f1 (one rail only)"));
  EXPECT_THAT(rules_of(log), ElementsAre("nccl-one-rail"));
}

TEST(NcclLog, TwoRailsWithAllChannelsOnOneAreOneRailToo) {
  spec::NcclLog log = load_nccl_log("good");
  log.hosts.begin()->second.channels = {{"NET/IB/0", 8}};
  EXPECT_THAT(rules_of(log), ElementsAre("nccl-one-rail"));
  EXPECT_THAT(describe(log), HasSubstr("(one rail only)"));
}

TEST(NcclLog, APluginsChannelsAreEvaluatedAsNcclsOwn) {
  spec::NcclLog log = load_nccl_log("plugin-one-rail");
  EXPECT_THAT(describe(log), HasSubstr("RDMA over rocep1s0f1 and roceP2p1s0f1 (one rail only)"));
  EXPECT_THAT(rules_of(log), ElementsAre("nccl-one-rail"));
  log.hosts.begin()->second.channels["NET/IBext_v10/1"] = 1;
  EXPECT_THAT(describe(log), HasSubstr("(both rails)"));
  EXPECT_THAT(rules_of(log), IsEmpty());
}

TEST(NcclLog, AMergedDeviceOfOnePciDomainIsOneRail) {
  const spec::NcclLog log = load_nccl_log("merged-one-rail");
  EXPECT_THAT(describe(log), HasSubstr("(one rail only)"));
  const std::vector<spec::Finding> findings = evaluate(log);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].rule, "nccl-one-rail");
  EXPECT_THAT(findings[0].evidence, HasSubstr("2 by NET/IB/4, all on rocep1s0f0 and rocep1s0f1"));
}

TEST(NcclLog, RailsMergedByForceAreBoth) {
  spec::NcclLog log = load_nccl_log("merged");
  log.hosts.begin()->second.virtual_devices = {{4, {"rocep1s0f0", "roceP2p1s0f0"}}};
  log.hosts.begin()->second.channels = {{"NET/IB/4", 4}};
  EXPECT_THAT(describe(log), HasSubstr("rocep1s0f0+roceP2p1s0f0 as one device\n"));
  EXPECT_THAT(rules_of(log), IsEmpty());
}

TEST(NcclLog, ChannelsOfANumberThatNothingExplainsAreNotGuessed) {
  spec::NcclLog log = load_nccl_log("good");
  log.hosts.begin()->second.channels = {{"NET/IB/7", 4}};
  EXPECT_THAT(describe(log), HasSubstr("(both rails)"));
  EXPECT_THAT(rules_of(log), IsEmpty());
}

TEST(NcclLog, TcpIsTheWorstAndTheReasonIsGiven) {
  const spec::NcclLog log = load_nccl_log("tcp");
  EXPECT_THAT(describe(log), HasSubstr("TCP (NET/Socket) over enP7s7:192.168.0.111: no RDMA"));
  EXPECT_THAT(describe(log), HasSubstr("plugin: /opt/hpcx/"));
  const std::vector<spec::Finding> findings = evaluate(log);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].rule, "nccl-tcp");
  EXPECT_EQ(findings[0].severity, spec::Severity::kError);
  EXPECT_THAT(findings[0].evidence, HasSubstr("No device found"));
  EXPECT_THAT(findings[0].fix, HasSubstr("/dev/infiniband"));
}

TEST(NcclLog, MergedPortsAreNotTakenForMergedRails) {
  const spec::NcclLog log = load_nccl_log("merged");
  EXPECT_THAT(describe(log), HasSubstr("rocep1s0f0+rocep1s0f1 as one device: the ports of one PCI domain"));
  EXPECT_THAT(describe(log), HasSubstr("(both rails)"));
  EXPECT_THAT(rules_of(log), IsEmpty());
}

TEST(NcclLog, AnUnaddressedRailStillCarriesAndIsAWarning) {
  const spec::NcclLog log = load_nccl_log("unaddressed-rail");
  EXPECT_THAT(describe(log), HasSubstr("roceP2p1s0f1 index 0 (link-local)"));
  const std::vector<spec::Finding> findings = evaluate(log);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].rule, "nccl-gid-link-local");
  EXPECT_EQ(findings[0].subject, "roceP2p1s0f1");
  EXPECT_EQ(findings[0].severity, spec::Severity::kWarning);
}

TEST(NcclLog, ARingThatCollapsedIsReportedWithTheFailedConnection) {
  const spec::NcclLog log = load_nccl_log("ring-collapse");
  EXPECT_THAT(describe(log), HasSubstr("no communicator was made"));
  EXPECT_THAT(rules_of(log), ElementsAre("nccl-ring-collapse", "nccl-connect"));
}

TEST(NcclLog, AFailureIsReportedByItsCauseNotByWhatFollowedOnOtherRanks) {
  const spec::NcclLog log = load_nccl_log("no-kernel-image");
  EXPECT_THAT(describe(log), HasSubstr("no communicator was made"));
  const std::vector<spec::Finding> findings = evaluate(log);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].rule, "nccl-failed");
  EXPECT_EQ(findings[0].severity, spec::Severity::kError);
  EXPECT_EQ(findings[0].node, "spark-a");
  EXPECT_THAT(findings[0].what, HasSubstr("no code for this GPU"));
  EXPECT_THAT(findings[0].evidence, HasSubstr("Cuda failure 209"));
}

TEST(NcclLog, FailuresAreExplainedInWords) {
  const std::pair<const char*, const char*> cases[] = {
      {"Duplicate GPU detected : rank 0 and rank 1 both on CUDA device f01000", "two ranks were put on one GPU"},
      {"Multiple Ranks are using the same GPU/Partition. Set NCCL_MULTI_RANK_GPU_ENABLE=1", "two ranks"},
      {"Call to ibv_reg_mr failed with error Cannot allocate memory", "locked for RDMA"},
      {"NET/IB : Unable to register memory", "locked for RDMA"},
      {"Call to ibv_create_cq failed with error Cannot allocate memory", "locked for RDMA"},
      {"Bootstrap : no socket interface found", "no interface to meet"},
      {"Call to connect to 172.17.0.1<41235> failed : Connection refused", "could not be reached over TCP"},
      {"socketPollConnect: connect to 10.0.0.2<4000> returned No route to host, exceeded error retry count",
       "over TCP"},
      {"Cuda failure 2 'out of memory'", "no memory left"},
      {"NET/IB : rocep1s0f0:1 async fatal event: local catastrophic error", "RDMA device failed"},
      {"Cuda failure 101 'invalid device ordinal'", "a CUDA call failed"},
      {"something that nobody has seen", "NCCL failed"},
  };
  for (const auto& [warning, words] : cases) {
    const std::vector<spec::Finding> findings =
        evaluate(parse_nccl_log(std::string("a:1:1 [0] init.cc:9 NCCL WARN ") + warning + "\n"));
    ASSERT_EQ(findings.size(), 1U) << warning;
    EXPECT_EQ(findings[0].rule, "nccl-failed");
    EXPECT_THAT(findings[0].what, HasSubstr(words));
    EXPECT_EQ(findings[0].evidence, warning);
  }
}

TEST(NcclLog, AnErrorThatTheJobItselfReportsIsAFailureAlsoAfterAGoodStart) {
  spec::NcclLog log = load_nccl_log("good");
  add_nccl_log(log, "spark-a: Test NCCL failure common.cu:1005 'unhandled system error'\n");
  EXPECT_THAT(rules_of(log), ElementsAre("nccl-failed"));
}

TEST(NcclLog, AJobThatHungInACollectiveHasFailedAlsoAfterAGoodStart) {
  spec::NcclLog log = load_nccl_log("hung");
  const std::vector<spec::Finding> findings = evaluate(log);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].rule, "nccl-failed");
  EXPECT_EQ(findings[0].what, "the job hung in a collective");
  EXPECT_THAT(findings[0].evidence, HasSubstr("OpType=ALLREDUCE"));
  EXPECT_THAT(findings[0].fix, HasSubstr("nvidia-nccl-cu13"));
  // What follows on another rank when the first gives up is not the cause.
  add_nccl_log(log, "b:1:1 [0] socket.cc:58 NCCL WARN socketProgress: Connection closed by remote peer a<4000>\n");
  EXPECT_EQ(evaluate(log)[0].what, "the job hung in a collective");
  EXPECT_THAT(evaluate(log)[0].evidence, HasSubstr("NCCL warned: socketProgress"));
  // What broke a connection is.
  add_nccl_log(log, "b:1:1 [0] net_ib.cc:9 NCCL WARN NET/IB: Got completion with status=IBV_WC_RETRY_EXC_ERR(12)\n");
  EXPECT_THAT(rules_of(log), ElementsAre("nccl-connect"));
}

TEST(NcclLog, RanksThatNeverMetAreDistinguishedFromThoseThatHung) {
  for (const char* const line :
       {"torch.distributed.DistStoreError: Timed out after 601 seconds waiting for clients. 1/2 clients joined.",
        "torch.distributed.DistNetworkError: The client socket has timed out after 600000ms",
        "torch.distributed.DistBackendError: [1] is setting up NCCL communicator and retrieving ncclUniqueId from "
        "[0]"}) {
    const std::vector<spec::Finding> findings = evaluate(parse_nccl_log(line));
    ASSERT_EQ(findings.size(), 1U) << line;
    EXPECT_EQ(findings[0].what, "the ranks never met");
    EXPECT_THAT(findings[0].fix, HasSubstr("MASTER_ADDR"));
  }
}

TEST(NcclLog, ErrorsOfPyTorchAreFailures) {
  for (const char* const line : {"torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp:1691",
                                 "ncclRemoteError: remote process exited or there was a network error"}) {
    spec::NcclLog log = load_nccl_log("good");
    add_nccl_log(log, line);
    ASSERT_THAT(rules_of(log), ElementsAre("nccl-failed")) << line;
    EXPECT_EQ(evaluate(log)[0].what, "a call of NCCL failed");
  }
}

TEST(NcclLog, AStartWithoutAnEndWasCutOrHungAndALogThatShowsNeitherIsNoFinding) {
  const std::string start = "a:1:1 [0] NCCL INFO comm 0x1 rank 0 nranks 2 busId f01000 - Init START\n";
  const std::vector<spec::Finding> findings = evaluate(parse_nccl_log(start));
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].rule, "nccl-log-cut");
  EXPECT_EQ(findings[0].severity, spec::Severity::kWarning);
  EXPECT_THAT(findings[0].what, HasSubstr("it was cut here, or the job hung"));
  EXPECT_EQ(findings[0].evidence, "comm 0x1 rank 0 nranks 2 busId f01000 - Init START");
  EXPECT_THAT(findings[0].fix, HasSubstr("were all 2 ranks started?"));
  EXPECT_THAT(describe(parse_nccl_log(start)), HasSubstr("ends before Init COMPLETE"));
  EXPECT_THAT(describe(parse_nccl_log(start)), Not(HasSubstr("no communicator was made")));
  const spec::NcclLog neither = parse_nccl_log("a:1:1 [0] NCCL INFO NET/IB : Using network IB\n");
  EXPECT_THAT(rules_of(neither), IsEmpty());
  EXPECT_THAT(describe(neither), Not(HasSubstr("communicator")));
}

TEST(NcclLog, ASlowResultOfNcclTestsIsTheProofOfTheDegradedState) {
  const std::string ranks =
      "#  Rank  0 Group  0 Pid   4711 on    spark-a device  0 [000f:01:00] NVIDIA GB10\n"
      "#  Rank  1 Group  0 Pid   4712 on    spark-b device  0 [000f:01:00] NVIDIA GB10\n";
  const std::string small =
      "     1048576    262144     float     sum      -1    400.2    2.62    2.62      0    401.1    "
      "2.61    2.61      0\n";
  const std::string large =
      "  1073741824  268435456   float     sum      -1  379412    2.83    2.83      0   379020     "
      "2.83    2.83      0\n";
  const spec::NcclLog log = parse_nccl_log(ranks + small + large + "# Avg bus bandwidth    : 2.72\n");
  EXPECT_EQ(log.lines, 5);
  EXPECT_THAT(describe(log), HasSubstr("nccl-tests: 2.83 GB/s with 1 GiB, 2.72 GB/s on average on the bus"));
  const std::vector<spec::Finding> findings = evaluate(log);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].rule, "nccl-slow");
  EXPECT_THAT(findings[0].what, HasSubstr("2.83 GB/s on the bus between 2 machines with NVIDIA GB10, 11%"));
  EXPECT_THAT(findings[0].evidence, testing::StartsWith("1073741824  268435456   float"));
  EXPECT_THAT(findings[0].fix, HasSubstr("power"));
  EXPECT_THAT(rules_of(parse_nccl_log(ranks + "# Avg bus bandwidth    : 2.83\n")), ElementsAre("nccl-slow"));
  // As a healthy pair, as small messages are, and as one machine alone.
  EXPECT_THAT(
      rules_of(parse_nccl_log(ranks + "1073741824 268435456 float sum -1 49000 21.9 21.9 0 49000 21.9 21.9 0\n")),
      IsEmpty());
  EXPECT_THAT(rules_of(parse_nccl_log(ranks + "65536 16384 float sum -1 60 1.09 1.09 0 60 1.09 1.09 0\n")), IsEmpty());
  EXPECT_THAT(rules_of(parse_nccl_log(ranks.substr(0, ranks.find('\n') + 1) + large)), IsEmpty());
}

TEST(NcclLog, RowsThatAreNotNcclTestsAreNoResult) {
  for (const char* const row :
       {"1 2 3 4 5 6 7 8 9 10 11 12 13", "65536 16384 float", "x 16384 float sum -1 1 1 1 0 1 1 1 0",
        "65536 16384 float sum -1 nan nan nan 0 1 1 1 0", "# Avg bus bandwidth", "# Rank"}) {
    EXPECT_EQ(parse_nccl_log(row).lines, 0) << row;
  }
  EXPECT_EQ(parse_nccl_log("65536 16384 float 60.1 1.09 1.09 0e+00 60.3 1.08 1.08 0e+00").tests.bus_bandwidth,
            BytesPerSecond{1.09e9})
      << "older releases have no columns for the operation and the root";
}

TEST(NcclLog, TheFormsOfNccl24AreRead) {
  const std::string found =
      "a:1:1 [0] NCCL INFO NET/IB : No device found.\n"
      "a:1:1 [0] NCCL INFO NET/Socket : Using [0]eth0:10.0.0.1<0>\n"
      "b:1:1 [0] NCCL INFO NET/IB : No device found.\n"
      "b:1:1 [0] NCCL INFO NET/Socket : Using [0]eth0:10.0.0.2<0>\n";
  ASSERT_THAT(rules_of(parse_nccl_log(found)), ElementsAre("nccl-tcp", "nccl-tcp")) << "no 'Using network' is said";
  EXPECT_EQ(evaluate(parse_nccl_log(found))[0].evidence,
            "NET/IB : No device found.; NET/Socket : Using [0]eth0:10.0.0.1<0>");
  const spec::NcclLog log = parse_nccl_log("a:1:1 [3] NCCL INFO Ring 00 : 35 -> 34 [send] via NET/Socket/0\n");
  ASSERT_THAT(rules_of(log), ElementsAre("nccl-tcp"));
  EXPECT_EQ(evaluate(log)[0].evidence, "Ring 00 : 35 -> 34 [send] via NET/Socket/0") << "a line of the log";
}

TEST(NcclLog, ChosenSocketsOfOneMachineAreNotUsed) {
  const std::string chosen =
      "box:1:1 [0] NCCL INFO NET/Socket : Using [0]eno1:10.0.0.1<0>\nbox:1:1 [0] NCCL INFO Using network Socket\n";
  EXPECT_THAT(rules_of(parse_nccl_log(chosen)), IsEmpty());
  EXPECT_THAT(describe(parse_nccl_log(chosen)), HasSubstr("if anything leaves this machine"));
  std::string ranks;
  for (int rank = 0; rank < 4; ++rank) {
    ranks += fmt::format("box:1:1 [{0}] NCCL INFO comm 0x1 rank {0} nranks 4 cudaDev {0} - Init COMPLETE\n", rank);
  }
  EXPECT_THAT(describe(parse_nccl_log(chosen + ranks)), HasSubstr("inside one machine"));
  EXPECT_THAT(rules_of(parse_nccl_log(chosen + "box:1:1 [0] NCCL INFO comm 0x1 rank 0 nRanks 4 nNodes 2\n")),
              ElementsAre("nccl-tcp"));
}

TEST(NcclLog, LinesWithoutTheirBeginningAreKnownByTheirText) {
  const spec::NcclLog log = parse_nccl_log(
      "NET/IB : Using [0]rocep1s0f0:1/RoCE [1]roceP2p1s0f0:1/RoCE [RO]; OOB enP7s7:192.168.1.15<0>\n"
      "Channel 00/0 : 0[0] -> 1[0] [send] via NET/IB/0\nChannel 4 of the television came via cable\n");
  EXPECT_EQ(log.lines, 2);
  EXPECT_THAT(rules_of(log), ElementsAre("nccl-one-rail"));
}

TEST(NcclLog, AllCausesOfAnErrorAreNamedTheLikeliestFirst) {
  const std::string warning =
      "a:1:1 [0] net_ib.cc:9 NCCL WARN NET/IB: Got completion with status=IBV_WC_RETRY_EXC_ERR(12)\n";
  const std::string at_once = evaluate(parse_nccl_log(warning))[0].fix;
  EXPECT_LT(at_once.find("GID"), at_once.find("MTU"));
  EXPECT_LT(at_once.find("MTU"), at_once.find("cable"));
  const std::string row = "1073741824 268435456 float sum -1 49000 21.9 21.9 0 49000 21.9 21.9 0\n";
  const std::string later = evaluate(parse_nccl_log(row + warning))[0].fix;
  EXPECT_LT(later.find("MTU"), later.find("GID")) << "it had worked";
  const std::string modify =
      "a:1:1 [0] ibvwrap.cc:9 NCCL WARN Call to ibv_modify_qp failed with error Connection timed out\n";
  EXPECT_THAT(evaluate(parse_nccl_log(modify))[0].fix, Not(HasSubstr("CROSS_NIC")));
  const std::string devices =
      "a:1:1 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/RoCE [1]mlx5_1:1/RoCE [2]mlx5_2:1/RoCE [3]mlx5_3:1/RoCE [RO]; "
      "OOB "
      "eno1:10.0.0.1<0>\n";
  EXPECT_THAT(evaluate(parse_nccl_log(devices + modify))[0].fix, HasSubstr("NCCL_CROSS_NIC=0"));
}

TEST(NcclLog, WarningsOfJobsThatRunWellAreNoFindings) {
  spec::NcclLog log = load_nccl_log("good");
  add_nccl_log(log,
               "a:1:1 [0] net_ib.cc:179 NCCL WARN NET/IB : rocep1s0f0:1 Got non-fatal async event: GID change(18)\n"
               "a:1:1 [0] socket.cc:58 NCCL WARN socketProgress: Connection closed by remote peer b<4000>\n"
               "a:1:1 [0] socket.cc:9 NCCL WARN Call to connect returned Connection refused, retrying\n"
               "a:1:1 [0] x.cc:1 NCCL WARN Cuda failure 4 'driver shutting down'\n");
  EXPECT_THAT(rules_of(log), IsEmpty());
}

TEST(NcclLog, OverriddenRoutesAloneAreHowARingWorks) {
  spec::NcclLog log = load_nccl_log("good");
  log.route_overrides = 4;
  EXPECT_THAT(rules_of(log), IsEmpty());
}

TEST(NcclLog, SmallPacketsAreReported) {
  std::string text = "a:1:1 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/RoCE [RO]; OOB eth0:10.0.0.1<0>\n";
  text += "a:1:1 [0] NCCL INFO NET/IB: NCCL Dev 0 IbDev 0 Port 1 qpn 576 mtu 3 GID 3 (0/1064A8C0FFFF0000)\n";
  EXPECT_THAT(rules_of(parse_nccl_log(text)), ElementsAre("nccl-mtu-small"));
}

TEST(NcclLog, GpuDirectAndNvlinkAreNamedOnAServer) {
  const spec::NcclLog log = parse_nccl_log(
      "b300:1:1 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/RoCE [1]mlx5_1:1/RoCE [RO]; OOB eno1:10.0.0.1<0>\n"
      "b300:1:1 [0] NCCL INFO Channel 00/0 : 0[0] -> 8[0] [send] via NET/IB/0/GDRDMA\n"
      "b300:1:1 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM\n");
  EXPECT_THAT(describe(log), HasSubstr("on (1 channels)"));
  EXPECT_THAT(describe(log), HasSubstr("1 by NET/IB/0, 1 by P2P"));
  EXPECT_THAT(describe(log), Not(HasSubstr("rail")));
  EXPECT_THAT(rules_of(log), IsEmpty());
}

TEST(NcclLog, LinesThatOnlyLookLikeJsonAreReadAsTheyAre) {
  const std::string line = "a:1:1 [0] NCCL INFO Init START";
  EXPECT_EQ(parse_nccl_log("{\"log\":\"" + line + "\"}").hosts.count("a"), 1);
  EXPECT_EQ(parse_nccl_log("{\"log\"} " + line).hosts.count("a"), 1);
}

TEST(NcclLog, ATextThatTakesMoreTimeThanAllowedIsAnError) {
  std::string text;
  for (int i = 0; i < 1'000'000; ++i) text += "NCCL INFO x\n";
  spec::NcclLog log;
  EXPECT_ERROR(add_nccl_log(log, text, std::chrono::nanoseconds(0)), ErrorCode::kExhausted,
               "reading the log takes more than 0.0 s of processor time");
}

TEST(NcclLog, TextWithoutNcclHasNoLines) { EXPECT_EQ(parse_nccl_log("hello\nworld").lines, 0); }

}  // namespace
}  // namespace yoke::check

#include "yoke/link/perftest.h"

#include <gtest/gtest.h>

#include "yoke/base/error.h"
#include "yoke/base/error_testing.h"

namespace yoke::link {
namespace {

using namespace literals;

// The forms of perftest 4.5 and later.
constexpr std::string_view kBandwidth =
    "---------------------------------------------------------------------------------------\n"
    "                    RDMA_Write BW Test\n"
    " Dual-port       : OFF\t\tDevice         : rocep1s0f0\n"
    " Number of qps   : 4\t\tTransport type : IB\n"
    " Connection type : RC\t\tUsing SRQ      : OFF\n"
    " Mtu             : 4096[B]\n"
    " Link type       : Ethernet\n"
    " GID index       : 3\n"
    " local address: LID 0000 QPN 0x0127 PSN 0x2d9a6f RKey 0x1fff00 VAddr 0x00f3b5a0410000\n"
    " GID: 00:00:00:00:00:00:00:00:00:00:255:255:192:168:100:01\n"
    "---------------------------------------------------------------------------------------\n"
    " #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]\n"
    " 65536      882805           0.00               92.57  \t\t     0.176554\n"
    "---------------------------------------------------------------------------------------\n";

constexpr std::string_view kLatency =
    "                    RDMA_Write Latency Test\n"
    " Mtu             : 4096[B]\n"
    "---------------------------------------------------------------------------------------\n"
    " #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]    t_stdev[usec]   "
    "99% percentile[usec]   99.9% percentile[usec] \n"
    " 2       1000          1.42           1.93         1.47     \t       1.47        \t0.00   \t\t1.57    \t\t1.93   "
    "\n"
    "---------------------------------------------------------------------------------------\n";

TEST(Perftest, ReadsABandwidthInTheUnitOfItsHead) {
  const auto rows = parse_perftest_bandwidth(kBandwidth);
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_EQ(rows[0].size, 65536);
  EXPECT_EQ(rows[0].iterations, 882805);
  EXPECT_DOUBLE_EQ(rows[0].average.value, 92.57e9);
  const auto mebi = parse_perftest_bandwidth(
      " #bytes     #iterations    BW peak[MiB/sec]    BW average[MiB/sec]   MsgRate[Mpps]\n"
      " 65536      5000             11000.50            11000.00\t\t     0.176000\n");
  EXPECT_DOUBLE_EQ(mebi.at(0).average.value, 11000.0 * 1024 * 1024 * 8);
}

TEST(Perftest, ReadsSeveralRowsOfOneTable) {
  const auto rows = parse_perftest_bandwidth(
      " #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]\n"
      " 2          5000             0.10               0.09   \t\t     5.1\n"
      " 4          5000             0.20               0.18   \t\t     5.2\n");
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[1].size, 4);
}

TEST(Perftest, ReadsALatencyWithItsPercentile) {
  const auto rows = parse_perftest_latency(kLatency);
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_NEAR(rows[0].typical.value, 1.47e-6, 1e-12);
  EXPECT_NEAR(rows[0].p99.value, 1.57e-6, 1e-12);
  EXPECT_NEAR(rows[0].max.value, 1.93e-6, 1e-12);
}

TEST(Perftest, WhatItComplainsOfIsInTheError) {
  EXPECT_ERROR(parse_perftest_bandwidth("IB device rocep9 not found\n Unable to find the Infiniband/RoCE device\n"),
               ErrorCode::kInvalid, "Unable to find the Infiniband/RoCE device");
}

TEST(Perftest, BrokenTablesAreRefused) {
  for (const WrongInput& wrong : {WrongInput{"", "no bandwidth"},
                                  {" #bytes #iterations BW peak[Gb/sec] BW average[Gb/sec]\n", "no bandwidth"},
                                  {" #bytes BW peak[Gb/sec]\n 65536 1 2\n", "'65536 1 2' is no row"},
                                  {" #bytes BW average[furlongs]\n 1 2 3 4\n", "unknown unit"},
                                  {" #bytes BW average[Gb/sec]\n 65536 1 nan inf\n", "'inf' is no number"},
                                  {" #bytes [Gb/sec]\n 65536 1 0 -5\n", "'-5' is no number"}}) {
    EXPECT_ERROR(parse_perftest_bandwidth(wrong.text), ErrorCode::kInvalid, wrong.words) << wrong.text;
  }
  EXPECT_ERROR(parse_perftest_latency(kBandwidth), ErrorCode::kInvalid, "is no row of a latency");
  EXPECT_ERROR(parse_perftest_bandwidth(kLatency), ErrorCode::kInvalid, "unknown unit") << "microseconds are no rate";
}

TEST(Perftest, TheCommandNamesDeviceGidAndPeer) {
  const auto argv =
      perftest_argv({.device = "rocep1s0f0", .gid_index = 4, .port = 18515, .peer = "192.168.100.2", .time = 2_s});
  EXPECT_EQ(argv,
            (std::vector<std::string>{"ib_write_bw", "-d", "rocep1s0f0", "-i", "1", "-x", "4", "-p", "18515", "-s",
                                      "1048576", "-F", "-q", "4", "-D", "2", "--report_gbits", "192.168.100.2"}));
  const auto waiting = perftest_argv({.kind = PerftestRun::Kind::kLatency, .device = "d", .size = 8});
  EXPECT_EQ(waiting.front(), "ib_write_lat");
  EXPECT_EQ(waiting.back(), "1000") << "the waiting side names no peer";
}

}  // namespace
}  // namespace yoke::link

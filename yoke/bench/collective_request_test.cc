#include "yoke/bench/collective_request.h"

#include <gtest/gtest.h>

#include "yoke/base/error.h"

namespace yoke {
namespace {

std::string refusal_of(const RankRequest& request, const CollectiveOptions& options) {
  try {
    check_request(request, options);
    return "";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUsage);
    return error.message();
  }
}

std::string refusal_of(const LaunchedRequest& request, RankOrigin origin) {
  try {
    check_launched({.rank = 1, .size = 4, .origin = origin}, request);
    return "";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUsage);
    return error.message();
  }
}

TEST(RankRequest, DecidesWhatCarriesTheData) {
  EXPECT_EQ(carrier_of(RankRequest{}), Carrier::kAuto);
  EXPECT_EQ(carrier_of(RankRequest{.beside = Beside::kMpi}), Carrier::kDirect);
  EXPECT_EQ(carrier_of(RankRequest{.beside = Beside::kNccl}), Carrier::kNccl);
  EXPECT_EQ(carrier_of(RankRequest{.transport = Transport::kDirect, .beside = Beside::kNccl}), Carrier::kDirect);
}

TEST(RankRequest, HasTwoRanksOrOneForEachNode) {
  RankRequest request;
  EXPECT_EQ(rank_count(request), 2);
  request.cluster.emplace().nodes.resize(3);
  EXPECT_EQ(rank_count(request), 3);
  request.ranks = 1;
  EXPECT_EQ(rank_count(request), 1);
}

TEST(RankRequest, RefusesOptionsThatContradictEachOther) {
  const CollectiveOptions all_reduce{.kind = CollectiveKind::kAllReduce};
  EXPECT_EQ(refusal_of({.beside = Beside::kSocket}, all_reduce), "");
  EXPECT_EQ(refusal_of({.beside = Beside::kSocket}, {.kind = CollectiveKind::kBroadcast}),
            "--beside socket compares all-reduce only");
  EXPECT_EQ(refusal_of({.ranks = 3, .beside = Beside::kSocket}, all_reduce),
            "--beside socket is an exchange between two ranks, not 3");
  EXPECT_EQ(refusal_of({.transport = Transport::kThreads, .beside = Beside::kMpi}, all_reduce),
            "--beside mpi needs ranks that are processes, and those of --transport threads are not");
  EXPECT_EQ(refusal_of({.transport = Transport::kDirect, .beside = Beside::kNccl}, all_reduce),
            "--beside nccl moves memory of GPUs, --transport direct that of processors");
}

TEST(LaunchedRequest, RefusesWhatTheLauncherHasDecided) {
  EXPECT_EQ(refusal_of(LaunchedRequest{.ranks = 4}, RankOrigin::kTorchrun), "");
  EXPECT_EQ(refusal_of(LaunchedRequest{.ranks = 2}, RankOrigin::kTorchrun), "--ranks 2, but torchrun started 4");
  EXPECT_NE(refusal_of(LaunchedRequest{.ranks_per_process = 2}, RankOrigin::kTorchrun).find("-t times -g asks for 2"),
            std::string::npos);
  EXPECT_EQ(refusal_of(LaunchedRequest{.transport = Transport::kMpi}, RankOrigin::kOpenMpi), "");
  EXPECT_EQ(refusal_of(LaunchedRequest{.transport = Transport::kMpi}, RankOrigin::kTorchrun),
            "--transport mpi needs ranks that MPI started, not torchrun");
}

TEST(LinkLimit, IsTheClusterFilesRateBeforeTheCatalogues) {
  Cluster cluster;
  cluster.nodes.resize(2);
  EXPECT_FALSE(limit_of(cluster));
  cluster.fabric.emplace().half_rate = BitsPerSecond{7e9};
  const auto limit = limit_of(cluster);
  ASSERT_TRUE(limit);
  EXPECT_EQ(limit->half_rate.value, 7e9);
  EXPECT_EQ(limit->source, "the cluster file");
}

}  // namespace
}  // namespace yoke

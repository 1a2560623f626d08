#include "yoke/bench/collective_request.h"

#include <gtest/gtest.h>

#include "yoke/base/error.h"

namespace yoke::bench {
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

std::string refusal_of(const LaunchedRequest& request, job::RankOrigin origin) {
  try {
    check_launched({.rank = 1, .size = 4, .origin = origin}, request);
    return "";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUsage);
    return error.message();
  }
}

TEST(RankRequest, DecidesWhatCarriesTheData) {
  EXPECT_EQ(transport_of(RankRequest{}), rank::Transport::kAuto);
  EXPECT_EQ(transport_of(RankRequest{.baseline = Baseline::kMpi}), rank::Transport::kDirect);
  EXPECT_EQ(transport_of(RankRequest{.baseline = Baseline::kNccl}), rank::Transport::kNccl);
  EXPECT_EQ(transport_of(RankRequest{.transport = rank::Transport::kDirect, .baseline = Baseline::kNccl}),
            rank::Transport::kDirect);
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
  const CollectiveOptions all_reduce{.kind = comm::CollectiveKind::kAllReduce};
  EXPECT_EQ(refusal_of({.baseline = Baseline::kSocket}, all_reduce), "");
  EXPECT_EQ(refusal_of({.baseline = Baseline::kSocket}, {.kind = comm::CollectiveKind::kBroadcast}),
            "--compare-with socket compares all-reduce only");
  EXPECT_EQ(refusal_of({.ranks = 3, .baseline = Baseline::kSocket}, all_reduce),
            "--compare-with socket is an exchange between two ranks, not 3");
  EXPECT_EQ(refusal_of({.transport = rank::Transport::kThreads, .baseline = Baseline::kMpi}, all_reduce),
            "--compare-with mpi needs ranks that are processes, and those of --transport threads are not");
  EXPECT_EQ(refusal_of({.transport = rank::Transport::kDirect, .baseline = Baseline::kNccl}, all_reduce),
            "--compare-with nccl moves memory of GPUs, --transport direct that of processors");
}

TEST(LaunchedRequest, RefusesWhatTheLauncherHasDecided) {
  EXPECT_EQ(refusal_of(LaunchedRequest{.ranks = 4}, job::RankOrigin::kTorchrun), "");
  EXPECT_EQ(refusal_of(LaunchedRequest{.ranks = 2}, job::RankOrigin::kTorchrun), "--ranks 2, but torchrun started 4");
  EXPECT_NE(
      refusal_of(LaunchedRequest{.ranks_per_process = 2}, job::RankOrigin::kTorchrun).find("-t times -g asks for 2"),
      std::string::npos);
  EXPECT_EQ(refusal_of(LaunchedRequest{.transport = rank::Transport::kMpi}, job::RankOrigin::kOpenMpi), "");
  EXPECT_EQ(refusal_of(LaunchedRequest{.transport = rank::Transport::kMpi}, job::RankOrigin::kTorchrun),
            "--transport mpi needs ranks that MPI started, not torchrun");
}

}  // namespace
}  // namespace yoke::bench

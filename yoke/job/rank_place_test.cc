#include "yoke/job/rank_place.h"

#include <gtest/gtest.h>

#include "yoke/base/error_testing.h"
#include "yoke/base/text.h"

namespace yoke::job {
namespace {

// "NAME=value;NAME=value;", as captured by `env | sort | tr '\n' ';'`.
Environment environment_of(std::string_view text) {
  Environment all = {{"PATH", "/usr/bin"}, {"HOME", "/root"}};
  for (const std::string& entry : split(text, ';')) {
    if (const std::size_t equals = entry.find('='); equals != std::string::npos) {
      all.emplace(entry.substr(0, equals), entry.substr(equals + 1));
    }
  }
  return all;
}

TEST(RankPlace, IsNotFoundInAnOrdinaryEnvironment) {
  EXPECT_EQ(find_rank_place(environment_of("")), std::nullopt);
  // An interactive allocation is no step, and RANK alone is anybody's variable.
  EXPECT_EQ(find_rank_place(environment_of("SLURM_JOB_ID=3;SLURM_NNODES=2;SLURM_TASKS_PER_NODE=1(x2);")), std::nullopt);
  EXPECT_EQ(find_rank_place(environment_of("RANK=captain;")), std::nullopt);
}

TEST(RankPlace, IsTakenFromOpenMpi) {  // captured from mpirun 4.1.4
  EXPECT_EQ(find_rank_place(environment_of("OMPI_COMM_WORLD_LOCAL_RANK=1;OMPI_COMM_WORLD_LOCAL_SIZE=2;"
                                           "OMPI_COMM_WORLD_NODE_RANK=1;OMPI_COMM_WORLD_RANK=1;OMPI_COMM_WORLD_SIZE=2;"
                                           "PMIX_RANK=1;")),
            (RankPlace{.rank = 1, .size = 2, .local_rank = 1, .local_size = 2, .origin = RankOrigin::kOpenMpi}));
}

TEST(RankPlace, IsTakenFromMpich) {  // captured from mpiexec.hydra 4.0.2
  EXPECT_EQ(find_rank_place(environment_of("MPI_LOCALNRANKS=2;MPI_LOCALRANKID=1;PMI_FD=8;PMI_RANK=1;PMI_SIZE=2;")),
            (RankPlace{.rank = 1, .size = 2, .local_rank = 1, .local_size = 2, .origin = RankOrigin::kMpich}));
}

TEST(RankPlace, IsTakenFromAStepOfSlurm) {  // captured from srun 22.05 --mpi=pmix in a lab of two nodes
  EXPECT_EQ(
      find_rank_place(environment_of(
          "PMIX_RANK=1;SLURMD_NODENAME=spark-2;SLURM_JOB_ID=1;SLURM_LOCALID=0;SLURM_NODEID=1;SLURM_NPROCS=2;"
          "SLURM_NTASKS=2;SLURM_PROCID=1;SLURM_STEP_ID=0;SLURM_STEP_NUM_TASKS=2;SLURM_STEP_TASKS_PER_NODE=1(x2);"
          "SLURM_TASKS_PER_NODE=1(x2);")),
      (RankPlace{
          .rank = 1, .size = 2, .local_rank = 0, .local_size = 1, .node = "spark-2", .origin = RankOrigin::kSlurm}));
  EXPECT_EQ(
      find_rank_place(environment_of(
          "PMIX_RANK=1;SLURMD_NODENAME=spark-1;SLURM_JOB_ID=2;SLURM_LOCALID=1;SLURM_NODEID=0;SLURM_NPROCS=3;"
          "SLURM_NTASKS=3;SLURM_PROCID=1;SLURM_STEP_ID=0;SLURM_STEP_TASKS_PER_NODE=2,1;")),
      (RankPlace{
          .rank = 1, .size = 3, .local_rank = 1, .local_size = 2, .node = "spark-1", .origin = RankOrigin::kSlurm}));
}

TEST(RankPlace, IsTakenFromTorchrunAndFromALeaderWorkerSet) {
  EXPECT_EQ(find_rank_place(environment_of("RANK=5;WORLD_SIZE=16;LOCAL_RANK=5;LOCAL_WORLD_SIZE=8;GROUP_RANK=0;"
                                           "TORCHELASTIC_RUN_ID=none;MASTER_ADDR=10.0.0.1;")),
            (RankPlace{.rank = 5, .size = 16, .local_rank = 5, .local_size = 8, .origin = RankOrigin::kTorchrun}));
  EXPECT_EQ(find_rank_place(environment_of("LWS_WORKER_INDEX=1;LWS_GROUP_SIZE=2;LWS_LEADER_ADDRESS=a.b;")),
            (RankPlace{.rank = 1, .size = 2, .origin = RankOrigin::kLeaderWorkerSet}));
}

TEST(RankPlace, IsThatOfTheInnermostLauncher) {
  const std::string step = "SLURM_STEP_ID=0;SLURM_PROCID=0;SLURM_NTASKS=2;";
  EXPECT_EQ(find_rank_place(environment_of(step + "OMPI_COMM_WORLD_RANK=3;OMPI_COMM_WORLD_SIZE=4;"))->origin,
            RankOrigin::kOpenMpi);
  EXPECT_EQ(find_rank_place(environment_of(step + "RANK=3;WORLD_SIZE=4;TORCHELASTIC_RUN_ID=7;"))->origin,
            RankOrigin::kTorchrun);
  // A job of yoke's gives the variables of others too, for the programs that read them.
  EXPECT_EQ(find_rank_place(environment_of("YOKE_RANK=1;YOKE_SIZE=2;YOKE_LOCAL_RANK=0;YOKE_LOCAL_SIZE=1;"
                                           "YOKE_NODE=spark-2;OMPI_COMM_WORLD_RANK=1;OMPI_COMM_WORLD_SIZE=2;")),
            (RankPlace{.rank = 1, .size = 2, .local_rank = 0, .local_size = 1, .node = "spark-2"}));
}

struct Contradiction {
  const char* environment;
  const char* message;
  const char* hint;
};
class RankPlaceContradictions : public testing::TestWithParam<Contradiction> {};
TEST_P(RankPlaceContradictions, AreErrorsThatNameThem) {
  EXPECT_ERROR(find_rank_place(environment_of(GetParam().environment)), ErrorCode::kInvalid, GetParam().message,
               GetParam().hint);
}
INSTANTIATE_TEST_SUITE_P(
    All, RankPlaceContradictions,
    testing::Values(
        Contradiction{"OMPI_COMM_WORLD_RANK=2;OMPI_COMM_WORLD_SIZE=2;", "mpirun gives rank 2 of a size of 2",
                      "contradict each other"},
        Contradiction{"OMPI_COMM_WORLD_RANK=1;", "OMPI_COMM_WORLD_SIZE of mpirun is missing", "by the launcher itself"},
        Contradiction{"OMPI_COMM_WORLD_RANK=x1;OMPI_COMM_WORLD_SIZE=2;", "OMPI_COMM_WORLD_RANK is 'x1'",
                      "as the launcher does"},
        Contradiction{"RANK=-1;WORLD_SIZE=2;", "RANK is '-1'", "as the launcher does"},
        Contradiction{"RANK=1;WORLD_SIZE=99999999999999;", "WORLD_SIZE is '99999999999999'", "as the launcher does"},
        Contradiction{"RANK=1;WORLD_SIZE=;", "WORLD_SIZE is ''", "as the launcher does"},
        Contradiction{"RANK=1;WORLD_SIZE=2;LOCAL_RANK=3;LOCAL_WORLD_SIZE=2;", "local rank 3 of a local size of 2",
                      "contradict each other"},
        Contradiction{"RANK=1;WORLD_SIZE=2;LOCAL_RANK=1;LOCAL_WORLD_SIZE=3;", "a local size of 3 of a size of 2",
                      "contradict each other"},
        Contradiction{"SLURM_STEP_ID=0;SLURM_PROCID=1;SLURM_NTASKS=2;PMIX_RANK=0;", "but PMIX_RANK is 0",
                      "unset one of them"},
        Contradiction{"YOKE_RANK=0;YOKE_SIZE=1;", "YOKE_LOCAL_RANK of yoke is missing", "by the launcher itself"}),
    [](const auto& test) { return "Case" + std::to_string(test.index); });

}  // namespace
}  // namespace yoke::job

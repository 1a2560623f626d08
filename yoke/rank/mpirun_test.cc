#include "yoke/rank/mpirun.h"

#include <gtest/gtest.h>

namespace yoke::rank {
namespace {

TEST(Mpirun, TheHostfileHoldsHowSshReachesEachNode) {
  const std::vector<job::JobNode> nodes = {
      {.node = {.name = "spark-1", .address = "192.168.1.21"}, .ranks = 2},
      {.node = {.name = "spark-2", .address = "desk-2", .user = "nvidia", .port = 2222}, .ranks = 1}};
  EXPECT_EQ(open_mpi_hostfile(nodes), "192.168.1.21 slots=2\ndesk-2 slots=1 username=nvidia port=2222\n");
}

}  // namespace
}  // namespace yoke::rank

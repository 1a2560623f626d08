#include "yoke/launch/prep_look.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace yoke::launch {
namespace {

TEST(PrepLook, NamesWhatIsMissingWithItsFix) {
  PrepAnswer answer;
  answer.tools = {"curl", "docker", "git", "make", "nvcc", "mpirun", "all_reduce_perf"};
  EXPECT_TRUE(evaluate_prep("a", answer).empty());
  answer.tools.erase(answer.tools.begin());
  answer.docker_problem = "permission denied";
  answer.architecture = "sm_121";
  answer.nccl_without = "2.27.3";
  const auto needs = evaluate_prep("a", answer);
  ASSERT_EQ(needs.size(), 3U);
  EXPECT_EQ(needs[0].what, "curl is not installed: needed for downloads of models.");
  EXPECT_EQ(needs[1].fix, "sudo systemctl start docker; sudo usermod -aG docker $USER, then log in again");
  EXPECT_EQ(needs[2].fix, "yoke prep nccl: builds it for sm_121 on every node");
  answer.endpoint_problem = "Could not resolve host";
  ASSERT_EQ(evaluate_prep("a", answer).size(), 4U);
  EXPECT_FALSE(evaluate_prep("a", answer)[3].required) << "one node with the internet is enough";
  for (const PrepNeed& need : needs) EXPECT_FALSE(need.fix.empty());
}

TEST(PrepLook, LooksAtThisMachine) {
  const PrepAnswer answer = prep_here();
  EXPECT_NE(std::find(answer.tools.begin(), answer.tools.end(), "curl"), answer.tools.end());
  EXPECT_GT(answer.disk_free.value, 0);
}

}  // namespace
}  // namespace yoke::launch

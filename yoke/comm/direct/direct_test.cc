// The direct backend as a whole, with ranks as threads: the shared test body over all placements of ranks on nodes.
#include "yoke/comm/direct/direct.h"

#include <gtest/gtest.h>

#include "yoke/comm/communicator_testing.h"
#include "yoke/comm/direct/group_testing.h"

namespace yoke {
namespace {

struct Placement {
  std::string name;
  std::vector<std::string> nodes;  // by rank
  DirectListener::Halves halves;
};

Placement one_node(int ranks) {
  return {fmt::format("OneNode{}", ranks), std::vector<std::string>(static_cast<std::size_t>(ranks), "one"), {}};
}

Placement own_nodes(int ranks) {
  Placement placement{fmt::format("OwnNodes{}", ranks), {}, {{"A", "127.0.0.1"}, {"B", "127.0.0.2"}}};
  for (int r = 0; r < ranks; ++r) placement.nodes.push_back(fmt::format("node-{}", r));
  return placement;
}

Placement mixed(int nodes, int each) {
  Placement placement{fmt::format("Mixed{}x{}", nodes, each), {}, {{"A", "127.0.0.1"}, {"B", "127.0.0.2"}}};
  for (int r = 0; r < nodes * each; ++r) placement.nodes.push_back(fmt::format("node-{}", r / each));
  return placement;
}

class DirectCases : public testing::TestWithParam<Placement> {};

TEST_P(DirectCases, AllCollectivesAreRight) {
  TestGroup group(GetParam().nodes, GetParam().halves, {.silence_limit = {30}});
  const std::vector<std::string> failures = group.run([&](Communicator& comm) {
    CaseOptions options;
    options.every = comm.size() < 8 ? 7 : 49;
    return run_communicator_cases(comm, options);
  });
  EXPECT_THAT(failures, testing::IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(Placements, DirectCases,
                         testing::Values(one_node(1), one_node(2), one_node(3), one_node(4), one_node(8), own_nodes(2),
                                         own_nodes(3), own_nodes(4), own_nodes(8), mixed(2, 2), mixed(2, 4)),
                         [](const auto& one) { return one.param.name; });

}  // namespace
}  // namespace yoke

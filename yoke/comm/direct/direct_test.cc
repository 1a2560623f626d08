// The direct backend as a whole, with ranks as threads: the shared test body over all placements of ranks on nodes.
#include "yoke/comm/direct/direct.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>

#include "yoke/base/files.h"
#include "yoke/comm/communicator_testing.h"
#include "yoke/comm/direct/group_testing.h"
#include "yoke/comm/direct/handshake.h"

namespace yoke::comm {
namespace {

struct Placement {
  std::string name;
  std::vector<std::string> nodes;  // by rank
  DirectListener::Rails rails;
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
  TestGroup group(GetParam().nodes, GetParam().rails, {.silence_limit = {30}});
  const std::vector<std::string> failures = group.run([&](Communicator& comm) {
    CaseOptions options;
    options.every = comm.size() < 8 ? 7 : 49;
    return run_communicator_cases(comm, options);
  });
  EXPECT_THAT(failures, testing::IsEmpty());
}

std::string abstract_name(const direct::MemoryAddress& address) {
  return {address.address.sun_path + 1, address.size - offsetof(sockaddr_un, sun_path) - 1};
}

// A process that knows the name first can take it, and keep the ranks of another user from meeting.
TEST(DirectMemory, NobodyKnowsTheNameOfARanksSocketWithoutTheToken) {
  const Endpoint endpoint{"127.0.0.1", 40000};
  EXPECT_NE(abstract_name(direct::memory_address("a", endpoint)), abstract_name(direct::memory_address("b", endpoint)));
  const auto names_in_use = [] { return read_file("/proc/net/unix"); };
  TestGroup group({"one", "one"});
  std::vector<std::string> names;
  for (int rank = 0; rank < 2; ++rank) {
    const spec::RailEndpoint& at = group.listener(rank)->endpoints().front();
    names.push_back(abstract_name(direct::memory_address(group.membership().token, {at.address, at.port})));
    EXPECT_EQ(names_in_use().find(sha256_hex(to_string(Endpoint{at.address, at.port})).substr(0, 32)),
              std::string::npos);
    EXPECT_EQ(names_in_use().find(names.back()), std::string::npos) << "before there is a token, nothing is taken";
  }
  EXPECT_THAT(group.run([](Communicator&) { return std::vector<std::string>(); }), testing::IsEmpty());
  for (const std::string& name : names) EXPECT_NE(names_in_use().find(name), std::string::npos);
  for (int rank = 0; rank < 2; ++rank) group.comm(rank).reset();
  const auto is_in_use = [&](const std::string& name) { return names_in_use().find(name) != std::string::npos; };
  for (const Deadline deadline = Deadline::after({5}); !deadline.expired() && std::ranges::any_of(names, is_in_use);)
    real_clock().sleep({0.01});
  EXPECT_FALSE(std::ranges::any_of(names, is_in_use)) << "a group takes its name with it";
}

INSTANTIATE_TEST_SUITE_P(Placements, DirectCases,
                         testing::Values(one_node(1), one_node(2), one_node(3), one_node(4), one_node(8), own_nodes(2),
                                         own_nodes(3), own_nodes(4), own_nodes(8), mixed(2, 2), mixed(2, 4)),
                         [](const auto& one) { return one.param.name; });

}  // namespace
}  // namespace yoke::comm

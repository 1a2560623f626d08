#include "yoke/serve/node_states.h"

#include <gtest/gtest.h>

namespace yoke::serve {
namespace {

using namespace literals;

job::NodeState state_at(double time, std::int64_t sent, std::int64_t received) {
  return {.time = time, .interfaces = {{.name = "e0", .sent_bytes = sent, .received_bytes = received}, {.name = "e1"}}};
}

TEST(NodeStates, MakeRatesOfTheTwoLastReports) {
  NodeStates states;
  const Instant now = real_clock().now();
  EXPECT_FALSE(states.of("b", now));
  states.take("b", state_at(100, 1000, 0), now);
  ASSERT_TRUE(states.of("b", now));
  EXPECT_FALSE(states.of("b", now)->rates[0]) << "one report has no rate";
  states.take("b", state_at(102, 5000, 200), now);
  const auto second = states.of("b", now)->rates;
  ASSERT_TRUE(second[0]);
  EXPECT_EQ(second[0]->sent, 2000) << "by the node's own clock";
  EXPECT_EQ(second[0]->received, 100);
  EXPECT_FALSE(second[1]) << "an interface that counts nothing";
  EXPECT_FALSE(states.of("a", now)) << "another node";
}

TEST(NodeStates, KnowNoRateAfterANewStartAndNothingOfASilentNode) {
  NodeStates states;
  const Instant now = real_clock().now();
  states.take("b", state_at(100, 1000, 0), now);
  states.take("b", state_at(3, 50, 0), now);
  EXPECT_FALSE(states.of("b", now)->rates[0]);
  EXPECT_TRUE(states.of("b", now + std::chrono::seconds(4)));
  EXPECT_FALSE(states.of("b", now + std::chrono::seconds(6)));
}

}  // namespace
}  // namespace yoke::serve

#include "yoke/link/node_facts.h"

#include <gtest/gtest.h>

namespace yoke::link {
namespace {

using namespace literals;

TEST(NodeFacts, AMeasurementWantsRoomButNoMoreThanHalfOfASmallNode) {
  EXPECT_EQ(memory_wanted({.memory_total = 128_GiB}), 256_MiB);
  EXPECT_EQ(memory_wanted({.memory_total = 512_MiB}), 256_MiB);
  EXPECT_EQ(memory_wanted({.memory_total = 140_MiB}), 70_MiB);
  EXPECT_EQ(memory_wanted({.memory_total = {}}), 256_MiB) << "where the total is not known";
}

}  // namespace
}  // namespace yoke::link

#include "yoke/spec/membership.h"

#include <gtest/gtest.h>

#include "yoke/base/error.h"
#include "yoke/base/json.h"

namespace yoke::spec {
namespace {

Membership two_sparks() {
  return {.epoch = 3,
          .token = "00ff",
          .members = {{.node = "spark-1", .endpoints = {{"A", "192.168.100.1", 4001}, {"B", "192.168.101.1", 4002}}},
                      {.node = "spark-2", .endpoints = {{"A", "192.168.100.2", 4003}, {"B", "192.168.101.2", 4004}}}}};
}

TEST(Membership, ReadsBackWhatItWrote) {
  const Membership before = two_sparks();
  EXPECT_EQ(from_json<Membership>(parse_json(print_json(to_json(before)), "test")), before);
}

TEST(Membership, RefusesWhatNoGroupCanBe) {
  const auto refused = [](Membership wrong) {
    try {
      from_json<Membership>(to_json(wrong));
    } catch (const Error& error) {
      return error.code() == ErrorCode::kInvalid;
    }
    return false;
  };
  Membership wrong = two_sparks();
  EXPECT_FALSE(refused(wrong));
  wrong.epoch = 0;
  EXPECT_TRUE(refused(wrong));
  wrong = two_sparks();
  wrong.members.clear();
  EXPECT_TRUE(refused(wrong));
  wrong = two_sparks();
  wrong.members[1].endpoints.pop_back();
  EXPECT_TRUE(refused(wrong));
  wrong = two_sparks();
  wrong.members[1].endpoints[1].rail = "A";
  EXPECT_TRUE(refused(wrong));
  wrong = two_sparks();
  wrong.members[0].endpoints[0].port = 70000;
  EXPECT_TRUE(refused(wrong));
}

}  // namespace
}  // namespace yoke::spec

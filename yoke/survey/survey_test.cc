#include "yoke/survey/survey.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "yoke/base/json.h"
#include "yoke/survey/node_survey.h"

namespace yoke::survey {
namespace {

spec::ClusterNode node_with(const char* name, std::vector<const char*> rails) {
  spec::ClusterNode node{.name = name, .address = name};
  for (const char* address : rails) {
    node.rails.push_back({.interface = fmt::format("if{}", node.rails.size()), .address = *parse_ipv4_prefix(address)});
  }
  return node;
}

std::vector<std::string> paths_of(const spec::SurveyedNode& node) {
  std::vector<std::string> paths;
  for (const spec::PathProbe& path : node.paths) {
    paths.push_back(fmt::format("{} {} {}", path.interface, path.peer, to_string(path.peer_address)));
  }
  return paths;
}

TEST(SurveyQuestions, TryEachRailToTheOtherEndInItsNetwork) {
  const spec::Cluster cluster{
      .name = "desk",
      .nodes = {node_with("a", {"10.0.0.1/24", "10.0.1.1/24"}), node_with("b", {"10.0.0.2/24", "10.0.1.2/24"})}};
  const auto questions = questions_for(cluster);
  ASSERT_EQ(questions.size(), 2U);
  EXPECT_THAT(paths_of(questions[0]), testing::ElementsAre("if0 b 10.0.0.2", "if1 b 10.0.1.2"));
  EXPECT_THAT(paths_of(questions[1]), testing::ElementsAre("if0 a 10.0.0.1", "if1 a 10.0.1.1"));
  EXPECT_TRUE(questions[0].far.empty());
  EXPECT_EQ(questions[0].forward_policy, std::nullopt);
  EXPECT_EQ(questions[0].names.size(), 2U);
}

TEST(SurveyQuestions, InARingTheFarEndsAndTheForwardingAreAskedFor) {
  spec::Cluster cluster{
      .name = "ring",
      .nodes = {node_with("a", {"10.0.0.1/24", "10.0.2.1/24"}), node_with("b", {"10.0.0.2/24", "10.0.1.1/24"}),
                node_with("c", {"10.0.1.2/24", "10.0.2.2/24"})},
      .fabric = spec::Fabric{.topology = spec::Topology::kRing}};
  const auto questions = questions_for(cluster);
  EXPECT_EQ(questions[0].forward_policy, "?");
  ASSERT_EQ(questions[0].far.size(), 2U);
  EXPECT_EQ(to_string(questions[0].far[0].address), "10.0.1.1");
  EXPECT_EQ(to_string(questions[0].far[1].address), "10.0.1.2");
}

TEST(SurveyQuestions, InAMeshEachPairIsTriedAndNobodyForwards) {
  spec::Cluster cluster{.name = "mesh",
                        .nodes = {node_with("a", {"10.0.0.1/24", "10.0.1.1/24", "10.0.2.1/24"}),
                                  node_with("b", {"10.0.0.2/24", "10.0.3.2/24", "10.0.4.2/24"}),
                                  node_with("c", {"10.0.1.3/24", "10.0.3.3/24", "10.0.5.3/24"}),
                                  node_with("d", {"10.0.2.4/24", "10.0.4.4/24", "10.0.5.4/24"})},
                        .fabric = spec::Fabric{.topology = spec::Topology::kMesh}};
  const auto questions = questions_for(cluster);
  EXPECT_THAT(paths_of(questions[3]), testing::ElementsAre("if0 a 10.0.2.1", "if1 b 10.0.4.2", "if2 c 10.0.5.3"));
  EXPECT_EQ(questions[3].far.size(), 6U) << "two on the other links of each";
  EXPECT_EQ(questions[3].forward_policy, std::nullopt);
}

TEST(SurveyOfANode, AnswersOfAnAgentThatLackAFieldAreErrorsThatNameIt) {
  const auto answer = try_to([] { return from_json<spec::SurveyedNode>(parse_json("{}", "the answer of spark-2")); });
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code(), ErrorCode::kInvalid);
  EXPECT_THAT(answer.error().message(), testing::HasSubstr("spark-2"));
}

}  // namespace
}  // namespace yoke::survey

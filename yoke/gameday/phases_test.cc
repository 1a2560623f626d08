#include "yoke/gameday/phases.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "yoke/base/error.h"
#include "yoke/base/result.h"

namespace yoke::gameday {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::string> names_of(const std::vector<const Phase*>& phases) {
  std::vector<std::string> names;
  for (const Phase* phase : phases) names.emplace_back(phase->name);
  return names;
}

TEST(Phases, NeedOnlyWhatIsPlayedBeforeThem) {
  std::vector<std::string_view> before;
  for (const Phase& phase : all_phases()) {
    for (const std::string_view need : phase.needs)
      EXPECT_NE(std::find(before.begin(), before.end(), need), before.end()) << phase.name << " needs " << need;
    before.push_back(phase.name);
  }
  EXPECT_EQ(before.back(), "clean-up");
}

TEST(Phases, AreAllPlayedWhereNoneIsNamed) { EXPECT_EQ(choose_phases({}).size(), all_phases().size()); }

TEST(Phases, ComeWithWhatTheyNeedInTheStorysOrderAndTheCleanUp) {
  EXPECT_THAT(names_of(choose_phases({"kill"})), ElementsAre("lab", "handshake", "reach", "model", "kill", "clean-up"));
  EXPECT_THAT(names_of(choose_phases({"serve"})), ElementsAre("lab", "handshake", "reach", "serve", "clean-up"));
  EXPECT_THAT(names_of(choose_phases({"all-reduce", "lab", "all-reduce"})),
              ElementsAre("lab", "handshake", "reach", "all-reduce", "clean-up"));
}

// Where a phase is skipped rather than failed, those after it are played: each must tell all that it cannot be without.
TEST(Phases, ThatUseTheNodesNeedAllThatMakesThem) {
  for (const Phase& phase : all_phases()) {
    if (phase.name == "lab" || phase.name == "kill" || phase.name == "clean-up") continue;  // kill needs an answer
    EXPECT_THAT(phase.needs, Contains("lab")) << phase.name;
    if (phase.name == "handshake") continue;
    EXPECT_THAT(phase.needs, Contains("handshake")) << phase.name;
  }
}

TEST(Phases, HandshakeIsPlayedOnlyWhereNodesAreItsOwnAndHaveInterfaces) {
  const Phase& handshake = *choose_phases({"handshake"}).at(1);
  ASSERT_EQ(handshake.name, "handshake");
  Environment environment({.program = "/bin/false"});
  EXPECT_EQ(handshake.why_not(environment), std::nullopt);
  environment.lab_lacks({"memory limit: none", "network: loopback"});
  EXPECT_THAT(handshake.why_not(environment).value_or(""), HasSubstr("network: loopback"));
  const Environment given({.program = "/bin/false", .cluster_file = "cluster.yaml"});
  EXPECT_THAT(handshake.why_not(given).value_or(""), HasSubstr("yoke link setup --dry-run"));
}

TEST(Phases, ThatDoNotExistAreRefusedWithTheNearest) {
  const auto chosen = try_to([] { return choose_phases({"lab", "all-reduc"}); });
  ASSERT_FALSE(chosen);
  EXPECT_EQ(chosen.error().code(), ErrorCode::kUsage);
  EXPECT_THAT(chosen.error().message(), HasSubstr("'all-reduc'"));
  EXPECT_THAT(chosen.error().hint(), HasSubstr("'all-reduce'"));
}

}  // namespace
}  // namespace yoke::gameday

#include "yoke/report/given_commands.h"

#include <gtest/gtest.h>

namespace yoke::report {
namespace {

using Words = std::vector<std::string>;
const Words kFile = {"--cluster", "desk.yaml"};

TEST(GivenCommands, TakeTheClusterFileThatWasGiven) {
  EXPECT_EQ(commands_as_given("run 'yoke link setup', then 'yoke check'", kFile),
            "run 'yoke link setup --cluster desk.yaml', then 'yoke check --cluster desk.yaml'");
  EXPECT_EQ(commands_as_given("'yoke link discover -o cluster.yaml --force' finds them", kFile),
            "'yoke link discover -o desk.yaml --force --cluster desk.yaml' finds them");
  EXPECT_EQ(commands_as_given("'yoke job run -- sh -c x'", kFile), "'yoke job run --cluster desk.yaml -- sh -c x'");
  EXPECT_EQ(commands_as_given("'yoke check'", {"--cluster", "my desk.yaml"}),
            "'yoke check --cluster \"my desk.yaml\"'");
}

TEST(GivenCommands, TakeTheLabThatWasGivenAndKeepTheFileOfTheFolder) {
  EXPECT_EQ(commands_as_given("'yoke link discover -o cluster.yaml'", {"--lab", "demo"}),
            "'yoke link discover -o cluster.yaml --lab demo'");
}

TEST(GivenCommands, LeaveTheRestAsItIs) {
  for (const char* text :
       {"", "it's yoke's own", "'yoke lab up' starts one", "'yoke explain mtu-differs'", "'yoke help'",
        "'yoke check --cluster a.yaml'", "'yoke cluster reach --lab b'", "'ip link' shows it", "an open 'yoke check"}) {
    EXPECT_EQ(commands_as_given(text, kFile), text);
  }
  EXPECT_EQ(commands_as_given("'yoke check'", {}), "'yoke check'");
  EXPECT_EQ(commands_as_given("'yoke helper'", kFile), "'yoke helper --cluster desk.yaml'");
}

TEST(GivenCommands, AreInTheFixesOfFindings) {
  std::vector<spec::Finding> findings(2);
  findings[0].fix = "'yoke link setup' sets it";
  findings[1].fix = "plug it in";
  give_options(findings, kFile);
  EXPECT_EQ(findings[0].fix, "'yoke link setup --cluster desk.yaml' sets it");
  EXPECT_EQ(findings[1].fix, "plug it in");
}

}  // namespace
}  // namespace yoke::report

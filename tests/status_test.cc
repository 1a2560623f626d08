// `yoke` alone and `yoke up` in a lab: where you stand, and the next command.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/lab_fixture.h"
#include "tests/terminal.h"

namespace yoke::tests {
namespace {

using testing::HasSubstr;

struct StandInALab : testing::Test {
  void SetUp() override {
    if (const auto why = why_no_labs()) GTEST_SKIP() << *why;
    lab_.emplace();
  }
  Document stand(std::vector<std::string> arguments = {}) const {
    arguments.emplace_back("--json");
    return parse_json(lab_->yoke(arguments).out, "out");
  }
  std::string state() const { return stand().find("state")->text; }
  std::optional<TestLab> lab_;
};

TEST_F(StandInALab, FollowsWhatIsDoneToIt) {
  EXPECT_EQ(state(), "unchecked");
  EXPECT_EQ(stand().find("next")->items.size(), 2U);
  EXPECT_EQ(stand({"--lab", lab_->name}).find("next")->items.back().text, lab_->name);
  const Outcome checked = lab_->yoke({"check", "--no-measure", "-vv"});
  EXPECT_EQ(checked.exit_status, 3) << checked.err;
  EXPECT_THAT(checked.err, HasSubstr("run ssh ")) << "-v: each ssh command";
  EXPECT_THAT(checked.err, HasSubstr("this command goes on on spark-1, the head node of lab")) << "-v: each decision";
  EXPECT_THAT(checked.err, HasSubstr("spark-2 hears question ")) << "-vv: the protocol";
  EXPECT_EQ(state(), "unmeasured");
  EXPECT_EQ(stand({"--lab", lab_->name}).find("state")->text, "unmeasured") << "the same cluster by its lab's name";
  ASSERT_TRUE(lab_->yoke({"lab", "fault", "mtu-mismatch", "--node", "2"}).ok());
  EXPECT_EQ(state(), "fault-in-force");
  EXPECT_EQ(lab_->yoke({"check", "--no-measure"}).exit_status, 1);
  ASSERT_TRUE(lab_->yoke({"lab", "fault", "clear"}).ok());
  EXPECT_EQ(state(), "findings");
  EXPECT_THAT(lab_->yoke({"up", "--dry-run"}).out, HasSubstr("It shows the findings again"));
  ASSERT_TRUE(lab_->yoke({"lab", "fault", "power-off", "--node", "1"}).ok());
  EXPECT_EQ(state(), "head-off");
  ASSERT_TRUE(lab_->yoke({"lab", "down", "--name", lab_->name}).ok());
  EXPECT_EQ(state(), "lab-down");
  EXPECT_EQ(stand().find("next")->items.back().text, lab_->name);
  EXPECT_EQ(lab_->yoke({"--lab", lab_->name}).exit_status, 5) << "a lab that was named and is not there";
}

TEST_F(StandInALab, UpAsksBeforeEachStep) {
  Terminal terminal(lab_->folder, {"up"});
  ASSERT_TRUE(terminal.shows("Step 1: It looks at all nodes and measures the link.")) << terminal.screen();
  ASSERT_TRUE(terminal.shows("yoke check")) << terminal.screen();
  ASSERT_TRUE(terminal.shows("Run it? [y/N]")) << terminal.screen();
  terminal.type("n\n");
  ASSERT_TRUE(terminal.shows("Stopped here.")) << terminal.screen();
  EXPECT_EQ(terminal.exit_status(), 0);
  const Outcome outcome = lab_->yoke({"up"});
  EXPECT_EQ(outcome.exit_status, 2) << "nobody can be asked";
  EXPECT_THAT(outcome.err, HasSubstr("--yes"));
}

}  // namespace
}  // namespace yoke::tests

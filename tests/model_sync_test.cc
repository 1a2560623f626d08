// yoke model sync in labs: real ssh, real rails, cut, killed and damaged.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/lab_fixture.h"
#include "yoke/base/process.h"

namespace yoke::tests {
namespace {

using testing::HasSubstr;

class ModelSync : public testing::Test {
 protected:
  void SetUp() override {
    if (const auto why = why_no_labs()) GTEST_SKIP() << *why;
  }
};

// A model of `mebibytes` on the first node.
void make_model(const TestLab& lab, int mebibytes) {
  const Outcome made =
      lab.exec("1", {"sh", "-ec",
                     fmt::format("mkdir -p /srv/m/deep; echo '{{}}' > /srv/m/config.json; : > /srv/m/empty; "
                                 "head -c {}M /dev/urandom > /srv/m/deep/weights",
                                 mebibytes)});
  ASSERT_TRUE(made.ok()) << made.err;
}

std::string sums(const TestLab& lab, const std::string& node, const std::string& folder) {
  return lab.exec(node, {"sh", "-c", fmt::format("cd {} && find . -type f | sort | xargs sha256sum", folder)}).out;
}

Document sync_json(const TestLab& lab, std::vector<std::string> more = {}) {
  std::vector<std::string> arguments = {"model", "sync", "/srv/m", "--json"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  const Outcome outcome = lab.yoke(arguments);
  EXPECT_EQ(outcome.exit_status, 0) << outcome.err;
  return parse_json(outcome.out, "yoke model sync");
}

const Document& node_of(const Document& report, std::size_t index) { return report.find("nodes")->items.at(index); }

TEST_F(ModelSync, CopiesOverBothRailsAndThenOnlyCompares) {
  const TestLab lab;
  make_model(lab, 100);
  const Document planned = sync_json(lab, {"--dry-run"});
  EXPECT_EQ(node_of(planned, 0).find("bytes")->text, std::to_string((100 << 20) + 3));
  EXPECT_EQ(sums(lab, "2", "/srv/m"), "") << "a dry run copies nothing";
  const Document copied = sync_json(lab);
  EXPECT_EQ(sums(lab, "2", "/srv/m"), sums(lab, "1", "/srv/m"));
  EXPECT_NE(sums(lab, "1", "/srv/m"), "");
  for (const Document& rail : node_of(copied, 0).find("rails")->items) {
    EXPECT_GT(std::stoll(rail.find("bytes")->text), 20 << 20) << rail.find("rail")->text;
  }
  EXPECT_THAT(lab.yoke({"model", "sync", "/srv/m"}).out, HasSubstr("spark-2: equal, every piece compared"));
}

TEST_F(ModelSync, SendsOnlyThePieceThatWasDamaged) {
  const TestLab lab;
  make_model(lab, 60);
  sync_json(lab);
  ASSERT_TRUE(lab.exec("2", {"sh", "-c", "printf X | dd of=/srv/m/deep/weights bs=1 seek=20000000 conv=notrunc"}).ok());
  EXPECT_EQ(node_of(sync_json(lab), 0).find("bytes")->text, std::to_string(8 << 20));
  EXPECT_EQ(sums(lab, "2", "/srv/m"), sums(lab, "1", "/srv/m"));
}

TEST_F(ModelSync, KilledHalfWayItGoesOn) {
  const TestLab lab({"--memory", "1GiB", "--rail-rate", "400Mb/s"});
  make_model(lab, 200);
  Process first({.argv = {YOKE_PROGRAM, "model", "sync", "/srv/m"}, .folder = lab.folder});
  const char* const written = "test $(du -m /srv/m.partial/deep/weights | cut -f1) -gt 30";
  const Deadline deadline = Deadline::after({60});
  while (!lab.exec("2", {"sh", "-c", written}).ok()) ASSERT_FALSE(deadline.expired()) << "nothing arrives";
  first.kill_tree();
  ASSERT_TRUE(lab.exec("2", {"test", "!", "-e", "/srv/m"}).ok()) << "nothing has its name before the end";
  const Document rest = sync_json(lab);
  EXPECT_LT(std::stoll(node_of(rest, 0).find("bytes")->text), 190 << 20);
  EXPECT_EQ(sums(lab, "2", "/srv/m"), sums(lab, "1", "/srv/m"));
}

TEST_F(ModelSync, ARailThatIsCutLeavesTheWorkToTheOther) {
  const TestLab lab;
  make_model(lab, 60);
  ASSERT_TRUE(lab.yoke({"lab", "fault", "rail-down", "--name", lab.name, "--node", "2", "--rail", "B"}).ok());
  const Outcome outcome = lab.yoke({"model", "sync", "/srv/m"});
  EXPECT_EQ(outcome.exit_status, 0) << outcome.err;
  EXPECT_EQ(sums(lab, "2", "/srv/m"), sums(lab, "1", "/srv/m"));
  EXPECT_THAT(outcome.out, HasSubstr("rail B  0 B; ")) << "what is wrong with it";
}

TEST_F(ModelSync, ARingOfFourIsFilledThroughItsNeighbours) {
  const TestLab lab({"--nodes", "4", "--topology", "ring"});
  make_model(lab, 20);
  const Document report = sync_json(lab, {"--to", "/srv/copy"});
  ASSERT_EQ(report.find("nodes")->items.size(), 3U);
  for (const char* node : {"2", "3", "4"}) EXPECT_EQ(sums(lab, node, "/srv/copy"), sums(lab, "1", "/srv/m")) << node;
  EXPECT_NE(node_of(report, 2).find("from")->text, "spark-1");
}

TEST_F(ModelSync, MistakesAreNamedAndNothingIsCopied) {
  const TestLab lab;
  make_model(lab, 1);
  struct Mistake {
    std::vector<std::string> arguments;
    int status;
    const char* words;
  };
  for (const Mistake& mistake :
       std::vector<Mistake>{{{"/srv/none"}, 5, "cannot list the folder '/srv/none'"},
                            {{"/srv/m", "--from", "spark-9"}, 2, "the cluster has no node 'spark-9'"},
                            {{"/srv/m", "--rail", "C"}, 2, "there is no rail 'C'"},
                            {{"/srv/m", "--to", "copy"}, 2, "--to must be a path from the root"},
                            {{"/srv/m", "--to", "/proc/copy"}, 9, "/proc/copy"},
                            {{}, 2, "FOLDER"}}) {
    std::vector<std::string> arguments = {"model", "sync"};
    arguments.insert(arguments.end(), mistake.arguments.begin(), mistake.arguments.end());
    const Outcome outcome = lab.yoke(arguments);
    EXPECT_EQ(outcome.exit_status, mistake.status) << mistake.words << "\n" << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr(mistake.words));
  }
  ASSERT_TRUE(lab.exec("1", {"sh", "-c", "head -c 240M /dev/zero > /srv/m/large && rm -rf /srv/n && true"}).ok());
  ASSERT_TRUE(lab.exec("2", {"sh", "-c", "head -c 100M /dev/urandom > /srv/taken"}).ok());
  const Outcome full = lab.yoke({"model", "sync", "/srv/m"});
  EXPECT_THAT(full.err, HasSubstr("are free there"));
  EXPECT_THAT(full.err, HasSubstr("spark-2"));
  EXPECT_EQ(sums(lab, "2", "/srv/m"), "");
}

}  // namespace
}  // namespace yoke::tests

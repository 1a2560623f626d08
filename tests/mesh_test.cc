// Four nodes without a switch, each pair with a link of its own: found, checked, used by all ranks. scripts/soak-check
// sets one up from the factory's state.
#include <gmock/gmock.h>

#include "tests/check_findings.h"
#include "yoke/base/text.h"

namespace yoke::tests {
namespace {

using testing::HasSubstr;

constexpr const char* kRails[] = {"enp1s0f0np0", "enP2p1s0f0np0", "enp1s0f1np1"};

// What a node's rails have sent.
std::vector<double> sent_by_rails(const TestLab& lab, const std::string& node) {
  std::vector<double> sent;
  for (const char* rail : kRails) {
    const Document links = parse_json(lab.exec(node, {"ip", "-json", "-s", "link", "show", "dev", rail}).out, "ip");
    sent.push_back(std::stod(links.items.at(0).find("stats64")->find("tx")->find("bytes")->text));
  }
  return sent;
}

TEST(LabMesh, IsDiscoveredAndUsedByAllRanksAndAMissingLinkIsNamed) {
  if (const auto why = why_no_labs({"ping"})) GTEST_SKIP() << *why;
  const TestLab lab({"--nodes", "4", "--topology", "mesh"});
  const Outcome found = lab.yoke({"link", "discover", "--new-addresses", "-o", "found.yaml"});
  ASSERT_EQ(found.exit_status, 0) << found.out << found.err;
  EXPECT_THAT(found.out, HasSubstr("Topology: a full mesh of 4 nodes, each pair with a link of its own"));
  EXPECT_EQ(read_file(lab.folder / "found.yaml"), read_file(lab.folder / "cluster.yaml"));
  EXPECT_EQ(findings_of(lab), "");

  // Of an all-reduce by parts each node sends two quarters to each of three others, all over the link to it.
  const std::vector<double> before = sent_by_rails(lab, "1");
  const Outcome reduce = lab.yoke({"bench", "all-reduce", "-b", "4M", "-e", "4M", "-n", "1", "-w", "0"});
  ASSERT_EQ(reduce.exit_status, 0) << reduce.out << reduce.err;
  const std::vector<double> after = sent_by_rails(lab, "1");
  for (std::size_t rail = 0; rail < before.size(); ++rail) {
    EXPECT_GT(after[rail] - before[rail], 2e6) << kRails[rail];
  }

  ASSERT_TRUE(lab.yoke({"lab", "fault", "rail-down", "--name", lab.name, "--node", "1", "--rail", "B"}).ok());
  EXPECT_EQ(findings_of(lab), "rail-down spark-1 enP2p1s0f0np0\n");
}

}  // namespace
}  // namespace yoke::tests

#include "yoke/status/status.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace yoke::status {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using Words = std::vector<std::string>;

constexpr std::int64_t kNow = 1'000'000;

Situation with_file() {
  Situation s{.now = kNow};
  s.file = "cluster.yaml";
  s.cluster = spec::parse_cluster(
      "name: desk\nhardware: spark\nnodes:\n"
      "  - { name: spark-1, address: 10.0.0.1, rails: [{ interface: a, address: 192.168.100.1/24 },"
      " { interface: b, address: 192.168.101.1/24 }] }\n"
      "  - { name: spark-2, address: 10.0.0.2, rails: [{ interface: a, address: 192.168.100.2/24 },"
      " { interface: b, address: 192.168.101.2/24 }] }\n"
      "fabric: { topology: direct, subnets: [192.168.100.0/24, 192.168.101.0/24] }\n",
      "cluster.yaml");
  return s;
}

Situation in_lab() {
  Situation s = with_file();
  s.cluster->lab = "one";
  s.lab = LabSituation{.name = "one", .is_up = true};
  s.running_labs = {{"one", ""}};
  return s;
}

void expect(const Situation& s, const std::string& state, const Words& next) {
  const SetupStatus found = evaluate_status(s);
  EXPECT_EQ(found.state, state) << found.text;
  EXPECT_EQ(found.next, next) << found.text;
}

TEST(SetupStatus, WithoutAFileIsAboutWhatThisMachineHas) {
  Situation s{.now = kNow};
  expect(s, "no-cluster", {"yoke", "lab", "up"});
  s.has_fast_ports = true;
  expect(s, "no-cluster", {"yoke", "link", "discover", "-o", "cluster.yaml"});
  s.running_labs = {{"two", "/home/me/f2"}};
  expect(s, "lab-elsewhere", {"yoke", "check", "--lab", "two"});
  EXPECT_THAT(evaluate_status(s).text, HasSubstr("Lab 'two' (started in /home/me/f2) is up"));
  // A file under another name is more likely meant than a lab of another folder.
  s.similar_file = "cluster.yml";
  expect(s, "other-file", {"yoke", "--cluster", "cluster.yml"});
}

TEST(SetupStatus, OfALabThatIsNotThere) {
  Situation s = in_lab();
  s.lab->is_up = false;
  s.running_labs = {{"two", ""}};
  expect(s, "lab-down", {"yoke", "lab", "up", "--name", "one"});
  EXPECT_THAT(evaluate_status(s).text, HasSubstr("Running: two"));
  s.lab->other_owner = "root";
  expect(s, "lab-foreign", {"sudo", "yoke", "check"});
  EXPECT_THAT(evaluate_status(s).text, HasSubstr("started by root"));
}

TEST(SetupStatus, OfALabThatIsUpIsAboutItsNodesAndFaults) {
  Situation s = in_lab();
  expect(s, "unchecked", {"yoke", "check"});
  s.lab->faults = {"rail-down on spark-2"};
  expect(s, "fault-in-force", {"yoke", "check"});
  EXPECT_THAT(evaluate_status(s).text, HasSubstr("Fault in force: rail-down on spark-2;"));
  s.lab->nodes_off = {"spark-2"};
  expect(s, "node-off", {"yoke", "lab", "fault", "power-on", "--node", "spark-2", "--name", "one"});
  s.lab->nodes_off = {"spark-1"};
  expect(s, "head-off", {"yoke", "lab", "fault", "power-on", "--node", "spark-1", "--name", "one"});
  EXPECT_THAT(evaluate_status(s).text, EndsWith("lab 'one' is up. Node spark-1, the head, is off.")) << "once";
}

TEST(SetupStatus, NamesWhatTheFileLacks) {
  Situation s = with_file();
  for (spec::ClusterNode& node : s.cluster->nodes) node.rails.resize(1);
  s.done["link setup"] = {0, kNow};
  // New addresses would conflict with the netplan file of who followed NVIDIA's guide.
  expect(s, "one-rail", {"yoke", "link", "discover", "-o", "cluster.yaml", "--force"});
  for (spec::ClusterNode& node : s.cluster->nodes) node.unused = {{"b", "a cable of one rail, on purpose"}};
  expect(s, "unchecked", {"yoke", "check"});
  for (spec::ClusterNode& node : s.cluster->nodes) node.unused.clear();
  for (spec::ClusterNode& node : s.cluster->nodes) node.rails.clear();
  expect(s, "no-rails", {"yoke", "link", "discover", "-o", "cluster.yaml", "--force"});
}

TEST(SetupStatus, GoesFromStepToStep) {
  Situation s = with_file();
  s.options = {"--cluster", "desk.yaml"};
  expect(s, "not-reached", {"yoke", "cluster", "reach", "--cluster", "desk.yaml"});
  s.silent_nodes = {"spark-2 (10.0.0.2)"};
  expect(s, "no-answer", {"yoke", "cluster", "reach", "--cluster", "desk.yaml"});
  s.silent_nodes = {};
  s.done["link discover"] = {0, kNow - 60};
  expect(s, "not-set-up", {"yoke", "link", "setup", "--cluster", "desk.yaml"});
  s.done["link setup"] = {130, kNow - 120};
  expect(s, "setup-incomplete", {"yoke", "link", "setup", "--cluster", "desk.yaml"});
  s.done["link setup"] = {kMilestoneBegun, kNow - 120};
  expect(s, "setup-incomplete", {"yoke", "link", "setup", "--cluster", "desk.yaml"});
  s.done["link setup"] = {0, kNow};
  expect(s, "unchecked", {"yoke", "check", "--cluster", "desk.yaml"});
  s.done["check"] = {1, kNow - 7200};
  expect(s, "findings", {"yoke", "check", "--cluster", "desk.yaml"});
  EXPECT_THAT(evaluate_status(s).text, HasSubstr("2 h ago"));
  s.done["check"] = {3, kNow};
  expect(s, "unmeasured", {"yoke", "link", "test", "--cluster", "desk.yaml"});
  s.done["link test"] = {0, kNow};
  EXPECT_EQ(evaluate_status(s).state, "checked") << "measured by another command";
  s.done["check"] = {0, kNow};
  expect(s, "checked", {"yoke", "run", "-p", "Which cable joins two units?", "--cluster", "desk.yaml"});
  s.done["run"] = {0, kNow};
  expect(s, "ready", {"yoke", "chat", "--cluster", "desk.yaml"});
}

TEST(SetupStatus, OnALabsNodeSaysSo) {
  Situation s = with_file();
  s.on_node = "spark-1 of lab 'one'";
  EXPECT_THAT(evaluate_status(s).text, HasSubstr("this is spark-1 of lab 'one'"));
}

TEST(Ago, IsInTheLargestUnit) {
  EXPECT_EQ(ago(3), "just now");
  EXPECT_EQ(ago(300), "5 min ago");
  EXPECT_EQ(ago(86400), "1 day ago");
  EXPECT_EQ(ago(3 * 86400), "3 days ago");
}

}  // namespace
}  // namespace yoke::status

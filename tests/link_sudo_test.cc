// yoke for a user who is not root on the nodes: real users, real sudo, real ssh, in a lab.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/check_findings.h"
#include "tests/lab_fixture.h"
#include "tests/terminal.h"
#include "yoke/spec/cluster.h"

namespace yoke::tests {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr const char* kPassword = "swordfish-77";
constexpr const char* kSudoAsks = "alice ALL=(ALL) ALL";

// A bare lab in whose nodes alice may log in to every other, and the cluster file that says so.
struct AlicesLab : TestLab {
  explicit AlicesLab(const std::string& sudoers) : TestLab({"--unconfigured"}) {
    spec::Cluster cluster = spec::load_cluster(folder / "cluster.yaml");
    for (std::size_t i = 0; i < cluster.nodes.size(); ++i) {
      const std::string node = std::to_string(i + 1);
      cluster.nodes[i].user = "alice";
      cluster.nodes[i].rails = {{"enp1s0f0np0", *parse_ipv4_prefix("192.168.100." + node + "/24")},
                                {"enP2p1s0f0np0", *parse_ipv4_prefix("192.168.101." + node + "/24")}};
      const Outcome made =
          exec(node, {"sh", "-ec",
                      fmt::format("useradd -m -s /bin/sh alice; echo 'alice:{}' | chpasswd; cp -r /root/.ssh "
                                  "/home/alice/; chown -R alice: /home/alice/.ssh",
                                  kPassword)});
      if (!made.ok()) throw Error(ErrorCode::kUnavailable, made.describe() + made.err);
      allow(node, sudoers);
    }
    write_file_atomically(folder / "cluster.yaml", spec::print_cluster(cluster));
    const Outcome copied = run_yoke(exec_arguments("1", {"sh", "-c", "cat > /home/alice/cluster.yaml"}),
                                    {.folder = folder, .input_file = folder / "cluster.yaml"});
    if (!copied.ok()) throw Error(ErrorCode::kUnavailable, copied.describe());
  }

  void allow(const std::string& node, const std::string& sudoers) const {
    const Outcome outcome = exec(
        node, {"sh", "-ec", fmt::format("echo '{}' > /etc/sudoers.d/alice; visudo -cf /etc/sudoers.d/alice", sudoers)});
    if (!outcome.ok()) throw Error(ErrorCode::kInvalid, outcome.describe() + outcome.out + outcome.err);
  }
  // On the head, logged in as alice.
  std::vector<std::string> as_alice(const std::string& command) const {
    return exec_arguments("1", {"su", "-", "alice", "-c", "yoke " + command});
  }
  Outcome alice(const std::string& command) const {
    return run_yoke(as_alice(command), {.folder = folder, .timeout = {120}});
  }
  std::string network() const {
    std::string text;
    for (const char* node : {"1", "2"}) text += exec(node, {"sh", "-c", "ip -4 -o address; ls -lR /etc/yoke"}).out;
    return text;
  }
};

struct LinkSudo : testing::Test {
  void SetUp() override {
    if (const auto why = why_no_labs({"sudo", "visudo", "useradd", "chpasswd", "su"})) GTEST_SKIP() << *why;
  }
};

void expect_setup_and_undo_work(const AlicesLab& lab) {
  const std::string before = lab.network();
  const Outcome dry = lab.alice("link setup --dry-run");
  EXPECT_EQ(dry.exit_status, 0) << dry.err;
  EXPECT_EQ(lab.network(), before);
  const Outcome setup = lab.alice("link setup --yes");
  ASSERT_EQ(setup.exit_status, 0) << setup.err;
  EXPECT_EQ(findings_in(lab.alice("check --no-measure --json")), "");
  EXPECT_EQ(lab.exec("1", {"su", "-", "alice", "-c", "ssh -o BatchMode=yes 192.168.101.2 id -un"}).out, "alice\n");
  const Outcome undo = lab.alice("link undo --yes");
  EXPECT_EQ(undo.exit_status, 0) << undo.err;
  EXPECT_EQ(lab.network(), before);
}

TEST_F(LinkSudo, WithoutAQuestionItIsAsForRoot) {
  expect_setup_and_undo_work(AlicesLab("alice ALL=(ALL) NOPASSWD: ALL"));
}

TEST_F(LinkSudo, ThatAsksIsReportedWithALineThatLetsThisProgramAlone) {
  const AlicesLab lab(kSudoAsks);
  const std::string before = lab.network();
  for (const char* node : {"1", "2"}) {
    const Outcome refused = lab.alice("link setup --yes");
    ASSERT_EQ(refused.exit_status, 6) << refused.out << refused.err;
    EXPECT_THAT(refused.err,
                HasSubstr(fmt::format("spark-{}: this needs root, and for alice sudo prints: a password is "
                                      "required",
                                      node)));
    EXPECT_EQ(lab.network(), before);
    const std::size_t begin = refused.err.find("alice ALL=(root) NOPASSWD: sha256:");
    ASSERT_NE(begin, std::string::npos) << refused.err;
    lab.allow(node, refused.err.substr(begin, refused.err.find('\'', begin) - begin));
  }
  EXPECT_FALSE(lab.exec("2", {"su", "-", "alice", "-c", "sudo -n true"}).ok()) << "nothing else is let";
  expect_setup_and_undo_work(lab);
}

TEST_F(LinkSudo, ThatAsksGetsThePasswordThatIsTypedOnceAndNobodyKeepsIt) {
  const AlicesLab lab(kSudoAsks);
  const std::string before = lab.network();
  for (const char* command : {"link setup --yes", "link undo --yes"}) {
    Terminal terminal(lab.folder, lab.as_alice(command));
    ASSERT_TRUE(terminal.shows("Password for sudo on spark-")) << terminal.screen();
    terminal.type(std::string(kPassword) + "\n");
    EXPECT_EQ(terminal.exit_status(), 0) << terminal.screen();
    EXPECT_THAT(terminal.screen(), Not(HasSubstr(kPassword)));
    EXPECT_EQ(lab.network() == before, std::string_view(command).starts_with("link undo")) << command;
  }
  for (const char* node : {"1", "2"}) {
    EXPECT_EQ(lab.exec(node, {"grep", "-rlF", kPassword, "/home/alice", "/var/lib/yoke", "/var/log"}).out, "");
  }
  Terminal wrong(lab.folder, lab.as_alice("link setup --yes"));
  ASSERT_TRUE(wrong.shows("Password for sudo on spark-")) << wrong.screen();
  wrong.type("not-this\n");
  EXPECT_EQ(wrong.exit_status(), 6) << wrong.screen();
  EXPECT_THAT(wrong.screen(), HasSubstr("incorrect password"));
  EXPECT_EQ(lab.network(), before);
}

TEST_F(LinkSudo, ThatAsksLetsDiscoverSendBeaconsOnceThePasswordIsTyped) {
  const AlicesLab lab(kSudoAsks);  // bare: without beacons nothing tells the cabling
  EXPECT_EQ(lab.alice("link discover alice@10.77.0.1 alice@10.77.0.2").exit_status, 6);
  Terminal terminal(lab.folder, lab.as_alice("link discover alice@10.77.0.1 alice@10.77.0.2"));
  ASSERT_TRUE(terminal.shows("Password for sudo on ")) << terminal.screen();
  terminal.type(std::string(kPassword) + "\n");
  EXPECT_EQ(terminal.exit_status(), 0) << terminal.screen();
  EXPECT_THAT(terminal.screen(), HasSubstr("as beacons show"));
}

TEST_F(LinkSudo, WhatANodeDoesNotLetUsWriteIsNoQuestionOfSshs) {
  const AlicesLab lab("");
  ASSERT_TRUE(lab.exec("2", {"sh", "-c", "mkdir -p /home/alice/.cache && chown root: /home/alice/.cache"}).ok());
  const Outcome carried = lab.alice("check --no-measure --json");
  EXPECT_THAT(findings_in(carried), HasSubstr("node-unread spark-2")) << carried.err;
  EXPECT_THAT(carried.out, HasSubstr("Permission denied"));
  ASSERT_TRUE(lab.exec("2", {"rm", "-r", "/home/alice/.ssh"}).ok());
  lab.exec("1", {"pkill", "-x", "ssh"});  // what keeps the connection open
  EXPECT_THAT(findings_in(lab.alice("check --no-measure --json")), HasSubstr("ssh-asks spark-2"));
}

}  // namespace
}  // namespace yoke::tests

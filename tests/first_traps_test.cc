// More traps of a first day: machines without keys, cables in the wrong port, an NCCL in an unusual folder, and one
// fault that looks like two.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/check_findings.h"
#include "tests/terminal.h"
#include "yoke/base/text.h"

namespace yoke::tests {
namespace {

using testing::HasSubstr;
using testing::Not;

struct FirstTraps : testing::Test {
  void SetUp() override {
    if (const auto why = why_no_labs()) GTEST_SKIP() << *why;
  }
};
struct LabTimingFirstTraps : FirstTraps {};

constexpr const char* kSecret = "yoke-trap-4711";

// spark-2 becomes a machine from the box: a password, no key of ours, a host key that nobody has seen. Returns that
// key's fingerprint.
std::string make_new_machine(const TestLab& lab) {
  const Outcome fresh =
      lab.exec("2", {"sh", "-ec",
                     fmt::format("rm -f /root/.ssh/authorized_keys /root/.ssh/known_hosts /etc/ssh/ssh_host_*\n"
                                 "echo root:{} | chpasswd\n"
                                 "ssh-keygen -q -t ed25519 -N '' -f /etc/ssh/ssh_host_ed25519_key\n"
                                 "sed -i 's/^PermitRootLogin.*/PermitRootLogin yes/; "
                                 "s/^PasswordAuthentication.*/PasswordAuthentication yes/' /etc/ssh/yoke_sshd_config\n"
                                 "kill -HUP $(cat /run/sshd.pid)\n"
                                 "ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub | cut -d' ' -f2",
                                 kSecret)});
  EXPECT_TRUE(fresh.ok()) << fresh.err;
  const Outcome keys = lab.exec("1", {"sh", "-ec",
                                      "rm -f /root/.ssh/known_hosts /root/.ssh/id_*; : > /root/.ssh/authorized_keys\n"
                                      // The sshd that was asked to read its settings again shows the new key.
                                      "until ssh-keyscan -t ed25519 10.77.0.2 2>/dev/null | grep -q ed25519; do sleep "
                                      "0.05; done; ! ssh -o BatchMode=yes 10.77.0.2 true"});
  EXPECT_TRUE(keys.ok()) << keys.err;
  return std::string(trim(fresh.out));
}

TEST_F(FirstTraps, ANewMachineShowsItsFingerprintAndSshItselfAsksForThePassword) {
  const TestLab lab;
  const std::string fingerprint = make_new_machine(lab);
  ASSERT_THAT(fingerprint, testing::StartsWith("SHA256:"));
  {
    Terminal refused(lab.folder, {"link", "setup"});
    ASSERT_TRUE(refused.shows(fingerprint)) << refused.screen();
    ASSERT_TRUE(refused.shows("[y/N] ")) << refused.screen();
    refused.type("n\n");
    EXPECT_EQ(refused.exit_status(), 6) << refused.screen();
    EXPECT_THAT(refused.screen(), Not(HasSubstr("assword:"))) << "nobody agreed";
    EXPECT_FALSE(lab.exec("2", {"test", "-s", "/root/.ssh/authorized_keys"}).ok()) << "the answer was no";
    EXPECT_FALSE(lab.exec("1", {"test", "-s", "/root/.ssh/known_hosts"}).ok()) << "the answer was no";
  }
  Terminal agreed(lab.folder, {"link", "setup"});
  ASSERT_TRUE(agreed.shows(fingerprint)) << agreed.screen();
  ASSERT_TRUE(agreed.shows("[y/N] ")) << agreed.screen();
  agreed.type("y\n");
  ASSERT_TRUE(agreed.shows("assword:")) << agreed.screen();
  agreed.type(fmt::format("{}\n", kSecret));
  ASSERT_TRUE(agreed.shows("Your ssh key is installed on spark-2")) << agreed.screen();
  ASSERT_TRUE(agreed.shows("steps (d: show them in full)? [y/N] ")) << "it goes on by itself" << agreed.screen();
  agreed.type("n\n");
  EXPECT_EQ(agreed.exit_status(), 0) << agreed.screen();
  EXPECT_THAT(agreed.screen(), Not(HasSubstr(kSecret)));
  const Outcome reach = lab.yoke({"cluster", "reach"});
  EXPECT_TRUE(reach.ok()) << reach.out;
}

TEST(FirstContact, AMachineWithoutAnSshClientSaysSoOnceAndBlamesNoNode) {
  const ScratchDir scratch;
  write_file_atomically(scratch.path() / "cluster.yaml",
                        "name: desk\nnodes:\n  - { name: spark-1, address: 198.51.100.1 }\n"
                        "  - { name: spark-2, address: 198.51.100.2 }\n");
  const Command there{.environment = {{"PATH", scratch.path().native()}}, .folder = scratch.path(), .timeout = {30}};
  for (const std::vector<std::string>& command : {std::vector<std::string>{"cluster", "reach"}, {"check"}}) {
    const Outcome outcome = run_yoke(command, there);
    EXPECT_EQ(outcome.exit_status, 5) << outcome.out;
    EXPECT_EQ(outcome.err,
              "yoke: this machine has no ssh client, by which yoke reaches the nodes\n"
              "  hint: sudo apt-get install openssh-client\n");
    EXPECT_EQ(outcome.out, "") << "no node has a fault";
  }
}

std::string cabling_of(const TestLab& lab) {
  const Document found = parse_json(lab.yoke({"link", "discover", "--seconds", "1", "--json"}).out, "link discover");
  std::string lines;
  for (const Document& finding : found.find("findings")->items) {
    lines += fmt::format("{}: {}; {}\n", finding.find("rule")->text, finding.find("what")->text,
                         finding.find("evidence")->text);
  }
  return lines;
}

TEST_F(FirstTraps, ACableInTheOtherPortIsNamedAndAModuleSaysWhatItIs) {
  const TestLab lab({"--unconfigured"});
  EXPECT_EQ(cabling_of(lab), "") << "a plain pair, whose second port is rightly idle";
  const Document probe = parse_json(lab.yoke({"probe", "--json", "--node", "spark-1"}).out, "probe");
  EXPECT_THAT(print_json(probe), HasSubstr("\"part_number\": \"NJAAKK0006\""));
  EXPECT_THAT(print_json(probe), HasSubstr("\"length_m\": 0.5"));
  // The cable moves to port 1 of spark-2: its ends change names.
  const Outcome moved = lab.exec(
      "2", {"sh", "-ec",
            "for p in enp1s0 enP2p1s0; do ip link set ${p}f0np0 down; ip link set ${p}f1np1 down\n"
            "ip link set ${p}f0np0 name spare; ip link set ${p}f1np1 name ${p}f0np0; ip link set spare name ${p}f1np1\n"
            "ip link set ${p}f0np0 up; ip link set ${p}f1np1 up; done"});
  ASSERT_TRUE(moved.ok()) << moved.err;
  EXPECT_THAT(cabling_of(lab), HasSubstr("ports-differ: port 0 of spark-1 is joined to port 1 of spark-2"));
}

TEST_F(FirstTraps, ASecondCableOfAPairIsOneTooMany) {
  const TestLab lab({"--unconfigured", "--cables", "2"});
  EXPECT_THAT(cabling_of(lab), HasSubstr("cable-extra: 2 cables join spark-1 and spark-2"));
}

TEST_F(FirstTraps, ThePortsThatAnOpenRingLeavesIdleAreNamed) {
  const TestLab lab({"--unconfigured", "--nodes", "3", "--topology", "ring"});
  ASSERT_TRUE(lab.exec("1", {"sh", "-ec", "ip link set enp1s0f1np1 down; ip link set enP2p1s0f1np1 down"}).ok());
  const std::string found = cabling_of(lab);
  EXPECT_THAT(found, HasSubstr("idle: spark-1 port 1 (enp1s0f1np1, enP2p1s0f1np1)"));
  EXPECT_THAT(found, HasSubstr("spark-3 port 0 (enp1s0f0np0, enP2p1s0f0np0)"));
}

// What a build of NCCL says of itself stands in the file as text; the rest of the library is of no interest here.
std::string nccl_paths(const TestLab& lab) {
  std::string paths;
  const Document probe = parse_json(lab.yoke({"probe", "--json", "--node", "spark-1"}).out, "probe");
  const std::string text = print_json(probe);
  for (const std::string& line : split(text, '\n')) {
    const std::size_t at = line.find("libnccl.so.2\"");
    const std::size_t start = line.find("\"/");
    if (at != std::string::npos && start != std::string::npos) {
      paths += line.substr(start + 1, at + 12 - start - 1) + "\n";
    }
  }
  return paths;
}

TEST_F(FirstTraps, AnNcclIsFoundInAUsersFoldersByItsVariableAndOnTheLoadersPath) {
  if (!find_program("gcc") || !find_program("ldconfig")) GTEST_SKIP() << "gcc or ldconfig is not installed";
  const TestLab lab;
  const std::filesystem::path source = lab.folder / "nccl.c";
  const std::string before = nccl_paths(lab);
  int number = 0;
  const auto add = [&](const std::string& folder) {
    // Builds differ, as one that is found twice is listed once.
    write_file_atomically(source, fmt::format("const char text[] __attribute__((used)) = \"NCCL version 2.90.{}+cuda13"
                                              ".0\";\n",
                                              ++number));
    const Outcome built = run({.argv = {"gcc", "-shared", "-fPIC", "-Wl,-soname,libnccl.so.2", "-o",
                                        (lab.folder / "built.so").native(), source.native()},
                               .timeout = {60}});
    EXPECT_TRUE(built.ok()) << built.err;
    EXPECT_TRUE(lab.exec("1", {"mkdir", "-p", folder}).ok());
    EXPECT_TRUE(lab.put("1", lab.folder / "built.so", folder + "/libnccl.so.2").ok());
  };
  add("/root/src/nccl/build/lib");
  add("/data/engines/nccl/lib");
  add("/srv/plain/build/lib");
  add("/opt2/libs");
  add("/nowhere/nccl");
  EXPECT_EQ(nccl_paths(lab), "/root/src/nccl/build/lib/libnccl.so.2\n" + before);
  ASSERT_TRUE(lab.exec("1", {"sh", "-ec",
                             "printf 'export ENGINES=/data/engines\\nexport NCCL_HOME=$ENGINES/nccl\\n' >> "
                             "/root/.bashrc; echo 'export NCCL_HOME=/srv/plain/build' >> /root/.profile\n"
                             "echo /opt2/libs > /etc/ld.so.conf.d/trap.conf; ldconfig"})
                  .ok());
  const std::string all = nccl_paths(lab);
  for (const char* folder :
       {"/root/src/nccl/build/lib", "/data/engines/nccl/lib", "/srv/plain/build/lib", "/opt2/libs"}) {
    const std::string line = fmt::format("{}/libnccl.so.2\n", folder);
    EXPECT_THAT(all, HasSubstr(line));
    EXPECT_EQ(all.find(line), all.rfind(line)) << "listed twice";
  }
  EXPECT_THAT(all, Not(HasSubstr("/nowhere"))) << "no known place";
}

// Traffic over the management port is slow, and so is the all-reduce over it: that is one fault, and unplugging the
// power is no cure of it.
TEST_F(LabTimingFirstTraps, TrafficOverTheManagementPortIsOneFindingAlsoWhereItIsMeasured) {
  const TestLab lab;
  ASSERT_TRUE(lab.yoke({"lab", "fault", "management-only", "--node", "2"}).ok());
  lab.settle();
  const Outcome test = lab.yoke({"link", "test", "--seconds", "0.1", "--json"});
  EXPECT_EQ(findings_in(test), "route-elsewhere spark-2 enP7s7\n") << test.out;
  EXPECT_NE(parse_json(test.out, "link test").find("all_reduce"), nullptr) << "it was measured: " << test.out;
  EXPECT_THAT(test.out, Not(HasSubstr("collective-slow"))) << "nor is it withheld because the machine is busy";
}

}  // namespace
}  // namespace yoke::tests

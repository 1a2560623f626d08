// What an ordinary user of this machine can make root's labs do: nothing. The user's process has the command line of a
// lab's part and namespaces of its own; root's commands must stay in the lab.
#include <gtest/gtest.h>

#include "tests/lab_fixture.h"
#include "yoke/base/clock.h"
#include "yoke/base/text.h"

namespace yoke::tests {
namespace {

namespace fs = std::filesystem;
using namespace literals;

struct LabTakeover : testing::Test {
  void SetUp() override {
    if (const auto why = why_no_labs({"setpriv", "pgrep", "bash"})) GTEST_SKIP() << *why;
    fs::permissions(scratch.path(), fs::perms(0755));
    fs::create_directories(folder);
    fs::create_directories(roots);
    fs::permissions(roots, fs::perms::owner_all);
    ASSERT_EQ(chown(folder.c_str(), user, user), 0);
    const Outcome outcome = run({.argv = joined(as_user, {"unshare", "--user", "--map-root-user", "--mount", "true"})});
    if (!outcome.ok()) GTEST_SKIP() << "an ordinary user has no user namespaces here: " << outcome.describe();
  }

  // A process of the user's in namespaces of its own. It runs `first` there, waits for the file `go` to name a lab, and
  // then has the command line of that lab's part.
  Process disguise(const std::vector<std::string>& namespaces, const std::string& first, const std::string& part,
                   const std::string& last_word) const {
    write_file_atomically(folder / part, "while :; do sleep 1; done\n");
    const std::string script =
        fmt::format("cd {}\n{}\nwhile [ ! -e ../go ]; do sleep 0.02; done\n", folder.native(), first) +
        fmt::format("exec -a yoke bash {} /run/yoke/labs/$(cat ../go) {}\n", part, last_word);
    std::vector<std::string> argv = joined(as_user, {"unshare", "--user", "--map-root-user"});
    argv = joined(joined(argv, namespaces), {"bash", "-c", script});
    return Process({.argv = argv});
  }

  void put_on(const std::string& lab, const std::string& part) const {
    write_file_atomically(scratch.path() / "go", lab);
    const Deadline deadline = Deadline::after(10_s);
    const auto is_on = [&] {
      return run({.argv = {"pgrep", "-u", fmt::format("{}", user), "-f", part + " /run/yoke/labs/" + lab}}).ok();
    };
    while (!is_on() && !deadline.expired()) real_clock().sleep(20_ms);
    EXPECT_TRUE(is_on()) << "the user's process has not taken on its command line";
  }

  const ScratchDir scratch{"yoke-test-takeover"};
  const fs::path folder = scratch.path() / "users";
  const fs::path roots = scratch.path() / "roots";  // closed to the user
  const uid_t user = 40000 + static_cast<uid_t>(getpid()) % 20000;
  const std::vector<std::string> as_user = {"setpriv", fmt::format("--reuid={}", user), fmt::format("--regid={}", user),
                                            "--clear-groups"};
};

const std::vector<std::string> kNodeNamespaces = {"--mount", "--pid", "--fork", "--kill-child"};

TEST_F(LabTakeover, ExecDoesNotEnterAUsersNamespaces) {
  write_file_atomically(folder / "hostname",
                        fmt::format("#!/bin/sh\necho taken > {}/mark\necho the-users-program\n", roots.native()),
                        {.mode = 0755});
  for (const char* part : {"lab-node", "lab-plain-node"}) {
    fs::remove(scratch.path() / "go");
    const Process process =
        disguise(kNodeNamespaces, fmt::format("mount --bind {} /usr/local/sbin", folder.native()), part, "1");
    const TestLab lab;
    put_on(lab.name, part);
    EXPECT_EQ(lab.exec("1", {"hostname"}).out, "spark-1\n") << part;
    EXPECT_FALSE(fs::exists(roots / "mark")) << part;
  }
}

TEST_F(LabTakeover, NothingIsWrittenThroughAUsersRoot) {
  const Process process =
      disguise(kNodeNamespaces, fmt::format("mount -t tmpfs none /run && ln -s {} /run/yoke-lab", roots.native()),
               "lab-node", "1");
  const TestLab lab;
  put_on(lab.name, "lab-node");
  EXPECT_TRUE(lab.yoke({"lab", "fault", "--name", lab.name, "gid-drift", "--node", "1"}).ok());
  const Outcome reached = lab.yoke({"cluster", "reach"});
  EXPECT_TRUE(reached.ok()) << reached.err;
  EXPECT_TRUE(fs::is_empty(roots));
  const Outcome there = lab.exec("1", {"cat", "/run/yoke-lab/hardware-faults.json"});
  EXPECT_NE(there.out.find("roceP2p1s0f0"), std::string::npos) << there.out << there.err;
}

TEST_F(LabTakeover, FaultsDoNotReachAUsersNetwork) {
  const std::string state = "cat /sys/class/net/enP2p1s0f0np0/flags";
  const Process process = disguise({"--net", "--mount"},
                                   "mount -t sysfs none /sys\n"
                                   "ip link add enP2p1s0f0np0 type veth peer name other; ip link set other up\n"
                                   "ip addr add 192.168.101.1/24 dev enP2p1s0f0np0; ip link set enP2p1s0f0np0 up\n"
                                   "exec 10</proc/self/ns/net 11</proc/self/ns/net 12</proc/self/ns/net\n"
                                   "(while :; do " +
                                       state + " > state.new && mv state.new state; sleep 0.02; done) &",
                                   "lab-holder", "2");
  const TestLab lab;
  const auto look = [&] {
    fs::remove(folder / "state");
    const Deadline deadline = Deadline::after(10_s);
    while (!fs::exists(folder / "state") && !deadline.expired()) real_clock().sleep(20_ms);
    return std::string(trim(read_file(folder / "state")));
  };
  put_on(lab.name, "lab-holder");
  const std::string before = look();
  const Outcome fault = lab.yoke({"lab", "fault", "--name", lab.name, "rail-down", "--node", "1", "--rail", "B"});
  EXPECT_TRUE(fault.ok()) << fault.err;
  EXPECT_EQ(look(), before) << "root changed the network of an ordinary user";
  EXPECT_NE(lab.exec("1", {"ip", "-br", "link", "show", "enP2p1s0f0np0"}).out.find(" DOWN "), std::string::npos);
}

TEST_F(LabTakeover, AUsersProcessesDoNotKeepRootFromALab) {
  const Process process = disguise({"--pid", "--fork", "--kill-child"}, "", "lab-holder", "2");
  const std::string name = "test-" + random_token_hex(4);
  put_on(name, "lab-holder");
  const Outcome up = run_yoke({"lab", "up", "--name", name}, {.folder = scratch.path(), .timeout = 60_s});
  EXPECT_TRUE(up.ok()) << up.err;
  const Outcome down = run_yoke({"lab", "down", "--name", name}, {.folder = scratch.path(), .timeout = 60_s});
  EXPECT_TRUE(down.ok()) << down.err;
  EXPECT_TRUE(run({.argv = {"pgrep", "-u", fmt::format("{}", user), "-f", "lab-holder"}}).ok())
      << "root's 'lab down' has ended a process that is not the lab's";
}

}  // namespace
}  // namespace yoke::tests

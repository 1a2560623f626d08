// Labs of a user without root, and of a machine without namespaces. Root makes the user up in a mount namespace of its
// own, over copies of /etc/passwd and its like, so that this machine knows nothing of it.
#include <gtest/gtest.h>

#include "tests/lab_fixture.h"
#include "yoke/base/json.h"

namespace yoke::tests {
namespace {

namespace fs = std::filesystem;
using namespace literals;

struct LabRights : testing::Test {
  void SetUp() override {
    if (const auto why = why_no_labs({"setpriv"})) GTEST_SKIP() << *why;
    fs::permissions(scratch.path(), fs::perms(0755));
    fs::create_directories(home);
    fs::copy_file(YOKE_PROGRAM, program);
    fs::permissions(program, fs::perms(0755));
    write_file_atomically(
        scratch.path() / "passwd",
        read_file("/etc/passwd") + fmt::format("yoke-test:x:{0}:{0}::{1}:/bin/sh\n", user, home.native()));
    lend_ids();
    ASSERT_EQ(chown(home.c_str(), user, user), 0);
  }

  void TearDown() override {
    run_script(as_user, "$YOKE lab down --name $NAME");  // where the test failed half-way
    std::error_code ignored;
    fs::remove_all(runtime, ignored);
  }

  void lend_ids() const {
    for (const char* file : {"subuid", "subgid"})
      write_file_atomically(scratch.path() / file, "root:0:1000000\nyoke-test:300000:65536\n");
  }

  // A shell script with $YOKE and the lab's $NAME, run by `who`, in mounts that only it has.
  Outcome run_script(const std::string& who, const std::string& script, const std::string& first = ":") const {
    const std::string mounts = fmt::format(
        "for file in passwd subuid subgid; do mount --bind {}/$file /etc/$file || exit 99; done; {}; cd {}; exec {} ",
        scratch.path().native(), first, home.native(), who);
    return run({.argv = {"unshare", "--mount", "sh", "-c", mounts + "sh -c \"$0\"", script},
                .environment = {{"YOKE", program},
                                {"NAME", name},
                                {"HOME", home},
                                {"XDG_RUNTIME_DIR", ""},
                                {"PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}},
                .timeout = 100_s});
  }
  // What is left of the lab: processes that name its folder, and files.
  std::string left() const {
    std::string text = run({.argv = {"sh", "-c", "ps -e -o pid=,args= | grep -F '/" + name + "' | grep -v grep"}}).out;
    for (const fs::path& folder : {fs::path("/run/yoke/labs"), runtime / "labs"}) {
      std::error_code ignored;
      for (const auto& entry : fs::directory_iterator(folder, ignored)) {
        if (entry.path().filename().native().starts_with(name)) text += entry.path().native() + "\n";
      }
    }
    return text;
  }

  const ScratchDir scratch{"yoke-test-rights"};
  const fs::path home = scratch.path() / "home";
  const fs::path program = scratch.path() / "yoke";
  const std::string name = "test-" + random_token_hex(4);
  // A user of its own for each test: they run side by side, and nobody may see the labs of another.
  const uid_t user = 40000 + static_cast<uid_t>(getpid()) % 20000;
  const fs::path runtime = fmt::format("/tmp/yoke-{}", user);
  const std::string as_user = fmt::format("setpriv --reuid={0} --regid={0} --clear-groups", user);
  // Without it root is root, but makes no namespace and no mount.
  const std::string as_weak_root = "setpriv --bounding-set=-sys_admin";
};

// The ways in which a kernel says no to user namespaces are many; whether it says yes is asked by util-linux.
std::optional<std::string> why_no_user_namespaces(const LabRights& test) {
#ifdef __SANITIZE_THREAD__
  return "the thread sanitizer has a thread of its own, and only a process of one thread may change its user namespace";
#endif
  const Outcome outcome = test.run_script(test.as_user, "unshare --user --map-root-user --map-auto --net --mount true");
  if (outcome.ok()) return std::nullopt;
  return "this machine refuses user namespaces: " + outcome.describe();
}

TEST_F(LabRights, AUserWithoutRootHasAWholeLab) {
  if (const auto why = why_no_user_namespaces(*this)) GTEST_SKIP() << *why;
  const Outcome outcome = run_script(as_user, R"(
    set -e
    $YOKE lab up --name $NAME
    $YOKE lab exec --name $NAME 1 -- ssh spark-2 hostname
    $YOKE lab exec --name $NAME 1 -- ssh -tt spark-2 tty
    $YOKE lab exec --name $NAME 2 -- sh -c 'echo here > /etc/yoke-lab-test; cat /etc/yoke-lab-test'
    $YOKE lab exec --name $NAME 2 -- ls /sys/class/infiniband
    $YOKE cluster reach
    $YOKE lab fault --name $NAME rail-down --node 2 --rail A
    $YOKE lab exec --name $NAME 2 -- ip -br link show enp1s0f0np0
    $YOKE lab fault --name $NAME power-off --node 2
    $YOKE lab fault --name $NAME clear
    $YOKE lab exec --name $NAME 2 -- ip -br link show enp1s0f0np0
    $YOKE lab status --name $NAME
    $YOKE lab down --name $NAME
    echo all done)");
  EXPECT_TRUE(outcome.ok()) << outcome.describe() << "\n" << outcome.out << outcome.err;
  for (const char* said :
       {"is up: 2 nodes", "Missing here: memory limit", "\nspark-2\n", "/dev/pts/", "\nhere\n", "rocep1s0f0",
        "reached: spark-2", " DOWN ", " UP ", "2 faults cleared", "is down", "all done"}) {
    EXPECT_NE(outcome.out.find(said), std::string::npos) << said << " in\n" << outcome.out;
  }
  EXPECT_EQ(left(), "");
  EXPECT_FALSE(fs::exists("/etc/yoke-lab-test"));
}

// With the PATH that Debian gives to users, which lacks sbin; setup writes where only a node's own root may.
TEST_F(LabRights, AUserWithoutRootSetsUpTheLinksOfALab) {
  if (const auto why = why_no_user_namespaces(*this)) GTEST_SKIP() << *why;
  const Outcome outcome = run_script(as_user, R"(
    set -e
    PATH=/usr/local/bin:/usr/bin:/bin
    umask 077
    $YOKE lab up --name $NAME --unconfigured
    $YOKE link discover --seconds 1 -o cluster.yaml --force
    $YOKE link setup --yes
    $YOKE check --no-measure || [ $? = 3 ]
    $YOKE lab exec 1 -- su nobody -s /bin/sh -c 'ls -d /'
    $YOKE link undo --yes
    $YOKE lab down
    echo all done)");
  EXPECT_TRUE(outcome.ok()) << outcome.describe() << "\n" << outcome.out << outcome.err;
  for (const char* said : {"The network is set up", "Clean:", "\n/\n", "all done"}) {
    EXPECT_NE(outcome.out.find(said), std::string::npos) << said << " in\n" << outcome.out;
  }
  EXPECT_EQ(left(), "");
}

TEST_F(LabRights, AFailedStartOfAUserLeavesNothing) {
  if (const auto why = why_no_user_namespaces(*this)) GTEST_SKIP() << *why;
  const Outcome outcome = run_script(
      as_user, "for wait in 0.02 0.05 0.1 0.15; do timeout -s INT $wait $YOKE lab up --name $NAME; done; true");
  EXPECT_TRUE(outcome.ok()) << outcome.describe();
  run_script(as_user, "$YOKE lab down --name $NAME");
  EXPECT_EQ(left(), "");
}

TEST_F(LabRights, ReportsWhatAUserLacks) {
  if (!fs::exists("/usr/bin/newuidmap")) GTEST_SKIP() << "uidmap is not installed";
  struct Row {
    const char* first;  // what is done to the machine
    const char* says;
  };
  for (const Row& row :
       {Row{"echo other:1:70000 > /etc/subuid", "add the line 'yoke-test:100000:65536' to /etc/subuid"},
        Row{"echo yoke-test:1:70 > /etc/subgid", "/etc/subgid lends only 70"},
        Row{"mount --bind /dev/null /usr/bin/newuidmap", "apt-get install uidmap"},
        Row{"mount --bind /dev/null /usr/sbin/sshd", "apt-get install openssh-server"}}) {
    lend_ids();
    const Outcome outcome = run_script(as_user, "$YOKE lab up --name $NAME", row.first);
    EXPECT_NE(outcome.exit_status, 0) << row.first;
    EXPECT_NE(outcome.err.find(row.says), std::string::npos) << outcome.err;
  }
  EXPECT_EQ(left(), "");
}

TEST_F(LabRights, NamesTheSettingThatForbidsUserNamespaces) {
  if (const auto why = why_no_user_namespaces(*this)) GTEST_SKIP() << *why;
  // The limit is a user namespace's own: it is set in one that root makes, for the user in it.
  const std::string inside =
      "unshare --user --map-users=0,0,65536 --map-groups=0,0,65536 sh -c "
      "'echo 0 > /proc/sys/user/max_user_namespaces || exit 98; exec " +
      as_user + " \"$@\"' x";
  const Outcome outcome = run_script(inside, "$YOKE lab up --name $NAME");
  if (outcome.exit_status == 98) GTEST_SKIP() << "the limit cannot be set here: " << outcome.describe();
  EXPECT_EQ(outcome.exit_status, Error(ErrorCode::kPermission, "").exit_status()) << outcome.err;
  EXPECT_NE(outcome.err.find("sysctl -w user.max_user_namespaces"), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.err.find("--plain"), std::string::npos) << outcome.err;
}

TEST_F(LabRights, RootWithoutTheRightToMakeNamespacesGetsAHintAtPlainLabs) {
  const Outcome outcome = run_script(as_weak_root, "$YOKE lab up --name $NAME");
  EXPECT_EQ(outcome.exit_status, Error(ErrorCode::kPermission, "").exit_status());
  EXPECT_NE(outcome.err.find("CAP_SYS_ADMIN"), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.err.find("--plain"), std::string::npos) << outcome.err;
  EXPECT_EQ(left(), "");
}

constexpr const char* kPlainScript = R"(
    set -e
    $YOKE lab up --name $NAME --plain
    $YOKE lab exec --name $NAME 1 -- ssh spark-2 'echo at $YOKE_LAB_NODE of $HOSTNAME'
    $YOKE lab exec --name $NAME 2 -- ssh spark-1 "ssh spark-2 'echo back at \$YOKE_LAB_NODE'"
    $YOKE cluster reach --json
    $YOKE lab fault --name $NAME power-off --node 2
    if $YOKE lab exec --name $NAME 1 -- ssh spark-2 true; then exit 1; fi
    $YOKE lab fault --name $NAME power-on --node 2
    if $YOKE lab fault --name $NAME slow-rail --node 2; then exit 1; fi
    $YOKE lab exec --name $NAME 1 -- ssh spark-2 "setsid sleep 7070 /$NAME > /dev/null 2>&1 & echo left one"
    $YOKE lab status --name $NAME
    $YOKE lab down --name $NAME
    echo all done)";

void expect_plain_story(const Outcome& outcome) {
  EXPECT_TRUE(outcome.ok()) << outcome.describe() << "\n" << outcome.out << outcome.err;
  for (const char* said :
       {"Missing here: network", "Missing here: faults", "\nat spark-2 of spark-2\n", "\nback at spark-2\n",
        "\"reached\": true", "left one", "plain processes", "is down", "all done"}) {
    EXPECT_NE(outcome.out.find(said), std::string::npos) << said << " in\n" << outcome.out;
  }
  EXPECT_EQ(outcome.out.find("\"reached\": false"), std::string::npos) << outcome.out;
}

TEST_F(LabRights, PlainNodesNeedNoRightsAtAll) {
  expect_plain_story(run_script(as_weak_root, kPlainScript));
  EXPECT_EQ(left(), "");
}

TEST_F(LabRights, PlainNodesRunAsTheUser) {
  expect_plain_story(run_script(as_user, kPlainScript));
  EXPECT_EQ(left(), "");
}

TEST_F(LabRights, AGameDayWithoutThemFailsOnceAndReportsHowToPlayIt) {
  const Outcome outcome = run_script(as_weak_root, "$YOKE gameday --phase lab --json");
  EXPECT_EQ(outcome.exit_status, 1) << outcome.err;
  const Document day = parse_json(outcome.out, "out");
  std::vector<std::string> verdicts;
  for (const Document& phase : day.find("phases")->items) {
    verdicts.push_back(phase.find("name")->text + " " + phase.find("verdict")->text);
  }
  EXPECT_EQ(verdicts, (std::vector<std::string>{"lab fail", "clean-up pass"})) << outcome.out;
  EXPECT_NE(outcome.out.find("yoke gameday --plain"), std::string::npos) << outcome.out;
  EXPECT_EQ(outcome.out.find("yoke lab up --plain"), std::string::npos) << outcome.out;
}

TEST_F(LabRights, PlainLabsGoDownWhateverIsKilled) {
  const Outcome outcome = run_script(as_weak_root, R"(
    $YOKE lab up --name $NAME --plain > /dev/null || exit 1
    $YOKE lab exec --name $NAME 1 -- ssh spark-2 "sleep 7071 /$NAME > /dev/null 2>&1 & echo"
    kill -KILL $(pgrep -f "lab-plain-node.*/$NAME 2")
    $YOKE lab down --name $NAME || exit 2
    for wait in 0.02 0.05 0.1 0.2; do
      timeout -s KILL $wait $YOKE lab up --name $NAME --plain > /dev/null
      $YOKE lab down --name $NAME > /dev/null
    done
    true)");
  EXPECT_TRUE(outcome.ok()) << outcome.describe() << outcome.err;
  EXPECT_EQ(left(), "");
}

}  // namespace
}  // namespace yoke::tests

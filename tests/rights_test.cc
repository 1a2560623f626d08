// What the umask and other users of this machine have no say in: the modes of what yoke makes, and its folders.
#include <gtest/gtest.h>

#include "tests/lab_fixture.h"
#include "yoke/base/text.h"

namespace yoke::tests {
namespace {

namespace fs = std::filesystem;
using namespace literals;

// A shell script in mounts of its own with an empty /run, where nobody has used yoke yet. What it prints is wrong.
std::string complaints_of(const std::string& script, const fs::path& folder) {
  const Outcome outcome =
      run({.argv = {"unshare", "--mount", "sh", "-c", "mount -t tmpfs -o mode=755 none /run || exit 99\n" + script},
           .environment = {{"YOKE", YOKE_PROGRAM},
                           {"NAME", "test-" + random_token_hex(4)},
                           {"XDG_RUNTIME_DIR", ""},
                           {"MEMORY", kSanitized ? "2GiB" : "512MiB"}},
           .folder = folder,
           .timeout = 120_s});
  EXPECT_TRUE(outcome.ok()) << outcome.describe();
  return outcome.out + outcome.err;
}

struct Modes : testing::Test {
  void SetUp() override {
    if (const auto why = why_no_labs()) GTEST_SKIP() << *why;
  }
  const ScratchDir scratch{"yoke-test-modes"};
};

TEST_F(Modes, OfALabAreClosedToOthersUnderAnOpenUmask) {
  EXPECT_EQ(complaints_of(R"sh(
    umask 000
    $YOKE lab up --name $NAME --memory $MEMORY > up.log 2>&1 || { echo "lab up fails: $(head -1 up.log)"; exit;
}
    in=$($YOKE lab exec --name $NAME 1 -- stat -c %a / /run/sshd /root/.ssh /etc/ssh | tr '\n' ' ')
    [ "$in" = "755 755 700 755 " ] || echo "/ /run/sshd /root/.ssh /etc/ssh of a node: $in"
    here=$(stat -c %a /run/yoke /run/yoke/labs /run/yoke/labs/$NAME | tr '\n' ' ')
    [ "$here" = "700 700 700 " ] || echo "/run/yoke, its labs and the lab: $here"
    $YOKE lab down --name $NAME > /dev/null)sh",
                          scratch.path()),
            "");
}

TEST_F(Modes, OfANodeAreOpenToItsUsersUnderAClosedUmask) {
  EXPECT_EQ(complaints_of(R"sh(
    umask 077
    $YOKE lab up --name $NAME --memory $MEMORY > up.log 2>&1 || { echo "lab up fails: $(head -1 up.log)"; exit;
    }
    in=$($YOKE lab exec --name $NAME 1 -- stat -c %a / /sys/class/infiniband/rocep1s0f0/ports/1/state | tr '\n' ' ')
    [ "$in" = "755 644 " ] || echo "/ and a file of /sys of a node: $in"
    $YOKE lab exec --name $NAME 1 -- sh -c 'rm -rf /etc/yoke /etc/security/limits.d'
    $YOKE link setup --yes > setup.log 2>&1 || echo "link setup fails: $(tail -2 setup.log | head -1)"
    in=$($YOKE lab exec --name $NAME 1 -- stat -c %a /etc/yoke /etc/security/limits.d | tr '\n' ' ')
    [ "$in" = "755 755 " ] || echo "/etc/yoke and /etc/security/limits.d, made by link setup: $in"
    $YOKE lab down --name $NAME > /dev/null)sh",
                          scratch.path()),
            "");
}

// A part of a lab keeps the environment that it was started with for as long as the lab runs.
TEST_F(Modes, PartsOfALabHaveNoSecretsOfTheirStarter) {
  EXPECT_EQ(complaints_of(R"sh(
    YOKE_TEST_SECRET=of-root $YOKE lab up --name $NAME --memory $MEMORY > up.log 2>&1 || { cat up.log; exit; }
    parts=$(pgrep -f "^yoke lab-(holder|node) /run/yoke/labs/$NAME ")
    [ $(echo "$parts" | wc -l) -ge 3 ] || echo "the parts are not found: $parts"
    for part in $parts; do tr '\0' '\n' < /proc/$part/environ | grep of-root; done
    $YOKE lab down --name $NAME > /dev/null)sh",
                          scratch.path()),
            "");
}

// A user without XDG_RUNTIME_DIR keeps jobs, connections and labs in /tmp/yoke-UID, which anybody may make first.
TEST(RuntimeFolder, ThatAnotherUserHasTakenKeepsNobodyFromACommand) {
  if (geteuid() != 0 || !find_program("setpriv")) GTEST_SKIP() << "needs root and setpriv";
  const ScratchDir scratch{"yoke-test-runtime"};
  fs::permissions(scratch.path(), fs::perms(0755));
  const fs::path program = scratch.path() / "yoke";
  fs::copy_file(YOKE_PROGRAM, program);
  const uid_t user = 40000 + static_cast<uid_t>(getpid()) % 20000;
  const fs::path taken = fmt::format("/tmp/yoke-{}", user);
  ASSERT_TRUE(fs::create_directory(taken)) << taken << " is there already";
  ASSERT_EQ(chown(taken.c_str(), user + 1, user + 1), 0);
  const auto list = [&] {
    return run({.argv = {"setpriv", fmt::format("--reuid={}", user), fmt::format("--regid={}", user), "--clear-groups",
                         program, "job", "list"},
                .environment = {{"XDG_RUNTIME_DIR", ""}, {"HOME", "/nonexistent"}},
                .folder = "/",
                .timeout = 20_s});
  };
  const Outcome first = list();
  EXPECT_TRUE(first.ok()) << first.err;
  const Outcome second = list();
  EXPECT_TRUE(second.ok()) << second.err;
  std::vector<fs::path> made;
  for (const auto& entry : fs::directory_iterator("/tmp")) {
    if (entry.path().native().starts_with(taken.native() + "-")) made.push_back(entry.path());
  }
  EXPECT_EQ(made.size(), 1U) << "the second command did not find the folder of the first";
  for (const fs::path& folder : made) fs::remove_all(folder);
  fs::remove_all(taken);
}

}  // namespace
}  // namespace yoke::tests

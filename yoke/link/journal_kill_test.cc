// kill -9 at every point where setup or undo changes the disk: undo then leaves nothing, and all is as it was.
#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdlib>
#include <map>
#include <set>

#include "yoke/base/files.h"
#include "yoke/base/fork_call.h"
#include "yoke/link/journal.h"

namespace {

int deaths_in = 0;             // calls until this process kills itself; 0: never
std::set<std::string> synced;  // folders, while it is wanted
bool note_synced = false;

void come_closer() {
  if (deaths_in > 0 && --deaths_in == 0) kill(getpid(), SIGKILL);
}

}  // namespace

// In the place of the C library's, for the whole test program.
extern "C" int fsync(int fd) {
  come_closer();
  if (note_synced) {
    char name[4096] = {};
    if (readlink(fmt::format("/proc/self/fd/{}", fd).c_str(), name, sizeof name - 1) > 0) synced.insert(name);
  }
  return static_cast<int>(syscall(SYS_fsync, fd));
}
extern "C" int rename(const char* from, const char* to) noexcept {
  come_closer();
  return static_cast<int>(syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0));
}
extern "C" int link(const char* from, const char* to) noexcept {
  come_closer();
  return static_cast<int>(syscall(SYS_linkat, AT_FDCWD, from, AT_FDCWD, to, 0));
}
extern "C" int mkdirat(int folder, const char* name, mode_t mode) noexcept {
  come_closer();
  return static_cast<int>(syscall(SYS_mkdirat, folder, name, mode));
}
extern "C" int unlink(const char* name) noexcept {
  come_closer();
  return static_cast<int>(syscall(SYS_unlinkat, AT_FDCWD, name, 0));
}
extern "C" int rmdir(const char* name) noexcept {
  come_closer();
  return static_cast<int>(syscall(SYS_unlinkat, AT_FDCWD, name, AT_REMOVEDIR));
}

namespace yoke::link {
namespace {

namespace fs = std::filesystem;

struct KilledJournal : testing::Test {
  // In memory where there is such a place: hundreds of fsyncs wait for no disk there.
  ScratchDir scratch{"yoke-killed", fs::is_directory("/dev/shm") ? std::optional<fs::path>("/dev/shm") : std::nullopt};
  fs::path root = scratch.path() / "node";
  fs::path folder = root / "var/lib/yoke/link";

  void SetUp() override {
    make_folder(root / "home/.ssh", 0700);
    make_folder(root / "var/lib");
    make_folder(root / "tmp");
    write_file_atomically(root / "home/.ssh/authorized_keys", "ssh-ed25519 AAAA user\n", {.mode = 0600});
    write_file_atomically(root / "old.conf", "old\n", {.mode = 0640});
    setenv("TMPDIR", (root / "tmp").c_str(), 1);
  }
  void TearDown() override { unsetenv("TMPDIR"); }

  std::vector<Step> steps() const {
    return {
        {.kind = StepKind::kFile, .description = "new", .path = root / "etc/deep/a.conf", .content = "hello\n"},
        {.kind = StepKind::kFile, .description = "old", .path = root / "old.conf", .content = "new\n", .mode = 0600},
        {.kind = StepKind::kLines,
         .description = "lines",
         .path = root / "home/.ssh/authorized_keys",
         .lines = {"one", "two"},
         .mode = 0600},
        {.kind = StepKind::kLines,
         .description = "new lines",
         .path = root / "home/new/known",
         .lines = {"x"},
         .mode = 0600},
        {.kind = StepKind::kKeyPair,
         .description = "keys",
         .path = root / "home/.ssh/id_test",
         .content = "yoke@test",
         .mode = 0600}};
  }
  void set_up() const {
    for (const Step& step : steps()) Journal(folder).perform(step);
  }
  void undo() const { Journal(folder).undo(0); }

  std::map<std::string, std::string> look() const {
    std::map<std::string, std::string> found;
    for (const auto& entry : fs::recursive_directory_iterator(root)) {
      struct stat status {};
      lstat(entry.path().c_str(), &status);
      found[entry.path()] =
          fmt::format("{:o} {}", status.st_mode, entry.is_regular_file() ? read_file(entry.path()) : "");
    }
    return found;
  }

  // False where it ended before the point came.
  template <class Action>
  static bool kill_at(int point, Action action) {
    const int status = wait_for_child(fork_call([&]() -> int {
      deaths_in = point;
      action();
      return 0;
    }));
    EXPECT_TRUE(WIFSIGNALED(status) || WEXITSTATUS(status) == 0) << "point " << point << " failed by itself";
    return WIFSIGNALED(status);
  }
};

TEST_F(KilledJournal, UndoLeavesNothingWhereverSetupWasKilled) {
  const auto before = look();
  int point = 1;
  while (kill_at(point, [&] { set_up(); })) {
    undo();
    ASSERT_EQ(look(), before) << "killed at point " << point;
    ++point;
  }
  EXPECT_GT(point, 30) << "so many calls change the disk";
  undo();
  EXPECT_EQ(look(), before);
}

TEST_F(KilledJournal, UndoLeavesNothingWhereverUndoWasKilled) {
  const auto before = look();
  int point = 1;
  for (set_up(); kill_at(point, [&] { undo(); }); ++point) {
    undo();
    ASSERT_EQ(look(), before) << "killed at point " << point;
    set_up();
  }
  EXPECT_EQ(look(), before);
  EXPECT_GT(point, 15);
}

// Else a power cut may keep a change and lose the record of it.
TEST_F(KilledJournal, RecordsAreOnDiskWithTheirFoldersBeforeAStepBegins) {
  note_synced = true;
  Journal(folder).perform(steps().front());
  note_synced = false;
  for (const fs::path& wanted : {root / "var/lib", root / "var/lib/yoke", folder, root / "etc/deep"})
    EXPECT_TRUE(synced.contains(wanted.native())) << wanted;
  undo();
}

}  // namespace
}  // namespace yoke::link

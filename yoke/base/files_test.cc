#include "yoke/base/files.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include "yoke/base/error.h"
#include "yoke/base/error_testing.h"
#include "yoke/base/fork_call.h"

namespace yoke {
namespace {

namespace fs = std::filesystem;

TEST(Files, AreReadWholeUpToALimit) {
  const ScratchDir scratch;
  const fs::path file = scratch.path() / "a";
  const std::string content("with\0nul", 8);
  write_file_atomically(file, content);
  EXPECT_EQ(read_file(file), content);
  EXPECT_EQ(read_file(file, Bytes{8}), content);
  EXPECT_ERROR(read_file(file, Bytes{7}), ErrorCode::kInvalid, "is larger than 7 B");
}

TEST(Files, ThatCannotBeReadAreNamed) {
  const ScratchDir scratch;
  EXPECT_ERROR(read_file(scratch.path() / "missing"), ErrorCode::kNotFound, "missing");
  EXPECT_ERROR(read_file(scratch.path()), ErrorCode::kInvalid, "is a folder, not a file");
}

TEST(Files, NamedPipesAreRefusedAndNotWaitedFor) {
  const ScratchDir scratch;
  const fs::path pipe = scratch.path() / "config.json";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_ERROR(read_file(pipe), ErrorCode::kInvalid, "is a named pipe, not a file");
  // A shell's <(…) is a pipe too, but one that somebody writes to.
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const UniqueFd reading(ends[0]);
  UniqueFd writing(ends[1]);
  std::thread writer([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    write_all(writing, "late", "the pipe");
    writing.reset();
  });
  EXPECT_EQ(read_file("/dev/fd/" + std::to_string(reading.get())), "late");
  writer.join();
}

TEST(AtomicWrite, ReplacesTheContentSetsTheModeAndLeavesNothingBeside) {
  const ScratchDir scratch;
  const fs::path file = scratch.path() / "secret";
  write_file_atomically(file, "old");
  write_file_atomically(file, "new", {.mode = 0600});
  EXPECT_EQ(read_file(file), "new");
  struct stat status {};
  ASSERT_EQ(stat(file.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600U);
  EXPECT_EQ(std::distance(fs::directory_iterator(scratch.path()), fs::directory_iterator()), 1);
}

TEST(AtomicWrite, ThatFailsLeavesTheOldContentAndNothingBeside) {
  const ScratchDir scratch;
  EXPECT_ERROR(write_file_atomically(scratch.path() / "no/such/folder/file", "x"), ErrorCode::kNotFound,
               "no/such/folder/file: No such file");
  fs::create_directory(scratch.path() / "folder");
  write_file_atomically(scratch.path() / "folder/inside", "kept");
  EXPECT_ERROR(write_file_atomically(scratch.path() / "folder", "x"), ErrorCode::kInvalid, "folder: Is a directory");
  EXPECT_EQ(read_file(scratch.path() / "folder/inside"), "kept");
  EXPECT_EQ(std::distance(fs::directory_iterator(scratch.path()), fs::directory_iterator()), 1);
}

mode_t mode_of(const fs::path& file) {
  struct stat status {};
  EXPECT_EQ(lstat(file.c_str(), &status), 0) << file;
  return status.st_mode & 07777;
}

// Sets the umask, as long as this lives.
struct Umask {
  explicit Umask(mode_t mask) : before(umask(mask)) {}
  ~Umask() { umask(before); }
  const mode_t before;
};

TEST(Folders, HaveTheirModeWhateverTheUmask) {
  for (const mode_t mask : {0000, 0022, 0077}) {
    const Umask set(mask);
    const ScratchDir scratch;
    const fs::path top = scratch.path() / "top";
    make_folder(top / "inner/", 0755);
    EXPECT_EQ(mode_of(top), 0755U) << mask;
    EXPECT_EQ(mode_of(top / "inner"), 0755U) << mask;
    make_folder(top / "sticky", 01777);
    EXPECT_EQ(mode_of(top / "sticky"), 01777U) << mask;
    make_private_folder(top / "private/inner");
    EXPECT_EQ(mode_of(top / "private"), 0700U) << mask;
    EXPECT_EQ(mode_of(top / "private/inner"), 0700U) << mask;
    make_folder_at(open_file(top, O_RDONLY | O_DIRECTORY), "below", 0750);
    EXPECT_EQ(mode_of(top / "below"), 0750U) << mask;
  }
}

TEST(Folders, ThatAreThereStayAsTheyAreUnlessTheyMustBePrivate) {
  const ScratchDir scratch;
  const fs::path folder = scratch.path() / "folder";
  make_folder(folder, 0750);
  make_folder(folder, 0755);
  EXPECT_EQ(mode_of(folder), 0750U);
  make_private_folder(folder);
  EXPECT_EQ(mode_of(folder), 0700U);
}

TEST(Folders, AreNotMadeThroughALinkOrOverAFile) {
  const ScratchDir scratch;
  const fs::path target = scratch.path() / "target";
  make_folder(target, 0755);
  fs::create_symlink(target, scratch.path() / "link");
  EXPECT_ERROR(make_private_folder(scratch.path() / "link"), ErrorCode::kPermission, "is not a folder of this user");
  EXPECT_EQ(mode_of(target), 0755U);
  write_file_atomically(scratch.path() / "file", "");
  for (const char* name : {"file", "file/below"})
    EXPECT_ERROR(make_folder(scratch.path() / name), ErrorCode::kNotFound, "cannot make the folder") << name;
  const UniqueFd parent = open_file(scratch.path(), O_RDONLY | O_DIRECTORY);
  EXPECT_ERROR(make_folder_at(parent, "file"), ErrorCode::kNotFound, "cannot make the folder");
}

TEST(ScratchDir, LiesInTheGivenFolderAndStaysWhereItIsReleased) {
  const ScratchDir parent;
  fs::path kept;
  {
    ScratchDir scratch("inner", parent.path());
    kept = scratch.path();
    EXPECT_EQ(kept.parent_path(), parent.path());
    scratch.release();
  }
  EXPECT_TRUE(fs::exists(kept));
  EXPECT_ERROR(ScratchDir("inner", parent.path() / "missing"), ErrorCode::kNotFound, "cannot make the scratch folder");
}

TEST(ScratchDir, RemovesWhatAKilledProcessLeftAndNothingElse) {
  const ScratchDir parent;
  const ScratchDir living("work", parent.path());
  const ScratchDir other("works", parent.path());
  const pid_t child = fork_call([&]() -> int {
    ScratchDir scratch("work", parent.path());
    write_file_atomically(scratch.path() / "key", "secret");
    raise(SIGKILL);
    return 0;
  });
  wait_for_child(child);
  const auto count = [&] { return std::distance(fs::directory_iterator(parent.path()), fs::directory_iterator()); };
  fs::create_directory(parent.path() / "work-0123456");  // seven letters: none of ours
  EXPECT_EQ(count(), 4);
  ScratchDir::remove_abandoned("work", parent.path());
  EXPECT_EQ(count(), 3);
  EXPECT_TRUE(fs::exists(living.path()));
  EXPECT_TRUE(fs::exists(other.path()));
}

TEST(ScratchDir, IsGoneWithAllItHoldsAtTheEnd) {
  fs::path path;
  {
    const ScratchDir scratch("yoke-test");
    path = scratch.path();
    fs::create_directories(path / "a/b");
    write_file_atomically(path / "a/b/c", "x");
  }
  EXPECT_FALSE(fs::exists(path));
}

TEST(UniqueFd, ClosesOnce) {
  const ScratchDir scratch;
  int number = -1;
  {
    UniqueFd first = open_file(scratch.path() / "a", O_WRONLY | O_CREAT);
    number = first.get();
    const UniqueFd second = std::move(first);
    EXPECT_FALSE(first);  // NOLINT(bugprone-use-after-move): that is the point
    EXPECT_EQ(second.get(), number);
    EXPECT_NE(fcntl(number, F_GETFD) & FD_CLOEXEC, 0);
  }
  EXPECT_EQ(fcntl(number, F_GETFD), -1);
}

TEST(UserFolders, AreMadePrivateWhereTheEnvironmentSays) {
  const ScratchDir scratch;
  setenv("XDG_DATA_HOME", scratch.path().c_str(), 1);
  EXPECT_EQ(user_data_dir(), scratch.path() / "yoke");
  struct stat status {};
  ASSERT_EQ(stat((scratch.path() / "yoke").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0700U);
  unsetenv("XDG_DATA_HOME");
}

TEST(UserFolders, ARuntimeFolderOfAnotherUserIsNotUsed) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can give a folder to another user";
  const ScratchDir scratch;
  const char* before = std::getenv("XDG_RUNTIME_DIR");
  const std::string kept = before ? before : "";
  setenv("XDG_RUNTIME_DIR", scratch.path().c_str(), 1);
  EXPECT_EQ(user_runtime_dir(), scratch.path() / "yoke");
  ASSERT_EQ(chown(scratch.path().c_str(), 54321, 54321), 0);
  EXPECT_EQ(user_runtime_dir(), "/run/yoke");
  before ? setenv("XDG_RUNTIME_DIR", kept.c_str(), 1) : unsetenv("XDG_RUNTIME_DIR");
}

}  // namespace
}  // namespace yoke

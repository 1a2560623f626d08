#include "yoke/base/files.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include "yoke/base/error.h"
#include "yoke/base/error_testing.h"

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

}  // namespace
}  // namespace yoke

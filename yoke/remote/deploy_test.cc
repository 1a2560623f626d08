#include "yoke/remote/deploy.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include <chrono>
#include <fstream>
#include <thread>

#include "yoke/base/error.h"
#include "yoke/base/error_testing.h"
#include "yoke/base/hash.h"
#include "yoke/base/text.h"
#include "yoke/remote/local_shell.h"
#include "yoke/remote/sshd_testing.h"

namespace yoke::remote {
namespace {

using namespace literals;  // NOLINT(google-build-using-namespace)
namespace fs = std::filesystem;

// This machine with another cache folder and another PATH, which counts its round trips.
class NodeShell : public LocalShell {
 public:
  explicit NodeShell(fs::path cache) : LocalShell({.name = "node"}), cache_(std::move(cache)) {}
  Outcome run(const Command& command) override { return LocalShell::run(there(command)); }
  std::unique_ptr<RemoteProcess> start(const Command& command) override { return LocalShell::start(there(command)); }
  std::atomic<int> runs = 0;
  std::string path;

 private:
  Command there(Command command) {
    ++runs;
    command.environment["XDG_CACHE_HOME"] = cache_.native();
    if (!path.empty()) command.environment["PATH"] = path;
    return command;
  }

  fs::path cache_;
};

class Carry : public ::testing::Test {
 protected:
  Carry() { fs::copy_file("/bin/true", program_); }

  ScratchDir scratch_;
  fs::path cache_ = scratch_.path() / "the cache";
  fs::path program_ = scratch_.path() / "program";
  NodeShell shell_{cache_};
};

TEST_F(Carry, PutsTheProgramThereByItsContent) {
  const std::string there = deploy_program(shell_, program_);
  EXPECT_EQ(there, (cache_ / "yoke" / sha256_file_hex(program_) / "yoke").native());
  EXPECT_EQ(static_cast<unsigned>(fs::status(there).permissions()), 0755U);
  EXPECT_TRUE(read_file(there) == read_file(program_));
  EXPECT_TRUE(shell_.run({.argv = {there}, .timeout = 60_s}).ok());
}

TEST_F(Carry, CopiesNothingWhereItIsThereAlready) {
  const std::string there = deploy_program(shell_, program_);
  const auto inode = [&] {
    struct stat status {};
    stat(there.c_str(), &status);
    return status.st_ino;
  };
  const auto before = inode();
  shell_.runs = 0;
  EXPECT_EQ(deploy_program(shell_, program_), there);
  EXPECT_EQ(shell_.runs, 1);
  EXPECT_EQ(inode(), before);
}

TEST_F(Carry, ReplacesACopyThatIsDamaged) {
  const std::string there = deploy_program(shell_, program_);
  deploy_program(shell_, program_);
  ASSERT_TRUE(fs::exists(there + ".whole")) << "it is known to be whole";
  std::string damaged = read_file(program_);
  damaged.back() = static_cast<char>(damaged.back() ^ 1);
  // In place too: the same size and place on the disk, and an old time of change as a user can set it.
  const auto written = fs::last_write_time(there);
  for (const bool in_place : {false, true}) {
    if (in_place) {
      std::ofstream(there, std::ios::in | std::ios::out | std::ios::binary) << damaged;
      fs::last_write_time(there, written);
    } else {
      write_file_atomically(there, damaged, {.mode = 0755});
    }
    EXPECT_EQ(deploy_program(shell_, program_), there);
    EXPECT_TRUE(read_file(there) == read_file(program_)) << in_place;
    deploy_program(shell_, program_);
  }
}

TEST_F(Carry, ReadsACopyOnceToKnowThatItIsWhole) {
  const fs::path tools = scratch_.path() / "tools", count = scratch_.path() / "count";
  fs::create_directory(tools);
  const std::string path = std::getenv("PATH");
  write_file_atomically(tools / "sha256sum",
                        fmt::format("#!/bin/sh\necho x >> '{}'\nPATH='{}' exec sha256sum\n", count.native(), path),
                        {.mode = 0755});
  shell_.path = tools.native() + ":" + path;
  for (int command = 0; command < 4; ++command) deploy_program(shell_, program_);
  EXPECT_EQ(read_file(count), "x\nx\n") << "when it was copied, and by the next command";
}

TEST_F(Carry, ComparesSizesWhereThereIsNoSha256sum) {
  const fs::path tools = scratch_.path() / "tools";
  fs::create_directory(tools);
  for (const char* tool : {"sh", "uname", "wc", "touch", "mkdir", "find", "rmdir", "df", "cat", "chmod", "mv", "rm"}) {
    const Outcome found = run({.argv = {"sh", "-c", fmt::format("command -v {}", tool)}});
    ASSERT_TRUE(found.ok()) << tool;
    fs::create_symlink(found.out.substr(0, found.out.size() - 1), tools / tool);
  }
  shell_.path = tools.native();
  const std::string there = deploy_program(shell_, program_);
  EXPECT_TRUE(read_file(there) == read_file(program_));
  shell_.runs = 0;
  deploy_program(shell_, program_);
  EXPECT_EQ(shell_.runs, 1);
  write_file_atomically(there, "short", {.mode = 0755});
  deploy_program(shell_, program_);
  EXPECT_TRUE(read_file(there) == read_file(program_));
}

TEST_F(Carry, TakesSeveralCarriersAtOnce) {
  std::vector<std::thread> threads;
  std::atomic<int> right = 0;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&] { right += fs::exists(deploy_program(shell_, program_)); });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(right, 3);
  std::size_t files = 0;
  for (const auto& entry : fs::directory_iterator(cache_ / "yoke" / sha256_file_hex(program_)))
    files += entry.path().extension() != ".whole";
  EXPECT_EQ(files, 1U);
}

TEST_F(Carry, DeletesVersionsThatNobodyCarriedForAMonth) {
  for (const char* version : {"old", "recent"}) {
    fs::create_directories(cache_ / "yoke" / version);
    write_file_atomically(cache_ / "yoke" / version / "yoke", "x");
  }
  fs::last_write_time(cache_ / "yoke/old/yoke", fs::file_time_type::clock::now() - std::chrono::hours(24 * 40));
  deploy_program(shell_, program_);
  EXPECT_FALSE(fs::exists(cache_ / "yoke/old/yoke"));
  EXPECT_TRUE(fs::exists(cache_ / "yoke/recent/yoke"));
}

TEST_F(Carry, RefusesANodeOfAnotherKind) {
  // Asked of the program that deploy_program() asks too: under an emulator ours would get another answer.
  const std::string machine(trim(run({.argv = {"uname", "-m"}}).out));
  const bool here_arm = machine == "aarch64";
  std::string content = read_file(program_);
  content[18] = static_cast<char>(here_arm ? 62 : 183);
  content[19] = 0;
  write_file_atomically(program_, content, {.mode = 0755});
  EXPECT_EQ(program_machine(program_), here_arm ? "x86_64" : "aarch64");
  EXPECT_ERROR(deploy_program(shell_, program_), ErrorCode::kUnsupported, machine);
  EXPECT_FALSE(fs::exists(cache_));
}

TEST_F(Carry, RefusesWhatIsNoProgram) {
  write_file_atomically(program_, "#!/bin/sh\n");
  EXPECT_ERROR(deploy_program(shell_, program_), ErrorCode::kInvalid, "is no program");
  EXPECT_ERROR(deploy_program(shell_, "/no/such/program"), ErrorCode::kNotFound, "/no/such/program");
}

TEST_F(Carry, ReportsAFullDisk) {
  fs::create_directory(cache_);
  if (mount("none", cache_.c_str(), "tmpfs", 0, "size=64k") != 0) {
    GTEST_SKIP() << "a small volume cannot be mounted here: " << std::generic_category().message(errno);
  }
  std::string content = read_file(program_);
  content.resize(200'000);
  write_file_atomically(program_, content, {.mode = 0755});
  EXPECT_ERROR(deploy_program(shell_, program_), ErrorCode::kExhausted, "full");
  // Also where it becomes full only while we copy.
  try {
    shell_.copy_to(program_, (cache_ / "file").native());
    ADD_FAILURE() << "no error";
  } catch (const Error& full) {
    EXPECT_EQ(full.code(), ErrorCode::kExhausted) << full.message();
  }
  EXPECT_EQ(umount(cache_.c_str()), 0);
}

TEST_F(Carry, WorksOverSsh) {
  if (const std::string why = TestSshd::missing(); !why.empty()) GTEST_SKIP() << why;
  TestSshd sshd;
  SshShell shell(sshd.host(), sshd.options());
  const std::string there = deploy_program(shell, program_);
  EXPECT_EQ(there, (sshd.home() / ".cache/yoke" / sha256_file_hex(program_) / "yoke").native());
  EXPECT_TRUE(shell.run({.argv = {there}, .timeout = 60_s}).ok());
  shell.disconnect();
}

}  // namespace
}  // namespace yoke::remote

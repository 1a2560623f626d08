#include "yoke/weights/writer.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>

#include "yoke/base/error.h"
#include "yoke/base/error_testing.h"
#include "yoke/weights/safetensors_file.h"

namespace yoke::weights {
namespace {

namespace fs = std::filesystem;

std::size_t count_files(const fs::path& folder) {
  return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
}

TEST(SafetensorsWriter, WritesWhatTheReaderReadsBack) {
  const ScratchDir scratch;
  const fs::path file = scratch.path() / "m.safetensors";
  std::vector<std::byte> large((3 << 20) + 5);
  for (std::size_t i = 0; i < large.size(); ++i) large[i] = static_cast<std::byte>(i * 31 >> 3);
  const std::vector<float> small = {1, 2, 3};
  SafetensorsWriter writer(file, {{"small", tensor::DType::kF32, {3}},
                                  {"nothing", tensor::DType::kBf16, {0, 7}},
                                  {"large", tensor::DType::kU8, {static_cast<std::int64_t>(large.size())}},
                                  {"scalar", tensor::DType::kU8, {}}});
  writer.append(std::as_bytes(std::span(small)));
  writer.append(std::span(large).first(1000));
  writer.append(std::span(large).subspan(1000));
  EXPECT_FALSE(fs::exists(file)) << "half a file must not be seen";
  writer.append(std::span(large).first(1));
  writer.finish();
  const SafetensorsFile read(file);
  ASSERT_EQ(read.header().entries.size(), 4U);
  EXPECT_EQ(read.header().entries.front().begin % 64, 0U);
  EXPECT_EQ(read.view(*read.find("small")).data<float>()[2], 3.0F);
  const tensor::Tensor again = read.view(*read.find("large"));
  EXPECT_EQ(std::memcmp(again.raw(), large.data(), large.size()), 0);
  EXPECT_EQ(count_files(scratch.path()), 1U);
}

TEST(SafetensorsWriter, LeavesNothingWhenItIsGivenUp) {
  const ScratchDir scratch;
  { SafetensorsWriter writer(scratch.path() / "m", {{"a", tensor::DType::kF32, {3}}}); }
  EXPECT_EQ(count_files(scratch.path()), 0U);
}

TEST(SafetensorsWriter, ReplacesNoFile) {
  const ScratchDir scratch;
  write_file_atomically(scratch.path() / "m", "kept");
  EXPECT_ERROR(SafetensorsWriter(scratch.path() / "m", {}), ErrorCode::kConflict, "exists already");
  EXPECT_EQ(read_file(scratch.path() / "m"), "kept");
}

// What the writer says where the system refuses more bytes, from a child process that `limit` has put in that place.
template <class Limit>
std::string failure_in_child(const fs::path& folder, Limit limit) {
  int pipe_ends[2];
  if (pipe(pipe_ends) != 0) return "no pipe";
  const pid_t child = fork();
  if (child == 0) {
    std::string said = "skip";
    if (limit()) {
      try {
        const std::vector<std::byte> data(1 << 20);
        SafetensorsWriter writer(folder / "m", {{"a", tensor::DType::kU8, {8 << 20}}});
        for (int i = 0; i < 8; ++i) writer.append(data);
        writer.finish();
        said = "it was written";
      } catch (const Error& error) {
        said = error.message() + (count_files(folder) == 0 ? " and nothing is left" : " and something is left");
      }
    }
    const ssize_t ignored = write(pipe_ends[1], said.data(), said.size());
    static_cast<void>(ignored);
    _exit(0);
  }
  close(pipe_ends[1]);
  char buffer[500];
  const ssize_t size = read(pipe_ends[0], buffer, sizeof buffer);
  close(pipe_ends[0]);
  waitpid(child, nullptr, 0);
  return {buffer, static_cast<std::size_t>(std::max<ssize_t>(size, 0))};
}

TEST(SafetensorsWriter, AFileThatMayNotGrowIsAnErrorThatLeavesNothing) {
  const ScratchDir scratch;
  const std::string said = failure_in_child(scratch.path(), [] {
    std::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{1 << 20, 1 << 20};
    return setrlimit(RLIMIT_FSIZE, &limit) == 0;
  });
  EXPECT_NE(said.find("cannot write"), std::string::npos) << said;
  EXPECT_NE(said.find("and nothing is left"), std::string::npos) << said;
}

// A disk of two megabytes over the folder, seen by this process alone.
bool mount_small_disk(const fs::path& folder) {
  const uid_t user = geteuid();
  const gid_t group = getegid();
  if (unshare(CLONE_NEWNS | (user == 0 ? 0 : CLONE_NEWUSER)) != 0) return false;
  if (user != 0) {
    std::ofstream("/proc/self/uid_map") << "0 " << user << " 1";  // without it we could own no file there
    std::ofstream("/proc/self/setgroups") << "deny";
    std::ofstream("/proc/self/gid_map") << "0 " << group << " 1";
  }
  return mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
         mount("tmpfs", folder.c_str(), "tmpfs", 0, "size=2m") == 0;
}

TEST(SafetensorsWriter, AFullDiskIsAnErrorThatLeavesNothing) {
  const ScratchDir scratch;
  const std::string said = failure_in_child(scratch.path(), [&] { return mount_small_disk(scratch.path()); });
  if (said == "skip") GTEST_SKIP() << "needs user and mount namespaces";
  EXPECT_NE(said.find("No space left"), std::string::npos) << said;
  EXPECT_NE(said.find("and nothing is left"), std::string::npos) << said;
}

}  // namespace
}  // namespace yoke::weights

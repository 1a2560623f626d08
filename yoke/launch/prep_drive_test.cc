#include "yoke/launch/prep_drive.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "yoke/base/error_testing.h"
#include "yoke/base/files.h"
#include "yoke/base/hash.h"

namespace yoke::launch {
namespace {

class PrepDrive : public testing::Test {
 protected:
  void put(const std::string& path, const std::string& content) {
    const std::filesystem::path file = root / path;
    make_folder(file.parent_path());
    write_file_atomically(file, content);
    sums += fmt::format("{}  {}\n", sha256_hex(content), path);
  }
  Drive drive() {
    write_file_atomically(root / "SHA256SUMS", sums);
    return read_drive(root);
  }
  const ScratchDir scratch;
  const std::filesystem::path root = scratch.path() / "disk", target = scratch.path() / "target";
  std::string sums;
};

TEST_F(PrepDrive, CopiesWhatTheListNamesAndContinues) {
  put("models/nano/config.json", "{}");
  put("models/nano/weights", std::string(5 << 20, 'w'));
  put("images/vllm.tar", "image");
  const Drive read = drive();
  EXPECT_EQ(read.bytes(), 2U + (5U << 20) + 5U);
  EXPECT_EQ(read.below("images").size(), 1U);
  std::uint64_t last = 0;
  copy_from_drive(read, read.below("models"), target, [&](std::uint64_t done) { last = done; });
  EXPECT_EQ(last, 2U + (5U << 20));
  EXPECT_EQ(read_file(target / "nano/config.json"), "{}");
  EXPECT_EQ(std::filesystem::file_size(target / "nano/weights"), 5U << 20);
  EXPECT_FALSE(std::filesystem::exists(target / "vllm.tar"));
  // A damaged copy is replaced, a right one stays as it is.
  write_file_atomically(target / "nano/config.json", "[]");
  const auto before = std::filesystem::last_write_time(target / "nano/weights");
  copy_from_drive(read, read.below("models"), target, {});
  EXPECT_EQ(read_file(target / "nano/config.json"), "{}");
  EXPECT_EQ(std::filesystem::last_write_time(target / "nano/weights"), before);
}

TEST_F(PrepDrive, OtherBytesAndADriveThatWasPulledAreNamed) {
  put("models/nano/a", "a");
  put("models/nano/b", "b");
  const Drive read = drive();
  write_file_atomically(root / "models/nano/b", "x");
  EXPECT_ERROR(copy_from_drive(read, read.files, target, {}), ErrorCode::kInvalid, "models/nano/b has other bytes");
  EXPECT_FALSE(std::filesystem::exists(target / "nano/b"));
  std::filesystem::remove(root / "models/nano/b");
  EXPECT_ERROR(copy_from_drive(read, read.files, target, {}), ErrorCode::kUnavailable,
               "cannot be read any more, at models/nano/b");
  EXPECT_TRUE(std::filesystem::exists(target / "nano/a")) << "what was copied stays";
  EXPECT_ERROR(read_drive(root), ErrorCode::kNotFound, "the drive lacks models/nano/b");
}

TEST_F(PrepDrive, RefusesListsThatLeaveTheDriveOrAreNotWhole) {
  EXPECT_ERROR(read_drive(root), ErrorCode::kNotFound, "there is no SHA256SUMS");
  put("models/nano/a", "a");
  const std::string good = sums;
  for (const char* name : {"../etc/passwd", "/etc/passwd", "models/../x", "other/x", "models//x"}) {
    sums = good + fmt::format("{}  {}\n", sha256_hex("a"), name);
    EXPECT_ERROR(drive(), ErrorCode::kInvalid, "is not below models, images or packages");
  }
  sums = good + "hello\n";
  EXPECT_ERROR(drive(), ErrorCode::kInvalid, "SHA256SUMS:2: is no sum");
  sums = good;
  write_file_atomically(root / "models/nano/more", "m");
  EXPECT_ERROR(drive(), ErrorCode::kInvalid, "does not name models/nano/more");
}

}  // namespace
}  // namespace yoke::launch

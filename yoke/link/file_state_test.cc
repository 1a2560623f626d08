// Whose rights root uses in a user's home.
#include "yoke/link/file_state.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "yoke/base/error.h"
#include "yoke/base/error_testing.h"
#include "yoke/base/files.h"

namespace yoke::link {
namespace {

namespace fs = std::filesystem;
constexpr FileOwner kUser{54321, 54321};

// A user's ~/.ssh/authorized_keys may be a link to any file of the machine, and be put there between look and write.
TEST(FileState, RootWritesInAUsersHomeWithTheUsersRightsAlone) {
  if (geteuid() != 0) GTEST_SKIP() << "a lab needs root";
  const ScratchDir scratch("yoke-acting");
  const fs::path home = scratch.path() / "home";
  const fs::path machines = scratch.path() / "etc";
  fs::permissions(scratch.path(), fs::perms(0755));
  make_folder(home);
  make_folder(machines);
  ASSERT_EQ(chown(home.c_str(), 54321, 54321), 0);
  write_owned_file(home / "keys", "text\n", 0600, kUser, kUser);
  const FileState written = inspect_file(home / "keys");
  EXPECT_EQ(written.uid, kUser.uid);
  EXPECT_EQ(written.mode, 0600);
  EXPECT_ERROR(write_owned_file(machines / "shadow", "text\n", 0600, kUser, kUser), ErrorCode::kPermission, "shadow");
  fs::create_symlink(machines, home / ".ssh");
  EXPECT_ERROR(write_owned_file(home / ".ssh/keys", "text\n", 0600, kUser, kUser), ErrorCode::kPermission, "keys");
  EXPECT_ERROR(make_folders(inspect_file(home / ".ssh/new/keys"), 0700, kUser), ErrorCode::kPermission, "new");
  EXPECT_TRUE(fs::is_empty(machines));
  write_file_atomically(machines / "hosts", "kept\n");
  const SavedBytes saved(scratch.path() / "saved");
  EXPECT_ERROR(restore_file(home / ".ssh/hosts", {}, saved, kUser), ErrorCode::kPermission, "hosts");
  EXPECT_EQ(read_file(machines / "hosts"), "kept\n");
  make_folders(inspect_file(home / "own/keys"), 0700, kUser);
  struct stat status {};
  ASSERT_EQ(stat((home / "own").c_str(), &status), 0);
  EXPECT_EQ(status.st_uid, 54321U);
  // And root is root again.
  write_owned_file(machines / "ours", "text\n", 0600, {}, {});
  EXPECT_EQ(inspect_file(machines / "ours").uid, 0);
}

// Else root would read what a link leads to, keep it, and hand it to the user when the file is restored.
TEST(FileState, RootReadsInAUsersHomeWithTheUsersRightsAlone) {
  if (geteuid() != 0) GTEST_SKIP() << "a lab needs root";
  const ScratchDir scratch("yoke-reading");
  fs::permissions(scratch.path(), fs::perms::all);
  const fs::path secret = scratch.path() / "secret";
  write_file_atomically(secret, "of root\n", {.mode = 0600});
  const fs::path link = scratch.path() / "authorized_keys";
  fs::create_symlink(secret, link);
  const SavedBytes saved(scratch.path() / "saved");
  EXPECT_ERROR(inspect_file(link, &saved, kUser), ErrorCode::kPermission, "authorized_keys");
  EXPECT_ERROR(read_if_there(link, kUser), ErrorCode::kPermission, "authorized_keys");
  EXPECT_FALSE(fs::exists(scratch.path() / "saved"));
  write_owned_file(link, "of the user\n", 0600, kUser, kUser);
  EXPECT_EQ(read_file(secret), "of root\n");
  EXPECT_EQ(read_if_there(link, kUser), "of the user\n");
  EXPECT_EQ(read_if_there(scratch.path() / "none", kUser), "");
  EXPECT_EQ(inspect_file(secret).mode, 0600) << "root is root again";
}

}  // namespace
}  // namespace yoke::link

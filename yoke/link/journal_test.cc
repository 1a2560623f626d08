// Files in a scratch folder: what setup does is taken back byte for byte, whatever the moment of a crash.
#include "yoke/link/journal.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "yoke/base/error.h"
#include "yoke/base/error_testing.h"
#include "yoke/base/process.h"
#include "yoke/link/file_state.h"
#include "yoke/link/step_actions.h"

namespace yoke::link {
namespace {

namespace fs = std::filesystem;

struct JournalOfFiles : testing::Test {
  ScratchDir scratch{"yoke-journal"};
  fs::path file = scratch.path() / "etc/deep/ours.conf";
  fs::path users = scratch.path() / "authorized_keys";
  fs::path folder = scratch.path() / "var/yoke/link";

  Step file_step(const std::string& content = "ours\n", int mode = 0600) const {
    return {.kind = StepKind::kFile, .description = "a file", .path = file, .content = content, .mode = mode};
  }
  Step lines_step(std::vector<std::string> lines) const {
    return {.kind = StepKind::kLines, .description = "lines", .path = users, .lines = std::move(lines), .mode = 0600};
  }
  std::string text_of(const fs::path& path) const { return fs::exists(path) ? read_file(path) : "(none)"; }
  int mode_of(const fs::path& path) const {
    struct stat found {};
    stat(path.c_str(), &found);
    return static_cast<int>(found.st_mode & 0777U);
  }
  bool perform(const Step& step) const { return Journal(folder).perform(step); }
  void undo() const { Journal(folder).undo(0); }
};

TEST_F(JournalOfFiles, ANewFileGoesWithItsFoldersAndTheJournal) {
  EXPECT_TRUE(perform(file_step()));
  EXPECT_EQ(text_of(file), "ours\n");
  EXPECT_EQ(mode_of(file), 0600);
  EXPECT_FALSE(perform(file_step())) << "twice changes nothing";
  EXPECT_EQ(Journal(folder).records().size(), 1U);
  undo();
  EXPECT_FALSE(fs::exists(scratch.path() / "etc"));
  EXPECT_FALSE(fs::exists(scratch.path() / "var")) << "the journal's own folders go too";
}

TEST_F(JournalOfFiles, AnOldFileComesBackByteForByteWithItsMode) {
  const std::string bytes = std::string("\xff\x00 not \xc3 UTF-8, no end", 22);
  fs::create_directories(file.parent_path());
  write_file_atomically(file, bytes, {.mode = 0640});
  perform(file_step());
  perform(file_step("second\n", 0644));
  EXPECT_EQ(text_of(file), "second\n");
  undo();
  EXPECT_EQ(text_of(file), bytes);
  EXPECT_EQ(mode_of(file), 0640);
  EXPECT_TRUE(fs::exists(file.parent_path())) << "a folder that was there stays";
}

TEST_F(JournalOfFiles, ACrashAnywhereInAStepIsUndone) {
  fs::create_directories(file.parent_path());
  write_file_atomically(file, "before\n");
  perform(file_step());
  // As a crash after apply() and before the second entry, and as one before apply(), leave it.
  for (const char* content : {"ours\n", "before\n"}) {
    std::string journal = read_file(folder / "journal.json");
    const std::size_t after = journal.find("\"after\": {");
    if (after != std::string::npos) {
      const std::size_t end = journal.find('}', after);
      journal.replace(after, end - after + 1, "\"after\": null");
    }
    write_file_atomically(folder / "journal.json", journal, {.mode = 0600});
    write_file_atomically(file, content);
    ASSERT_EQ(Journal(folder).records().at(0).after.kind, Document::Kind::kNull);
    undo();
    EXPECT_EQ(text_of(file), "before\n");
    perform(file_step());
  }
}

TEST_F(JournalOfFiles, AFileThatSomebodyElseChangedIsNotDestroyed) {
  write_file_atomically(users, "one\n");
  perform(lines_step({"ours"}));
  perform(file_step());
  write_file_atomically(file, "theirs\n");
  try {
    undo();
    FAIL() << "must be a conflict";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kConflict);
    EXPECT_NE(error.message().find("ours.conf"), std::string::npos);
  }
  EXPECT_EQ(text_of(file), "theirs\n");
  EXPECT_EQ(text_of(users), "one\n") << "it does not keep the rest from being undone";
  EXPECT_EQ(Journal(folder).records().size(), 1U) << "still to be undone";
  Journal(folder).undo(0, UndoForce::kOverwrite);
  EXPECT_FALSE(fs::exists(file));
}

TEST_F(JournalOfFiles, LinesAreAddedAndTakenBackExactly) {
  write_file_atomically(users, "ssh-ed25519 AAAA1 me@home", {.mode = 0600});  // no line end
  EXPECT_FALSE(perform(lines_step({"ssh-ed25519 AAAA1 other comment"}))) << "the same key, whatever its comment";
  EXPECT_TRUE(perform(lines_step({"ssh-ed25519 AAAA1 x", "ssh-ed25519 AAAA2 yoke@spark-2"})));
  EXPECT_EQ(text_of(users), "ssh-ed25519 AAAA1 me@home\nssh-ed25519 AAAA2 yoke@spark-2\n");
  undo();
  EXPECT_EQ(text_of(users), "ssh-ed25519 AAAA1 me@home");
}

TEST_F(JournalOfFiles, LinesThatCameSinceStay) {
  write_file_atomically(users, "one\n");
  perform(lines_step({"ours"}));
  write_file_atomically(users, read_file(users) + "theirs\n");
  undo();
  EXPECT_EQ(text_of(users), "one\ntheirs\n");
}

TEST_F(JournalOfFiles, ForceTakesNoLinesOfOthers) {
  write_file_atomically(users, "one\n");
  perform(lines_step({"ours"}));
  write_file_atomically(users, read_file(users) + "theirs\n");
  Journal(folder).undo(0, UndoForce::kOverwrite);
  EXPECT_EQ(text_of(users), "one\ntheirs\n");
}

TEST_F(JournalOfFiles, UndoGoesBackToAMarkOnly) {
  perform(file_step("first\n"));
  const std::size_t mark = Journal(folder).records().size();
  perform(file_step("second\n"));
  Journal(folder).undo(mark);
  EXPECT_EQ(text_of(file), "first\n");
  EXPECT_EQ(Journal(folder).records().size(), mark);
}

TEST_F(JournalOfFiles, AKeyPairIsMadeOnceAndOnlyOursIsRemoved) {
  if (!is_installed("ssh-keygen")) GTEST_SKIP() << "ssh-keygen is not installed";
  const fs::path key = scratch.path() / ".ssh/id_ed25519";
  const Step step{
      .kind = StepKind::kKeyPair, .description = "a key", .path = key, .content = "yoke@spark-1", .mode = 0600};
  EXPECT_TRUE(perform(step));
  EXPECT_EQ(mode_of(key), 0600);
  EXPECT_NE(text_of(key.native() + ".pub").find("yoke@spark-1"), std::string::npos);
  EXPECT_FALSE(perform(step));
  undo();
  EXPECT_FALSE(fs::exists(key.parent_path()));
}

TEST_F(JournalOfFiles, AKeyThatTheUserPutInThePlaceOfOursIsNotRemoved) {
  if (!is_installed("ssh-keygen")) GTEST_SKIP() << "ssh-keygen is not installed";
  const fs::path key = scratch.path() / ".ssh/id_ed25519";
  const fs::path public_key = key.native() + ".pub";
  const Step step{
      .kind = StepKind::kKeyPair, .description = "a key", .path = key, .content = "yoke@spark-1", .mode = 0600};
  perform(step);
  for (const fs::path& half : {key, public_key}) {
    const std::string ours = text_of(half);
    write_file_atomically(half, "the user's own\n");
    EXPECT_ERROR(undo(), ErrorCode::kConflict, half.native() + " was changed by somebody else");
    EXPECT_EQ(text_of(half), "the user's own\n");
    EXPECT_TRUE(fs::exists(key) && fs::exists(public_key));
    write_file_atomically(half, ours);
  }
  fs::remove(key);
  fs::remove(public_key);
  undo();
  EXPECT_FALSE(fs::exists(key.parent_path()));
}

TEST(OwnedFile, WithoutReplacingLeavesWhatIsThere) {
  const ScratchDir scratch;
  const FileOwner us{static_cast<int>(getuid()), static_cast<int>(getgid())};
  const fs::path file = scratch.path() / "key";
  write_owned_file(file, "first\n", 0600, us, us, Existing::kStays);
  EXPECT_ERROR(write_owned_file(file, "second\n", 0600, us, us, Existing::kStays), ErrorCode::kConflict,
               "is there already");
  EXPECT_EQ(read_file(file), "first\n");
  EXPECT_EQ(std::distance(fs::directory_iterator(scratch.path()), fs::directory_iterator()), 1) << "nothing beside it";
}

TEST_F(JournalOfFiles, HalfOfAKeyPairIsTheUsersAndIsNotTouched) {
  if (!is_installed("ssh-keygen")) GTEST_SKIP() << "ssh-keygen is not installed";
  const fs::path key = scratch.path() / ".ssh/id_ed25519";
  const fs::path public_key = key.native() + ".pub";
  const Step step{
      .kind = StepKind::kKeyPair, .description = "a key", .path = key, .content = "yoke@spark-1", .mode = 0600};
  fs::create_directories(key.parent_path());
  for (const auto& [rail, other] : {std::pair{key, public_key}, std::pair{public_key, key}}) {
    write_file_atomically(rail, "of the user\n");
    EXPECT_ERROR(perform(step), ErrorCode::kConflict, "is there, but not " + other.native());
    undo();
    EXPECT_EQ(text_of(rail), "of the user\n");
    EXPECT_FALSE(fs::exists(other));
    fs::remove(rail);
  }
}

TEST_F(JournalOfFiles, ALineWithALineEndInItIsNotWritten) {
  const Step step{.kind = StepKind::kLines,
                  .description = "lines",
                  .path = scratch.path() / "known_hosts",
                  .lines = {"spark-2 ssh-ed25519 AAAA\n* ssh-ed25519 BBBB"},
                  .mode = 0600};
  EXPECT_ERROR(perform(step), ErrorCode::kInvalid, "is several");
  EXPECT_FALSE(fs::exists(scratch.path() / "known_hosts"));
}

TEST_F(JournalOfFiles, NothingDoneLeavesNothingBehind) {
  EXPECT_TRUE(Journal(folder).records().empty());
  undo();
  EXPECT_FALSE(fs::exists(scratch.path() / "var"));
}

TEST_F(JournalOfFiles, AJournalThatOthersCouldWriteIsNotFollowed) {
  perform(file_step());
  const fs::path journal = folder / "journal.json";
  fs::permissions(journal, fs::perms::others_write, fs::perm_options::add);
  EXPECT_ERROR(Journal{folder}, ErrorCode::kPermission, "is not a file that only this user can write");
  fs::rename(journal, folder / "elsewhere");
  fs::create_symlink("elsewhere", journal);
  EXPECT_ERROR(Journal{folder}, ErrorCode::kPermission, "is not a file that only this user can write");
  EXPECT_EQ(text_of(file), "ours\n");
}

TEST_F(JournalOfFiles, AJournalOfAnotherVersionIsNotGuessedAt) {
  fs::create_directories(folder);
  write_file_atomically(folder / "journal.json", R"({"version": 2})");
  EXPECT_ERROR(Journal{folder}, ErrorCode::kUnsupported, "was written by another version of yoke");
  EXPECT_TRUE(fs::exists(folder / "journal.json"));
}

}  // namespace
}  // namespace yoke::link

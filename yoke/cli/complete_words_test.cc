#include "yoke/cli/complete_words.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "yoke/base/files.h"
#include "yoke/cli/commands.h"

namespace yoke::cli {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::IsSupersetOf;
using testing::Not;

std::vector<std::string> words_after(const std::vector<std::string>& line) {
  std::vector<std::string> words;
  for (const Completion& one : complete_words(public_commands(), line).words) words.push_back(one.word);
  return words;
}

TEST(CompleteWords, GoesFromCommandToSubcommandToOption) {
  EXPECT_THAT(words_after({"vers"}), ElementsAre("version"));
  EXPECT_THAT(words_after({""}), IsSupersetOf({"lab", "link", "check", "run"}));
  EXPECT_THAT(words_after({"cluster", "sh"}), ElementsAre("show"));
  EXPECT_THAT(words_after({"cluster", "show", "--js"}), ElementsAre("--json"));
  EXPECT_THAT(words_after({"lab", "up", "--topology", ""}), ElementsAre("direct", "ring", "mesh", "switch"));
  EXPECT_THAT(words_after({"--vers"}), ElementsAre("--version"));
  EXPECT_THAT(words_after({""}), Not(Contains("agent"))) << "a hidden word";
}

TEST(CompleteWords, OffersTheNodesOfTheClusterFile) {
  const ScratchDir scratch;
  const std::string file = scratch.path() / "desk.yaml";
  write_file_atomically(
      file, "name: desk\nnodes:\n  - { name: left, address: 10.0.0.1 }\n  - { name: right, address: 10.0.0.2 }\n");
  EXPECT_THAT(words_after({"--cluster", file, "check", "--node", ""}), ElementsAre("left", "right"));
  EXPECT_THAT(words_after({"lab", "exec", "--cluster", file, "ri"}), ElementsAre("right"));
}

TEST(CompleteWords, OffersModelsAndFilesForAModel) {
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(YOKE_SOURCE_DIR);  // models/nano is here
  const Completions found = complete_words(public_commands(), {"run", "na"});
  std::filesystem::current_path(before);
  ASSERT_EQ(found.words.size(), 1U);
  EXPECT_EQ(found.words[0].word, "nano");
  EXPECT_TRUE(found.files);
}

TEST(CompleteWords, LeavesWhatFollowsTheDashesToTheShell) {
  EXPECT_TRUE(complete_words(public_commands(), {"job", "run", "--", "ho"}).programs);
}

}  // namespace
}  // namespace yoke::cli

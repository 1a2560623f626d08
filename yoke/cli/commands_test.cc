#include "yoke/cli/commands.h"

#include <gtest/gtest.h>

#include <set>

#include "yoke/cli/help_text.h"

namespace yoke::cli {
namespace {

TEST(Commands, EveryWordIsThereOnce) {
  std::set<std::string> words;
  for (const CommandRow& row : command_table()) {
    EXPECT_TRUE(words.insert(row.name).second) << row.name;
    EXPECT_FALSE(row.summary.empty()) << row.name;
    const bool hidden = row.visibility == Visibility::kHidden;
    EXPECT_EQ(hidden, static_cast<bool>(row.part)) << row.name << ": a hidden word is a part, and only it is";
  }
  EXPECT_TRUE(words.contains("rank"));
}

TEST(Commands, NoListShowsAHiddenWord) {
  const std::vector<CommandRow> shown = public_commands();
  const std::string man = man_page(shown);
  const std::string overview = overview_text(shown);
  EXPECT_NE(man.find("yoke bench"), std::string::npos);
  for (const CommandRow& row : command_table()) {
    if (row.visibility == Visibility::kPublic) continue;
    EXPECT_EQ(man.find(".SS yoke " + row.name + "\n"), std::string::npos) << row.name;
    EXPECT_EQ(overview.find("\n  " + row.name + " "), std::string::npos) << row.name;
  }
}

}  // namespace
}  // namespace yoke::cli

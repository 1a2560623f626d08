// The documents against the program and the tree: commands that they name exist, what they show is what is printed,
// links lead somewhere, and a word is explained once.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <regex>
#include <set>

#include "tests/program.h"
#include "yoke/base/files.h"
#include "yoke/base/text.h"

namespace yoke::tests {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

// The words under "Commands:" of a help text.
std::set<std::string> commands_in(const std::string& help) {
  std::set<std::string> commands;
  bool is_list = false;
  for (const std::string& line : split(help, '\n')) {
    if (line == "Commands:")
      is_list = true;
    else if (line.empty())
      is_list = false;
    else if (is_list && line.starts_with("  ") && line[2] != ' ')
      commands.insert(line.substr(2, line.find(' ', 2) - 2));
  }
  return commands;
}

// Every public command with its subcommands, as the help of the program lists them.
const std::map<std::string, std::set<std::string>>& public_commands() {
  static const auto kCommands = [] {
    std::map<std::string, std::set<std::string>> commands;
    for (const std::string& name : commands_in(run_yoke({"help"}).out))
      commands[name] = commands_in(run_yoke({"help", name}).out);
    return commands;
  }();
  return kCommands;
}

// The code of a Markdown text: fenced blocks, and what stands between backticks; one piece a line.
std::vector<std::string> code_in(const std::string& markdown) {
  std::vector<std::string> code;
  bool is_fenced = false;
  for (const std::string& line : split(markdown, '\n')) {
    if (line.starts_with("```")) {
      is_fenced = !is_fenced;
    } else if (is_fenced) {
      code.push_back(line);
    } else {
      const std::vector<std::string> parts = split(line, '`');
      for (std::size_t i = 1; i < parts.size(); i += 2) code.push_back(parts[i]);
    }
  }
  return code;
}

// "yoke link setup" gives {"link", "setup"}; the second is empty where no plain word follows.
std::vector<std::pair<std::string, std::string>> commands_named(const std::string& text) {
  static const std::regex kNamed(R"((?:^|[^\w./-]|/)yoke ([a-z][a-z-]*)(?: ([a-z][a-z-]*)(?![\w/.]))?)");
  std::vector<std::pair<std::string, std::string>> named;
  for (std::sregex_iterator match(text.begin(), text.end(), kNamed), end; match != end; ++match)
    named.emplace_back((*match)[1], (*match)[2]);
  return named;
}

TEST(Docs, MarkdownNamesOnlyCommandsThatExist) {
  const auto& commands = public_commands();
  ASSERT_TRUE(commands.contains("check") && commands.at("link").contains("setup")) << "the help was not understood";
  int found = 0;
  for (const char* file :
       {"README.md", "docs/facts.md", "docs/security.md", "docs/spark.md", "models/nano/README.md"}) {
    for (const std::string& code : code_in(read_file(kSourceFolder / file))) {
      for (const auto& [command, subcommand] : commands_named(code)) {
        ++found;
        const auto known = commands.find(command);
        ASSERT_NE(known, commands.end()) << file << ": there is no 'yoke " << command << "': " << code;
        EXPECT_TRUE(subcommand.empty() || known->second.empty() || known->second.contains(subcommand))
            << file << ": 'yoke " << command << "' has no '" << subcommand << "': " << code;
      }
    }
  }
  EXPECT_GT(found, 20);
}

// The facts are plain sentences, so what may follow the program's name in one is listed: anything else must be a
// command.
TEST(Docs, FactsOfTheShippedModelNameOnlyCommandsThatExist) {
  const std::set<std::string> plain = {"call",    "calls", "cannot",  "changes",  "come",    "command", "commands",
                                       "did",     "do",    "does",    "freely",   "have",    "has",     "is",
                                       "make",    "needs", "not",     "own",      "program", "reads",   "refuse",
                                       "refuses", "sends", "starts",  "sums",     "two",     "under",   "use",
                                       "uses",    "will",  "without", "generates"};
  const auto& commands = public_commands();
  std::size_t found = 0;
  for (const auto& entry : fs::directory_iterator(kSourceFolder / "tools/nano/facts")) {
    for (const auto& [word, next] : commands_named(read_file(entry.path()))) {
      found += commands.contains(word) ? 1 : 0;
      EXPECT_TRUE(commands.contains(word) || plain.contains(word))
          << entry.path().filename() << ": 'yoke " << word << "' is no command";
    }
  }
  EXPECT_GT(found, 20U);
}

TEST(Docs, TheCommandsOfATextAreFound) {
  EXPECT_EQ(commands_named("sudo build/yoke lab up; (yoke run models/nano)").at(0),
            (std::pair<std::string, std::string>{"lab", "up"}));
  EXPECT_EQ(commands_named("sudo build/yoke lab up; (yoke run models/nano)").at(1),
            (std::pair<std::string, std::string>{"run", ""}));
  EXPECT_TRUE(commands_named("yoke: rank 1 died; models/yoke.x; yoke 0.1.0").empty());
  EXPECT_EQ(code_in("a `yoke x` b `c`\n```\nyoke y\n```\nyoke z\n"),
            (std::vector<std::string>{"yoke x", "c", "yoke y"}));
}

TEST(Docs, TheGlossaryHasEachWordOnceAndInOrder) {
  std::vector<std::string> words;
  for (const std::string& line : split(read_file(kSourceFolder / "docs/glossary.md"), '\n')) {
    if (!line.starts_with("| ") || line.starts_with("| word |")) continue;
    std::string word(trim(split(line, '|')[1]));
    std::transform(word.begin(), word.end(), word.begin(), [](unsigned char c) { return std::tolower(c); });
    words.push_back(word);
  }
  EXPECT_GT(words.size(), 20U);
  EXPECT_TRUE(std::is_sorted(words.begin(), words.end()));
  const auto twice = std::adjacent_find(words.begin(), words.end());
  EXPECT_EQ(twice, words.end()) << *twice << " stands twice";
}

TEST(Docs, LinksLeadToFilesThatExist) {
  std::vector<fs::path> documents;
  for (const char* file : {"README.md", "CONTRIBUTING.md", "SECURITY.md"}) documents.push_back(kSourceFolder / file);
  for (const auto& entry : fs::recursive_directory_iterator(kSourceFolder / "docs"))
    if (entry.path().extension() == ".md") documents.push_back(entry.path());
  const std::regex link(R"(\]\(([^)#:]+)(#[^)]*)?\))");
  for (const fs::path& document : documents) {
    const std::string text = read_file(document);
    for (std::sregex_iterator match(text.begin(), text.end(), link), end; match != end; ++match) {
      EXPECT_TRUE(fs::exists(document.parent_path() / (*match)[1].str())) << document << ": " << (*match)[1];
    }
  }
}

// The fenced block that begins with `first`, without its fences.
std::string block_of(const std::string& markdown, const std::string& first) {
  const std::size_t at = markdown.find("```\n" + first);
  if (at == std::string::npos) return "";
  return markdown.substr(at + 4, markdown.find("\n```", at + 4) + 1 - (at + 4));
}

// scripts/try-bare-root plays the commands of this block, as they are printed.
TEST(Docs, ReadmeHasItsTwoCommandsInOneBlock) {
  const std::string readme = read_file(kSourceFolder / "README.md");
  const std::size_t at = readme.find("\n## Two commands\n");
  ASSERT_NE(at, std::string::npos);
  const std::string block = block_of(readme.substr(at), "make gameday");
  EXPECT_THAT(block, HasSubstr("\nmake test"));
}

TEST(Docs, ReadmeShowsAFindingAsTheProgramPrintsIt) {
  const std::string block = block_of(read_file(kSourceFolder / "README.md"), "$ yoke check --root ");
  ASSERT_FALSE(block.empty());
  const std::size_t end = block.find('\n');
  const Outcome outcome = run_yoke(split(block.substr(7, end - 7), ' '), {.folder = kSourceFolder});
  EXPECT_EQ(outcome.exit_status, 1) << outcome.err;
  EXPECT_EQ(block.substr(end + 1), outcome.out) << "README.md shows another output: paste the new one";
}

TEST(Docs, ThePictureOfGameDayIsRenderedFromItsCapture) {
  const fs::path pictures = kSourceFolder / "docs/pictures";
  const std::string readme = read_file(kSourceFolder / "README.md");
  if (!fs::exists(pictures / "gameday.txt")) {
    EXPECT_THAT(readme, HasSubstr("\n<!-- picture of a game day: scripts/render-gameday puts it here -->\n"));
    EXPECT_FALSE(fs::exists(pictures / "gameday.svg")) << "a picture that no game day made";
    return;
  }
  EXPECT_THAT(readme, HasSubstr("](docs/pictures/gameday.svg)\n"));
  const Outcome outcome =
      run({.argv = {kSourceFolder / "scripts/render-gameday", "--stdout", pictures / "gameday.txt"}});
  ASSERT_EQ(outcome.exit_status, 0) << outcome.err;
  EXPECT_EQ(outcome.out, read_file(pictures / "gameday.svg")) << "run scripts/render-gameday again";
}

}  // namespace
}  // namespace yoke::tests

// Style that matters, as a test: who includes whom (read from the table in docs/architecture.md), how long a file is,
// which calls are banned. The sources are those that git tracks or would track.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <regex>
#include <set>

#include "tests/program.h"
#include "yoke/base/files.h"
#include "yoke/base/process.h"
#include "yoke/base/text.h"

namespace yoke::tests {
namespace {

namespace fs = std::filesystem;

constexpr int kMaxLines = 500;  // aim under 300; a fixture or table may need more, 800 never

std::vector<std::string> source_files() {
  std::vector<std::string> files;
  for (const fs::path folder : {"yoke", "tests", "cmake"}) {
    for (const auto& entry : fs::recursive_directory_iterator(kSourceFolder / folder)) {
      const std::string extension = entry.path().extension();
      if (entry.is_regular_file() &&
          (extension == ".h" || extension == ".cc" || extension == ".cu" || extension == ".cuh")) {
        files.push_back(fs::relative(entry.path(), kSourceFolder));
      }
    }
  }
  return files;
}

// Code without comments and string literals, line by line, so that prose may name what code may not use.
std::vector<std::string> code_lines(const std::string& text) {
  std::string code;
  enum { kCode, kString, kChar, kLine, kBlock } state = kCode;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const std::string_view two = std::string_view(text).substr(i, 2);
    const char c = text[i];
    switch (state) {
      case kCode:
        if (two == "//")
          state = kLine;
        else if (two == "/*")
          state = kBlock;
        else if (c == '"')
          state = kString;
        else if (c == '\'' && !(i > 0 && std::isxdigit(static_cast<unsigned char>(text[i - 1]))))
          state = kChar;
        if (state == kCode || state == kString || state == kChar) code += c;
        break;
      case kString:
      case kChar:
        if (c == '\\')
          ++i;
        else if (c == (state == kString ? '"' : '\'')) {
          state = kCode;
          code += c;
        } else if (c == '\n') {
          state = kCode;
          code += c;
        }
        break;
      case kLine:
        if (c == '\n') {
          state = kCode;
          code += c;
        }
        break;
      case kBlock:
        if (c == '\n') code += c;
        if (two == "*/") {
          state = kCode;
          ++i;
        }
        break;
    }
  }
  return split(code, '\n');
}

// Rows of the table: | layer | `folder` | charter | may use | …
std::map<std::string, std::set<std::string>> allowed_includes() {
  std::map<std::string, std::set<std::string>> allowed;
  for (const std::string& line : split(read_file(kSourceFolder / "docs/architecture.md"), '\n')) {
    const std::vector<std::string> cells = split(line, '|');
    if (cells.size() < 6) continue;
    const std::string folder(trim(cells[2]));
    if (folder.size() < 3 || folder.front() != '`') continue;
    std::set<std::string>& uses = allowed[folder.substr(1, folder.size() - 2)];
    for (const std::string& used : split(cells[4], ',')) uses.emplace(trim(used));
  }
  return allowed;
}

TEST(Tidy, AFolderIncludesOnlyWhatTheArchitectureAllows) {
  const auto allowed = allowed_includes();
  ASSERT_TRUE(allowed.contains("base") && allowed.contains("cli")) << "the table in docs/architecture.md was not found";
  const std::regex include(R"re(#include "yoke/([a-z]+)/)re");
  for (const std::string& file : source_files()) {
    if (!file.starts_with("yoke/")) continue;
    const std::string folder = split(file, '/')[1];
    ASSERT_TRUE(allowed.contains(folder)) << folder << " has no row in docs/architecture.md";
    const std::set<std::string>& uses = allowed.at(folder);
    const std::string text = read_file(kSourceFolder / file);
    for (std::sregex_iterator match(text.begin(), text.end(), include), end; match != end; ++match) {
      const std::string used = (*match)[1];
      EXPECT_TRUE(used == folder || uses.contains(used) || uses.contains("all") || uses.contains("all of 0 to 5"))
          << file << " includes yoke/" << used << "/, which docs/architecture.md does not allow to " << folder;
    }
  }
}

// A family is a row of models/families.cc: what serves models knows outlines only.
TEST(Tidy, WhatServesModelsNamesNoFamily) {
  const std::regex included(R"re(#include "yoke/models/[a-z0-9_]+/)re");
  const std::regex named("llama|qwen|mistral|gemma|deepseek", std::regex::icase);
  const std::regex program("llama_?cpp", std::regex::icase);  // another server, which 'yoke launch' starts
  int looked_at = 0;
  for (const std::string& file : source_files()) {
    const std::string folder = file.starts_with("yoke/") ? split(file, '/')[1] : "";
    if ((folder != "engine" && folder != "serve" && folder != "chat" && folder != "cli") ||
        file.find("_test") != std::string::npos)
      continue;
    ++looked_at;
    const std::string text = read_file(kSourceFolder / file);
    EXPECT_FALSE(std::regex_search(text, included)) << file;
    for (const std::string& line : code_lines(text)) {
      EXPECT_FALSE(std::regex_search(std::regex_replace(line, program, ""), named)) << file << ": " << line;
    }
  }
  EXPECT_GT(looked_at, 50);
}

// A test, a fuzzer, a benchmark, or what they share (foo_testing.h).
bool is_for_tests(const std::string& file) {
  static const std::regex ending(R"re((_test|_testing|_fuzz|_bench)\.(h|cc)$)re");
  return file.starts_with("tests/") || std::regex_search(file, ending);
}

TEST(Tidy, ProductFilesIncludeNoTestSupport) {
  const std::regex support(R"re(#include ("yoke/[^"]*_testing\.h"|"tests/|<(gtest|gmock|rapidcheck)))re");
  for (const std::string& file : source_files()) {
    if (!file.starts_with("yoke/") || is_for_tests(file)) continue;
    std::smatch found;
    const std::string text = read_file(kSourceFolder / file);
    EXPECT_FALSE(std::regex_search(text, found, support)) << file << ": " << found.str();
  }
}

TEST(Tidy, EveryRowOfTheArchitectureHasItsFolder) {
  for (const auto& [folder, uses] : allowed_includes()) {
    EXPECT_TRUE(fs::is_directory(kSourceFolder / "yoke" / folder))
        << "docs/architecture.md has a row for " << folder << ", which does not exist: plans stand in docs/roadmap.md";
    for (const std::string& used : uses) {
      EXPECT_TRUE(used == "–" || used.starts_with("all") || fs::is_directory(kSourceFolder / "yoke" / used))
          << folder << " may use " << used << ", which does not exist";
    }
  }
}

TEST(Tidy, HeavyLibrariesStayInTheirFolder) {
  const std::map<std::string, std::vector<std::string>> homes = {
      {"nlohmann/json.hpp", {"yoke/base/"}},
      {"yaml-cpp/", {"yoke/base/"}},
      {"spdlog/", {"yoke/base/"}},
      {"sodium.h", {"yoke/base/"}},
      {"sqlite3.h", {"yoke/bench/"}},
      {"pcre2.h", {"yoke/base/"}},
      {"utf8proc.h", {"yoke/text/"}},
      {"CLI/", {"yoke/cli/"}},
      {"curses.h", {"yoke/watch/"}},
      // Not heavy, but each use is a way around a wrapper: libraries that are loaded, and the kernel's own tongue.
      {"dlfcn.h", {"yoke/base/", "yoke/comm/", "yoke/cuda/", "yoke/probe/"}},
      {"linux/rtnetlink.h", {"yoke/base/", "yoke/lab/", "yoke/probe/"}},
      {"linux/errqueue.h", {"yoke/cli/", "yoke/survey/"}},
  };
  std::set<std::string> used;
  for (const std::string& file : source_files()) {
    const bool is_header = file.ends_with(".h");
    const std::string text = read_file(kSourceFolder / file);
    for (const auto& [library, folders] : homes) {
      if (is_for_tests(file) || text.find("#include <" + library) == std::string::npos) continue;
      used.insert(library);
      const bool at_home =
          std::any_of(folders.begin(), folders.end(), [&](const std::string& home) { return file.starts_with(home); });
      EXPECT_TRUE(at_home && !is_header) << file << " includes " << library;
    }
  }
  EXPECT_EQ(used.size(), homes.size()) << "a library is listed that nobody includes";
}

TEST(Tidy, FilesAreShort) {
  for (const std::string& file : source_files()) {
    const std::string text = read_file(kSourceFolder / file);
    EXPECT_LE(std::count(text.begin(), text.end(), '\n'), kMaxLines) << file << ": split it";
  }
}

TEST(Tidy, LinesFitAndAreClean) {
  for (const std::string& file : source_files()) {
    int number = 0;
    for (const std::string& line : split(read_file(kSourceFolder / file), '\n')) {
      ++number;
      EXPECT_LE(count_columns(line), 120U) << file << ":" << number;
      EXPECT_EQ(line.find('\t'), std::string::npos) << file << ":" << number << ": a tab";
      EXPECT_TRUE(line.empty() || line.back() != ' ') << file << ":" << number << ": blanks at the end";
    }
  }
}

TEST(Tidy, NothingBannedIsCalled) {
  struct Ban {
    std::regex pattern;
    const char* why;
    bool headers_only;
  };
  const std::vector<Ban> bans = {
      {std::regex(R"((^|[^_\w.>:])(std::|::)?system\()"), "system(): run an argv with base/process.h", false},
      {std::regex(R"(\bpopen\()"), "popen(): run an argv with base/process.h", false},
      {std::regex(R"((^|[^_\w])s?rand\()"), "rand(): draw from base/rng.h", false},
      {std::regex(R"(\bnew\s+[A-Za-z_(])"), "a naked new: std::make_unique", false},
      {std::regex(R"(\bdelete\s+[A-Za-z_\[])"), "a naked delete: give it an owner", false},
      {std::regex(R"(\busing namespace\b)"), "using namespace in a header", true},
      {std::regex(R"(\bcatch \(\.\.\.\) \{\s*\})"), "an error swallowed without a word", false},
  };
  for (const std::string& file : source_files()) {
    int number = 0;
    for (const std::string& line : code_lines(read_file(kSourceFolder / file))) {
      ++number;
      for (const Ban& ban : bans) {
        if (ban.headers_only && !file.ends_with(".h")) continue;
        EXPECT_FALSE(std::regex_search(line, ban.pattern)) << file << ":" << number << ": " << ban.why;
      }
    }
  }
}

// Any other failure on the way is an Error too: a test names the code and words of the one it means.
TEST(Tidy, ErrorsAreExpectedByCodeAndWords) {
  const std::regex any_code(R"(_THROW\([^;]*,\s*(yoke::)?Error\))");
  for (const std::string& file : source_files()) {
    std::string code;
    for (const std::string& line : code_lines(read_file(kSourceFolder / file))) code += line + "\n";
    EXPECT_FALSE(std::regex_search(code, any_code)) << file << ": EXPECT_ERROR of yoke/base/error_testing.h";
  }
}

// make_folder() of base/files.h gives a folder its mode whatever the umask is, and looks at its owner.
TEST(Tidy, FoldersAreMadeInOnePlace) {
  const std::regex makes(R"(\b(mkdir|mkdirat|create_director(y|ies))\()");
  for (const std::string& file : source_files()) {
    const std::string name = fs::path(file).filename();
    const bool is_test = name.ends_with("_test.cc") || name.find("_testing.") != std::string::npos;
    if (!file.starts_with("yoke/") || is_test) continue;
    int calls = 0;
    for (const std::string& line : code_lines(read_file(kSourceFolder / file)))
      calls += std::regex_search(line, makes) ? 1 : 0;
    EXPECT_EQ(calls, file == "yoke/base/files.cc" ? 1 : 0) << file << ": make_folder() of base/files.h";
  }
}

// run() and Process of base/process.h, run_at_terminal.h, fork_call.h and file_lock.h are for everybody.
TEST(Tidy, ProcessesAreStartedAndFilesLockedInOnePlace) {
  struct Owner {
    const char* file;
    const char* call;
    const char* why;
  };
  const std::vector<Owner> owners = {
      {"yoke/base/process_start.cc", "fork", "starts every other program"},
      {"yoke/base/fork_call.cc", "fork", "runs a function in a process of its own"},
      {"yoke/base/file_lock.cc", "flock", "locks every file"},
      {"yoke/base/scratch_dir.cc", "flock",
       "a scratch folder must never be followed through a link, and works on file "
       "systems without locks"},
  };
  const std::regex calls(R"((?:^|[^\w.>])(?:::)?(fork|vfork|forkpty|posix_spawnp?|clone3?|flock|lockf)\()");
  std::set<std::string> found;
  for (const std::string& file : source_files()) {
    if (is_for_tests(file)) continue;
    for (const std::string& line : code_lines(read_file(kSourceFolder / file))) {
      for (std::sregex_iterator call(line.begin(), line.end(), calls), end; call != end; ++call) {
        const bool owned = std::ranges::any_of(
            owners, [&](const Owner& owner) { return file == owner.file && (*call)[1] == owner.call; });
        EXPECT_TRUE(owned) << file << ": " << line
                           << ": use base/process.h, run_at_terminal.h, fork_call.h or file_lock.h";
        found.insert(file + " " + (*call)[1].str());
      }
    }
  }
  for (const Owner& owner : owners) {
    EXPECT_TRUE(found.contains(std::string(owner.file) + " " + owner.call))
        << owner.file << " calls no " << owner.call << "(): " << owner.why << " elsewhere?";
  }
}

TEST(Tidy, HeadersStartWithAPragmaAndSayWhatTheyAre) {
  for (const std::string& file : source_files()) {
    if (!file.ends_with(".h") || file.starts_with("cmake/")) continue;
    const std::string text = read_file(kSourceFolder / file);
    EXPECT_TRUE(text.starts_with("//")) << file << ": a header opens with what it is";
    EXPECT_NE(text.find("#pragma once"), std::string::npos) << file;
  }
}

TEST(Tidy, TheCheckersThemselvesCanFail) {
  const std::vector<std::string> code =
      code_lines("a; // system(\"x\")\nf(\"system(\"); system(x);\n/* new\nint */ b;\n");
  EXPECT_EQ(code[0], "a; ");
  EXPECT_EQ(code[1], "f(\"\"); system(x);");
  EXPECT_EQ(code[2], "");
  EXPECT_EQ(code[3], " b;");
}

TEST(Tidy, DocumentsSpeakOfTheProjectAlone) {
  std::vector<fs::path> documents = {kSourceFolder / "README.md", kSourceFolder / "CONTRIBUTING.md",
                                     kSourceFolder / "CHANGELOG.md"};
  for (const auto& entry : fs::recursive_directory_iterator(kSourceFolder / "docs")) documents.push_back(entry.path());
  const std::regex foreign(R"((^|[^\w.])/(work|root|home/[a-z]+)/|\bissue [0-9]+\b|this session|this workplace)");
  for (const fs::path& document : documents) {
    if (document.extension() != ".md") continue;
    int number = 0;
    for (const std::string& line : split(read_file(document), '\n')) {
      ++number;
      EXPECT_FALSE(std::regex_search(line, foreign)) << document << ":" << number << ": " << line;
    }
  }
}

}  // namespace
}  // namespace yoke::tests

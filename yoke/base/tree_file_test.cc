#include "yoke/base/tree_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "tests/tree_differences.h"
#include "yoke/base/error.h"
#include "yoke/base/error_testing.h"
#include "yoke/base/files.h"
#include "yoke/base/text.h"

namespace yoke {
namespace {

namespace fs = std::filesystem;
using Kind = MemoryTree::Entry::Kind;

std::string no_include(std::string_view path) {
  throw Error(ErrorCode::kNotFound, fmt::format("there is no file '{}'", path));
}

MemoryTree parse(std::string_view text) { return parse_tree(text, "a.tree", no_include); }

// "a.tree:2: what | hint", or "" where there is no error.
std::string tree_error(std::string_view text, const ReadInclude& read_include = no_include) {
  try {
    parse_tree(text, "a.tree", read_include);
    return "";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalid);
    return error.message() + (error.hint().empty() ? "" : " | " + error.hint());
  }
}

using Strings = std::vector<std::string>;

TEST(TreeFile, ReadsFilesAndLinks) {
  const MemoryTree tree = parse(
      "# a machine\n"
      "/sys/a/vendor =   0x15b3  \n"
      "/sys/class/a -> ../a\n"
      "\n"
      "/etc/empty : \"\"\n"
      "/etc/exact : \"a\\tb\\\\\\\"\\x00\\xff\"\n"
      "/sys/none =\n");
  EXPECT_EQ(tree.read("/sys/a/vendor"), "0x15b3\n");
  EXPECT_EQ(tree.read("/sys/class/a/vendor"), "0x15b3\n");
  EXPECT_EQ(tree.link("/sys/class/a"), "../a");
  EXPECT_EQ(tree.read("/etc/empty"), "");
  EXPECT_EQ(tree.read("/etc/exact"), std::string("a\tb\\\"\0\xff", 7));
  EXPECT_EQ(tree.read("/sys/none"), "\n");
  EXPECT_EQ(tree.entries().size(), 5U);
}

TEST(TreeFile, ABlockTakesTheIndentedLinesAndTheEmptyOnesBetween) {
  const MemoryTree tree = parse(
      "/a <<\n"
      "  one\n"
      "\n"
      "    two\n"
      "\n"
      "\n"
      "/b <<\n"
      "\n"
      "  x\n"
      "  \n"
      "/c <<\n"
      "  last");
  EXPECT_EQ(tree.read("/a"), "one\n\n  two\n");
  EXPECT_EQ(tree.read("/b"), "\nx\n\n");
  EXPECT_EQ(tree.read("/c"), "last\n");
}

TEST(TreeFile, ARelativeFolderLiesInTheLastAbsoluteOne) {
  const MemoryTree tree = parse(
      "top = 0\n"
      "in /d/0000:01:00.0\n"
      "vendor = 1\n"
      "in net/eth0\n"
      "speed = 2\n"
      "in infiniband/mlx5_0\n"
      "ports/1/state = 3\n"
      "/abs = 4\n"
      "in /\n"
      "root = 5\n");
  Strings paths;
  for (const auto& [path, entry] : tree.entries()) paths.push_back(path + "=" + std::string(trim(entry.content)));
  EXPECT_EQ(paths, (Strings{"/abs=4", "/d/0000:01:00.0/infiniband/mlx5_0/ports/1/state=3",
                            "/d/0000:01:00.0/net/eth0/speed=2", "/d/0000:01:00.0/vendor=1", "/root=5", "/top=0"}));
}

TEST(TreeFile, AnIncludeBeginsInTheFolderInForceAndDoesNotLeak) {
  const std::map<std::string, std::string, std::less<>> files = {
      {"parts/nic.tree", "vendor = 1\nin net\nspeed = 2\ninclude sub/more.tree\n"},
      {"parts/sub/more.tree", "more = 3\n"},
  };
  const MemoryTree tree =
      parse_tree("in /a\ninclude ../parts/nic.tree\nmine = 4\nin /b\ninclude ../parts/nic.tree\nvendor = 5\n",
                 "machine/m.tree", [&](std::string_view path) {
                   const auto file = files.find(path);
                   if (file == files.end()) return no_include(path);
                   return file->second;
                 });
  EXPECT_EQ(tree.read("/a/mine"), "4\n");
  EXPECT_EQ(tree.read("/a/net/more"), "3\n");
  EXPECT_EQ(tree.read("/b/net/speed"), "2\n");
  EXPECT_EQ(tree.read("/b/vendor"), "5\n") << "a later line replaces what an included file said";
}

TEST(TreeFile, RemovesAndMovesWithEverythingBelow) {
  const MemoryTree tree = parse(
      "/a/b = 1\n/a/c/d = 2\n/ab = 3\n/x/y -> ../a\n"
      "- /a/c\n"
      "move /x to /z/w\n"
      "move /ab to /a/c\n"
      "/ab = 4\n");
  EXPECT_EQ(tree.read("/z/w/y"), std::nullopt);
  EXPECT_EQ(tree.link("/z/w/y"), "../a");
  EXPECT_EQ(tree.read("/a/b"), "1\n");
  EXPECT_EQ(tree.read("/a/c"), "3\n");
  EXPECT_EQ(tree.read("/ab"), "4\n");
  EXPECT_EQ(tree.entries().size(), 4U);
}

TEST(TreeFile, WordsOfTheFormatAreNamesInQuotes) {
  const MemoryTree tree = parse("\"in\" = 1\n\"/a b/#\" -> \"in\"\n\"-\" = 2\n/a/in = 3\n");
  EXPECT_EQ(tree.read("/in"), "1\n");
  EXPECT_EQ(tree.link("/a b/#"), "in");
  EXPECT_EQ(tree.read("/-"), "2\n");
  EXPECT_EQ(tree.read("/a/in"), "3\n");
}

TEST(TreeFile, ReportsTheLineOfABadInput) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"\n/a\n", "a.tree:2: '=', '<<', ':' or '->' is missing at the end of the line"},
      {"/a b = 1\n", "a.tree:1: there is 'b = 1' after the name"},
      {"#\n#\n  x\n", "a.tree:3: this indented line belongs to no '<<'"},
      {"/a <<\nx = 1\n", "a.tree:1: no indented line follows"},
      {"/a <<\n  1\n\n\n/a = 2\n", "a.tree:5: '/a' is set twice, first in line 1"},
      {"/a/b = 1\n/a = 2\n", "a.tree:2: '/a' is a folder already | remove it first"},
      {"/a = 1\n/a/b/c = 2\n", "a.tree:2: '/a' is a file, so nothing can lie below it"},
      {"/a -> b\n/a/c = 2\n", "a.tree:2: '/a' is a link, so nothing can lie below it | write it where the link leads"},
      {"/a/../b = 1\n", "a.tree:1: '/a/../b': a path cannot hold '..'"},
      {"/ = 1\n", "a.tree:1: '/': the root is a folder"},
      {"\"/a\\x00\" = 1\n", "a path cannot hold a NUL"},
      {"/" + std::string(256, 'n') + " = 1\n", "a name in the path is too long"},
      {"in /" + std::string(1000, '/') + std::string(200, 'x') + "\nin " + std::string(200, 'y') + "\n", ""},
      {"\n- /a\n", "a.tree:2: there is no '/a' to remove"},
      {"/a = 1\nmove /b to /c\n", "a.tree:2: there is no '/b' to move"},
      {"/a = 1\nmove /a into /c\n", "a.tree:2: there must be 'to' after the first path"},
      {"/a/b = 1\nmove /a to /a/b\n", "a.tree:2: a folder cannot be moved into itself"},
      {"/a = 1\n/b/c = 1\nmove /a to /b\n", "a.tree:3: there is a '/b' already"},
      {"/a : x\n", "a.tree:1: the content after ':' stands in quotes"},
      {"/a : \"x\n", "a.tree:1: a quoted text does not end"},
      {"/a : \"x\"y\n", "a.tree:1: a quoted text does not end"},
      {"/a : \"\\q\"\n", "a.tree:1: there is a '\\' that means nothing"},
      {"/a : \"\\x4\"\n", "a.tree:1: there is a '\\' that means nothing"},
      {"/a : \"\" # no\n", "a.tree:1: there is more than was expected: '# no'"},
      {"/a -> \"\"\n", "a.tree:1: a link needs a target"},
      {"/a -> b c\n", "a.tree:1: there is more than was expected: 'c'"},
      {"/a = 1\n\n/b = \xff\n", "a.tree:3: this is not UTF-8"},
      {"/a = 1\r\n", "a.tree:1: there is a control character (0x0d)"},
      {"in\n", "a.tree:1: a folder is missing at the end of the line"},
      {"\ninclude b.tree\n", "a.tree:2: cannot include 'b.tree': there is no file 'b.tree'"},
      {"include /etc/passwd\n", "a.tree:1: a file is included by its path relative to this one"},
      {"include x/../a.tree\n", "a.tree:1: 'a.tree' includes itself"},
  };
  for (const auto& [text, expected] : cases) {
    const std::string error = tree_error(text);
    if (expected.empty()) {
      EXPECT_EQ(error, "") << text;
    } else {
      EXPECT_NE(error.find(expected), std::string::npos) << printable(text) << "\nsaid: " << error;
    }
  }
}

TEST(TreeFile, IncludesThatNeverEndAreRefused) {
  EXPECT_EQ(tree_error("include b.tree\n",
                       [](std::string_view path) -> std::string {
                         return path == "b.tree" ? "\ninclude c.tree\n" : "include b.tree\n";
                       }),
            "c.tree:1: 'b.tree' includes itself");
  EXPECT_EQ(tree_error("include x.tree\n", [](std::string_view path) { return fmt::format("include x{}\n", path); }),
            "xxxxxxx.tree:1: includes are nested too deep");
  EXPECT_EQ(tree_error("include b.tree\n", nullptr), "a.tree:1: nothing can be included here");
}

TEST(TreeFile, WhatIsAbsurdlyLargeIsRefused) {
  const std::string megabytes(9 << 20, '#');
  std::string text;
  for (int i = 0; i < 8; ++i) text += "include b.tree\n";
  EXPECT_EQ(tree_error(text, [&](std::string_view) { return megabytes; }),
            "b.tree:1: the text is too long, with what it includes");
  text = "in /f\n";
  for (std::size_t i = 0; i <= TreeFileLimits::kMaxEntries; ++i) text += fmt::format("{} = 1\n", i);
  EXPECT_EQ(tree_error(text), fmt::format("a.tree:{}: there are too many files", TreeFileLimits::kMaxEntries + 2));
}

TEST(TreeFile, PrintsFolderByFolder) {
  MemoryTree tree;
  tree.add_file("/sys/a/vendor", "0x15b3\n");
  tree.add_link("/sys/a/driver", "../x y");
  tree.add_file("/sys/a/in", "");
  tree.add_file("/top", "1\n\n2\n\n");
  tree.add_file("/blank", " 1\n");
  EXPECT_EQ(print_tree(tree),
            "in /\n"
            "blank <<\n"
            "   1\n"
            "\n"
            "in /sys/a\n"
            "driver -> \"../x y\"\n"
            "\"in\" : \"\"\n"
            "vendor = 0x15b3\n"
            "\n"
            "in /\n"
            "top <<\n"
            "  1\n"
            "\n"
            "  2\n"
            "  \n");
}

TEST(TreeFile, WhatIsPrintedParsesToTheSame) {
  const Strings names = {"a",  "b", "in",   "include", "move", "-", "#c",  "d e",   "\"",
                         "\\", "é", "\xff", "f\tg",    "h\ni", "=", "..x", "\"j\"", "->"};
  const Strings pieces = {"", "x", " ", "\t", "\n", "\n\n", "  y", "\"", "\\", "é", "\xff", std::string("\0", 1), "\r"};
  const auto text = rc::gen::map(rc::gen::container<Strings>(rc::gen::elementOf(pieces)),
                                 [](const Strings& some) { return fmt::format("{}", fmt::join(some, "")); });
  EXPECT_TRUE(rc::check("print and parse", [&] {
    MemoryTree tree;
    for (int count = *rc::gen::inRange(0, 12); count > 0; --count) {
      std::string path;
      for (int depth = *rc::gen::inRange(1, 4); depth > 0; --depth) path += "/" + *rc::gen::elementOf(names);
      const auto clashes = [&](const auto& entry) {
        return entry.first != path && (entry.first.starts_with(path + "/") || path.starts_with(entry.first + "/"));
      };
      if (std::any_of(tree.entries().begin(), tree.entries().end(), clashes)) continue;
      if (*rc::gen::inRange(0, 4) == 0) {
        tree.add_link(path, *rc::gen::elementOf(names) + "/" + *rc::gen::elementOf(names));
      } else {
        tree.add_file(path, *text);
      }
    }
    const std::string printed = print_tree(tree);
    RC_LOG() << printed;
    RC_ASSERT(tests::differences(tree, parse(printed)) == Strings{});
  }));
}

TEST(TreeFile, RefusesToPrintWhatNoDiskCouldHold) {
  MemoryTree below_a_file;
  below_a_file.add_file("/a", "1\n");
  below_a_file.add_file("/a/b", "2\n");
  EXPECT_ERROR(print_tree(below_a_file), ErrorCode::kInvalid, "'/a' is a file, so nothing can lie below it");
  MemoryTree upwards;
  upwards.add_file("/a/../../b", "1\n");
  EXPECT_ERROR(print_tree(upwards), ErrorCode::kInvalid, "a path cannot hold '..'");
  MemoryTree targetless;
  targetless.add_link("/a", "");
  EXPECT_ERROR(print_tree(targetless), ErrorCode::kInvalid, "a link needs a target");
}

TEST(TreeFile, WritesFilesAndLinksThatStayInTheFolder) {
  const ScratchDir scratch("tree-file");
  const MemoryTree tree = parse(
      "/sys/devices/a/vendor = 1\n/sys/class/a -> ../devices/a\n/sys/all -> /sys/devices\n/root -> /\n"
      "/self -> .\n/dangling -> nowhere/x\n/etc/b : \"\\x00\"\n");
  const fs::path folder = scratch.path() / "deep" / "root";
  write_tree(tree, folder);
  EXPECT_EQ(read_file(folder / "sys/class/a/vendor"), "1\n");
  EXPECT_EQ(fs::read_symlink(folder / "sys/class/a"), "../devices/a");
  EXPECT_EQ(fs::read_symlink(folder / "sys/all"), "../sys/devices") << "an absolute link is written as a relative one";
  EXPECT_EQ(fs::canonical(folder / "root"), fs::canonical(folder));
  EXPECT_EQ(read_file(folder / "sys/all/a/vendor"), "1\n");
  const DiskTree disk(folder);
  for (const auto& [path, entry] : tree.entries()) {
    EXPECT_EQ(disk.read(path), tree.read(path)) << path;
    EXPECT_EQ(disk.resolve(path), tree.resolve(path)) << path;
  }
  EXPECT_ERROR(write_tree(tree, folder), ErrorCode::kConflict, "is not empty") << "a folder that is not empty";
}

TEST(TreeFile, RefusesToWriteLinksThatCouldLeadOut) {
  for (const char* target : {"..", "../..", "../../etc", "x/..", "x/../../../y", "./../..", "/a/../../.."}) {
    const ScratchDir scratch("tree-file");
    MemoryTree tree;
    tree.add_file("/a", "1\n");
    tree.add_link(std::string_view(target) == ".." ? "/l" : "/d/l", target);
    EXPECT_ERROR(write_tree(tree, scratch.path() / "root"), ErrorCode::kInvalid, "could lead out of the tree")
        << target;
    EXPECT_FALSE(fs::exists(scratch.path() / "root")) << "nothing is written before all is known to be right";
  }
}

TEST(TreeFile, ACaptureIncludesOnlyWhatLiesInItsFolder) {
  const ScratchDir scratch;
  const auto error_with = [&](const std::string& text) -> std::string {
    write_file_atomically(scratch.path() / "c/machine.tree", text);
    try {
      load_tree(scratch.path() / "c/machine.tree");
      return "";
    } catch (const Error& error) {
      return error.message();
    }
  };
  fs::create_directories(scratch.path() / "c/parts");
  write_file_atomically(scratch.path() / "c/parts/nic.tree", "/a = 1\n");
  write_file_atomically(scratch.path() / "secret", "/a = 1\n");
  fs::create_symlink(scratch.path() / "secret", scratch.path() / "c/link");
  EXPECT_EQ(error_with("include parts/nic.tree\n"), "");
  EXPECT_EQ(error_with("include parts/../parts/nic.tree\n"), "");
  for (const char* outside : {"../secret", "parts/../../secret", "link", "../../../../../../etc/passwd"}) {
    EXPECT_NE(error_with(fmt::format("include {}\n", outside)).find("outside of the capture's folder"),
              std::string::npos)
        << outside;
  }
}

TEST(TreeFile, IncludesHaveALimitOfNumber) {
  const auto includes = [](std::size_t count) {
    std::string text;
    for (std::size_t i = 0; i < count; ++i) text += "include b.tree\n";
    return text;
  };
  const ReadInclude nothing = [](std::string_view) -> std::string { return "\n"; };
  EXPECT_EQ(tree_error(includes(TreeFileLimits::kMaxIncludes), nothing), "");
  EXPECT_EQ(tree_error(includes(TreeFileLimits::kMaxIncludes + 1), nothing),
            "a.tree:10001: more than 10000 files are included");
}

}  // namespace
}  // namespace yoke

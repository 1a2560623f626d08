// yoke is one file: only glibc is needed where it runs.
#include <gtest/gtest.h>
#include <unistd.h>

#include <regex>
#include <set>

#include "tests/program.h"
#include "yoke/base/build_info.h"
#include "yoke/base/text.h"

namespace yoke::tests {
namespace {

namespace fs = std::filesystem;

bool is_one_file() { return build_info().sanitizers.empty(); }

TEST(OneFile, NeedsOnlyGlibcsLibraries) {
  if (!is_one_file()) GTEST_SKIP() << "a sanitized build links the sanitizers' shared libraries";
  const Outcome outcome = run({.argv = {"objdump", "-p", YOKE_PROGRAM}});
  ASSERT_TRUE(outcome.ok()) << outcome.describe();
  const std::set<std::string> allowed = {"libc.so.6", "libm.so.6", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"};
  int needed = 0;
  const std::regex line(R"(NEEDED\s+(\S+))");
  for (std::sregex_iterator match(outcome.out.begin(), outcome.out.end(), line), end; match != end; ++match, ++needed) {
    EXPECT_TRUE(allowed.contains((*match)[1])) << (*match)[1];
  }
  EXPECT_GE(needed, 1);
}

TEST(OneFile, ShowsNothingElseInLdd) {
  if (!is_one_file()) GTEST_SKIP() << "a sanitized build is not one file";
  const Outcome outcome = run({.argv = {"ldd", YOKE_PROGRAM}});
  ASSERT_TRUE(outcome.ok()) << outcome.describe();
  for (const std::string& line : split(std::string(trim(outcome.out)), '\n')) {
    EXPECT_TRUE(std::regex_search(line, std::regex(R"(linux-vdso|/libc\.so|/libm\.so|/ld-linux)"))) << line;
  }
}

// The oldest glibc that has all the symbols we use must be Debian 12's 2.36 or older.
TEST(OneFile, RunsWithTheGlibcOfDebian12) {
  const Outcome outcome = run({.argv = {"objdump", "-T", YOKE_PROGRAM}});
  ASSERT_TRUE(outcome.ok()) << outcome.describe();
  const std::regex version(R"(GLIBC_2\.(\d+))");
  int newest = 0;
  for (std::sregex_iterator match(outcome.out.begin(), outcome.out.end(), version), end; match != end; ++match) {
    newest = std::max(newest, std::stoi((*match)[1]));
  }
  EXPECT_GT(newest, 0);
  EXPECT_LE(newest, 36);
}

// A root that holds glibc's libraries, the program, and not a single other file.
TEST(OneFile, RunsInARootThatHoldsNothingButGlibc) {
  if (!is_one_file()) GTEST_SKIP() << "a sanitized build is not one file";
  if (geteuid() != 0) GTEST_SKIP() << "chroot needs root";
  const ScratchDir scratch;
  fs::copy_file(YOKE_PROGRAM, scratch.path() / "yoke");
  const Outcome libraries = run({.argv = {"ldd", YOKE_PROGRAM}});
  const std::regex path(R"((/\S+\.so\S*) \()");
  for (std::sregex_iterator match(libraries.out.begin(), libraries.out.end(), path), end; match != end; ++match) {
    const fs::path library = (*match)[1].str();
    fs::create_directories(scratch.path() / library.parent_path().relative_path());
    fs::copy_file(library, scratch.path() / library.relative_path(), fs::copy_options::overwrite_existing);
  }
  const Outcome outcome = run({.argv = {"chroot", scratch.path(), "/yoke", "version"}});
  EXPECT_TRUE(outcome.ok()) << outcome.err;
  EXPECT_TRUE(outcome.out.starts_with("yoke "));
}

}  // namespace
}  // namespace yoke::tests

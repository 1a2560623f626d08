// The list of tests that may be skipped (tests/skips.txt), and the script that fails a run for any other.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <regex>

#include "tests/program.h"
#include "yoke/base/files.h"
#include "yoke/base/text.h"

namespace yoke::tests {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

Outcome check_skips(const std::string& skipped, std::vector<std::string> where) {
  const ScratchDir scratch;
  write_file_atomically(scratch.path() / "skipped.txt", skipped);
  where.insert(where.begin(), {kSourceFolder / "scripts/check-skips", scratch.path() / "skipped.txt"});
  return run({.argv = std::move(where)});
}

TEST(Skips, ThatAreNotAllowedHereFailTheRun) {
  const std::string gpu = "  CudaDriverTest.NamesItsDevices: the CUDA driver cannot be loaded: libcuda.so.1: none\n";
  EXPECT_EQ(check_skips("", {"root", "no-gpu"}).exit_status, 0);
  EXPECT_EQ(check_skips(gpu, {"root", "no-gpu"}).exit_status, 0);
  const Outcome with_a_gpu = check_skips(gpu, {"root", "gpu"});
  EXPECT_EQ(with_a_gpu.exit_status, 1);
  EXPECT_THAT(with_a_gpu.out, HasSubstr("skipped without leave (tests/skips.txt): CudaDriverTest.NamesItsDevices"));
  EXPECT_EQ(check_skips("  CudaDriverTest.NamesItsDevices: not today\n", {"root", "no-gpu"}).exit_status, 1);
  EXPECT_EQ(check_skips("  Check.Rules: the CUDA driver cannot be loaded: none\n", {"root", "no-gpu"}).exit_status, 1);
  EXPECT_EQ(check_skips("  Lab.StartsUp: a lab needs root\n", {"root"}).exit_status, 1);
  EXPECT_EQ(check_skips("  Lab.StartsUp: a lab needs root\n", {"no-root"}).exit_status, 0);
}

// "Suite.Name" of every test in the sources; of one with parameters as gtest would print it.
std::vector<std::string> test_names() {
  static const std::regex test(R"(\n(TEST|TEST_F|TEST_P|RC_GTEST_PROP)\((\w+),\s*(\w+))");
  std::vector<std::string> names;
  for (const char* folder : {"yoke", "tests"}) {
    for (const auto& entry : fs::recursive_directory_iterator(kSourceFolder / folder)) {
      if (!entry.path().native().ends_with("_test.cc")) continue;
      const std::string text = read_file(entry.path());
      for (std::sregex_iterator match(text.begin(), text.end(), test), end; match != end; ++match) {
        const std::string name = (*match)[2].str() + "." + (*match)[3].str();
        names.push_back((*match)[1] == "TEST_P" ? "Of/" + name + "/One" : name);
      }
    }
  }
  return names;
}

TEST(Skips, AreListedForTestsThatExist) {
  const std::vector<std::string> names = test_names();
  ASSERT_GT(names.size(), 1000U);
  for (const std::string& line : split(read_file(kSourceFolder / "tests/skips.txt"), '\n')) {
    if (line.empty() || line.front() == '#') continue;
    std::smatch row;
    ASSERT_TRUE(std::regex_match(line, row, std::regex(R"((\S+) +\| +(\S+) +\| +(.+))"))) << line;
    const std::regex tests(row[2].str(), std::regex::extended);
    EXPECT_TRUE(
        std::any_of(names.begin(), names.end(), [&](const std::string& name) { return std::regex_match(name, tests); }))
        << line << ": there is no such test";
  }
}

}  // namespace
}  // namespace yoke::tests

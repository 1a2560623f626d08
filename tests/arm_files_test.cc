// What is compiled on 64-bit Arm alone (a DGX Spark) is seen by nobody who builds elsewhere: the cross compiler looks
// at it here, without the rest of the program.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/lab_fixture.h"
#include "tests/program.h"
#include "yoke/base/files.h"
#include "yoke/base/process.h"

namespace yoke::tests {
namespace {

namespace fs = std::filesystem;

TEST(ArmFiles, AreCompiledByTheCrossCompiler) {
  constexpr const char* kCompiler = "aarch64-linux-gnu-g++";
  if (!find_program(kCompiler)) GTEST_SKIP() << kCompiler << " is not installed";
  std::vector<std::string> argv = {kCompiler, "-std=c++20", "-fsyntax-only", "-I.", "-idirafter", "/usr/include"};
  const std::size_t options = argv.size();
  for (const auto& entry : fs::recursive_directory_iterator(kSourceFolder / "yoke")) {
    if (entry.path().extension() != ".cc") continue;
    if (read_file(entry.path()).find("__aarch64__") != std::string::npos) argv.push_back(entry.path());
  }
  ASSERT_GE(argv.size(), options + 4) << "neon.cc, neon_matrix.cc, instructions.cc, thread_pool.cc";
  const Outcome outcome = run({.argv = argv, .folder = kSourceFolder, .timeout = Seconds{120}});
  EXPECT_EQ(outcome.exit_status, 0) << outcome.err;
}

}  // namespace
}  // namespace yoke::tests

// `make install`: what scripts/install puts under a prefix works there, away from the sources.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/program.h"
#include "yoke/base/files.h"

namespace yoke {
namespace {

namespace fs = std::filesystem;
using namespace literals;
using testing::HasSubstr;

TEST(Install, PutsAProgramManualCompletionAndAWholeModelUnderThePrefix) {
  const ScratchDir scratch;
  const fs::path prefix = scratch.path() / "usr";
  fs::create_directory(prefix);
  const Outcome installed = run({.argv = {"scripts/install", prefix}, .folder = kSourceFolder, .timeout = 60_s});
  ASSERT_TRUE(installed.ok()) << installed.describe() << installed.err;
  const std::string program = prefix / "bin/yoke";
  EXPECT_TRUE(run({.argv = {program, "version"}}).ok());
  EXPECT_THAT(read_file(prefix / "share/man/man1/yoke.1"), HasSubstr("EXIT STATUS"));
  EXPECT_THAT(read_file(prefix / "share/bash-completion/completions/yoke"), HasSubstr("complete "));
  // A file that the model lacks would be missed here: weights, tokenizer, chat template, where an answer ends.
  const Outcome answer =
      run({.argv = {program, "run", prefix / "share/yoke/models/nano", "-p", "What is the MTU?", "-n", "4"},
           .folder = scratch.path(),
           .timeout = 60_s});
  EXPECT_TRUE(answer.ok()) << answer.err;
  const Outcome here = run_yoke({"run", kSourceFolder / "models/nano", "-p", "What is the MTU?", "-n", "4"},
                                {.folder = scratch.path(), .timeout = 60_s});
  EXPECT_EQ(answer.out, here.out);
}

}  // namespace
}  // namespace yoke

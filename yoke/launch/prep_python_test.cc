#include "yoke/launch/prep_python.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "yoke/base/files.h"
#include "yoke/base/process.h"

namespace yoke::launch {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(PrepPython, OnlyExactVersionsAreTheSameEverywhere) {
  EXPECT_TRUE(
      unpinned_lines("# list\n--extra-index-url https://x\ntorch==2.9.1  # pinned\n\nmine @ file:///w.whl\n").empty());
  EXPECT_THAT(unpinned_lines("torch==2.9.1\nvllm>=0.20\nray\nnumpy==2.*\n"),
              ElementsAre("vllm>=0.20", "ray", "numpy==2.*"));
  EXPECT_THAT(freeze_differences("a==1\nb==2\nc==3\n", "a==1\nb==4\nd==5\n"),
              ElementsAre("b==2 here, b==4 there", "c==3 here, no c there", "no d here, d==5 there"));
  EXPECT_TRUE(freeze_differences("a==1\n", "a==1\n").empty());
}

TEST(PrepPython, ScriptPassesShellcheckAndReportsAMissingEnvironment) {
  const ScratchDir scratch;
  const Outcome missing = run(
      {.argv = {
           "bash", "-c",
           python_script({.requirements = {}, .folder = scratch.path() / "none", .wheels = {}, .check_only = true})}});
  EXPECT_EQ(missing.exit_status, 4);
  EXPECT_THAT(missing.err, HasSubstr("there is no Python environment in "));
  if (!is_installed("shellcheck")) GTEST_SKIP() << "shellcheck is not installed";
  write_file_atomically(
      scratch.path() / "s.sh",
      python_script({.requirements = "torch==2.9.1", .folder = "/opt/a b", .wheels = "/media/wheels"}));
  const Outcome checked = run({.argv = {"shellcheck", scratch.path() / "s.sh"}});
  EXPECT_TRUE(checked.ok()) << checked.out;
}

}  // namespace
}  // namespace yoke::launch

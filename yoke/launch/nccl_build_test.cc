#include "yoke/launch/nccl_build.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "yoke/base/error_testing.h"
#include "yoke/base/files.h"
#include "yoke/base/process.h"

namespace yoke::launch {
namespace {

using testing::HasSubstr;

// Programs in place of a compiler that is not here: they write down how they were called.
class NcclBuildScript : public testing::Test {
 protected:
  void SetUp() override {
    program("git", "mkdir -p \"${@: -1}\"");
    program("make", "mkdir -p nccl/build/lib; echo code > nccl/build/lib/libnccl.so");
    program("nvcc", "true");
    program("mpirun", "true");
    program("cuobjdump", "echo ELF file 1: libnccl.1.sm_121.cubin");
  }
  void program(const std::string& name, const std::string& body) const {
    write_file_atomically(scratch.path() / "bin" / name,
                          fmt::format("#!/bin/bash\necho \"{} $*\" >> {}\n{}\n", name, log, body), {.mode = 0755});
  }
  Outcome build(NcclBuildOptions options) const {
    options.folder = scratch.path() / "out";
    return run({.argv = {"bash", "-c", nccl_build_script(options)},
                .environment = {{"PATH", (scratch.path() / "bin").native() + ":/usr/bin:/bin"}}});
  }
  const ScratchDir scratch;
  const std::string log = scratch.path() / "log";
  const bool made = [&] {
    make_folder(scratch.path() / "bin");
    return true;
  }();
};

TEST_F(NcclBuildScript, BuildsTheTagForTheGpuAndLooksAtTheResult) {
  const Outcome outcome = build({.architecture = "sm_121", .jobs = 3});
  ASSERT_TRUE(outcome.ok()) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("libnccl.so v2.28.9-1 with sm_121\n"));
  const std::string calls = read_file(log);
  EXPECT_THAT(calls, HasSubstr("git clone --quiet --depth 1 --branch v2.28.9-1 https://github.com/NVIDIA/nccl.git"));
  EXPECT_THAT(calls, HasSubstr("make -C nccl -j3 src.build CUDA_HOME="));
  EXPECT_THAT(calls, HasSubstr("NVCC_GENCODE=-gencode=arch=compute_121,code=sm_121\n"));
  EXPECT_THAT(calls, HasSubstr("make -C nccl-tests -j3 MPI=1 MPI_HOME="));
}

TEST_F(NcclBuildScript, RefusesALibraryWithoutTheCodeAndAMissingCompiler) {
  const Outcome other = build({.architecture = "sm_103"});
  EXPECT_EQ(other.exit_status, 3) << other.out;
  EXPECT_THAT(other.err, HasSubstr("has no code for sm_103"));
  std::filesystem::remove(scratch.path() / "bin/nvcc");
  if (!is_installed("nvcc")) {
    const Outcome missing = build({.architecture = "sm_103"});
    EXPECT_EQ(missing.exit_status, 2);
    EXPECT_EQ(missing.err, "nvcc is not installed, or not on PATH\n");
  }
  EXPECT_ERROR(nccl_build_script({.architecture = "sm_121; reboot"}), ErrorCode::kUsage, "no architecture");
  EXPECT_ERROR(nccl_build_script({.architecture = ""}), ErrorCode::kUsage, "no architecture");
  EXPECT_EQ(nccl_version_for(true), "v2.30.7-1");
}

TEST(NcclBuild, ScriptPassesShellcheck) {
  if (!is_installed("shellcheck")) GTEST_SKIP() << "shellcheck is not installed";
  const ScratchDir scratch;
  for (const NcclBuildOptions& options : {NcclBuildOptions{.architecture = "sm_121"},
                                          NcclBuildOptions{.architecture = "sm_103", .folder = "/a b", .jobs = 2}}) {
    write_file_atomically(scratch.path() / "build.sh", nccl_build_script(options));
    const Outcome outcome = run({.argv = {"shellcheck", scratch.path() / "build.sh"}});
    EXPECT_TRUE(outcome.ok()) << outcome.out;
  }
}

}  // namespace
}  // namespace yoke::launch

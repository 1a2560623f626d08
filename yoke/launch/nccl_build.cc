#include "yoke/launch/nccl_build.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "yoke/base/error.h"
#include "yoke/base/text.h"
#include "yoke/launch/through.h"

namespace yoke::launch {
namespace {

// "sm_121" to "121"; also "sm_103a".
std::string digits_of(const std::string& architecture) {
  const std::string digits = architecture.starts_with("sm_") ? architecture.substr(3) : "";
  const bool good = digits.size() >= 2 && std::isdigit(static_cast<unsigned char>(digits[0])) &&
                    std::all_of(digits.begin(), digits.end(), [](unsigned char c) { return std::isalnum(c); });
  if (good) return digits;
  throw Error(ErrorCode::kUsage, fmt::format("'{}' is no architecture of a GPU", printable(architecture, 40)),
              "such as sm_121 (GB10), sm_103 (B300), sm_100 (B200), sm_90 (H100)");
}

}  // namespace

std::string nccl_version_for(bool ring) { return ring ? "v2.30.7-1" : "v2.28.9-1"; }

std::string nccl_build_script(const NcclBuildOptions& options) {
  const std::string digits = digits_of(options.architecture);
  const std::string folder =
      options.folder.starts_with("$HOME") ? "\"" + options.folder + "\"" : bash_word(options.folder);
  const std::string jobs = options.jobs > 0 ? std::to_string(options.jobs)
                                            : "$(( memory / 4 < cores ? (memory / 4 < 1 ? 1 : memory / 4) : cores ))";
  return fmt::format(
      R"sh(#!/bin/bash
# Builds NCCL {version} and nccl-tests for {architecture}.
set -euo pipefail
PATH=$PATH:/usr/local/cuda/bin
for tool in git make nvcc cuobjdump mpirun; do
  if ! command -v "$tool" >/dev/null; then
    echo "$tool is not installed, or not on PATH" >&2
    exit 2
  fi
done
cuda=$(dirname "$(dirname "$(readlink -f "$(command -v nvcc)")")")
mpi=$(dirname "$(dirname "$(readlink -f "$(command -v mpirun)")")")
for place in "/usr/lib/$(uname -m)-linux-gnu/openmpi" "$mpi"; do
  if [ -d "$place/include" ]; then mpi=$place; break; fi
done
# A compiler of CUDA takes about 4 GB: more of them than memory allows end the machine, not the build.
cores=$(nproc)
memory=$(awk '/MemAvailable/ {{ print int($2 / 1048576) }}' /proc/meminfo)
jobs={jobs}
echo "$jobs compilers at once: $cores processors, $memory GiB of memory"
mkdir -p {folder}
cd {folder}
# A tag, never a branch: builds of a branch were seen at a tenth of the rate.
if [ ! -d nccl ]; then git clone --quiet --depth 1 --branch {tag} {nccl} nccl; fi
if [ ! -d nccl-tests ]; then git clone --quiet --depth 1 {tests} nccl-tests; fi
code="-gencode=arch=compute_{digits},code=sm_{digits}"
make -C nccl -j"$jobs" src.build CUDA_HOME="$cuda" NVCC_GENCODE="$code"
make -C nccl-tests -j"$jobs" MPI=1 MPI_HOME="$mpi" CUDA_HOME="$cuda" NCCL_HOME="$PWD/nccl/build" NVCC_GENCODE="$code"
if ! cuobjdump --list-elf nccl/build/lib/libnccl.so | grep -q '{architecture}'; then
  echo "the library that was built has no code for {architecture}" >&2
  exit 3
fi
echo "built: $PWD/nccl/build/lib/libnccl.so {version} with {architecture}"
)sh",
      fmt::arg("version", options.version), fmt::arg("architecture", options.architecture), fmt::arg("jobs", jobs),
      fmt::arg("folder", folder), fmt::arg("tag", bash_word(options.version)),
      fmt::arg("nccl", bash_word(options.nccl_source)), fmt::arg("tests", bash_word(options.tests_source)),
      fmt::arg("digits", digits));
}

}  // namespace yoke::launch

// NCCL and nccl-tests built for the GPU of a node: the script that does it, and what it leaves behind. Pure.
#pragma once
#include <string>

#include "yoke/base/units.h"

namespace yoke::launch {

struct NcclBuildOptions {
  std::string architecture;  // "sm_121"
  std::string version = "v2.28.9-1";
  std::string nccl_source = "https://github.com/NVIDIA/nccl.git";  // or a folder that every node has
  std::string tests_source = "https://github.com/NVIDIA/nccl-tests.git";
  std::string folder = "$HOME/nccl-yoke";
  int jobs = 0;  // 0: as many as processors and memory allow
};

// Rings need 2.30.7; pairs and switches keep the release that is not known to hang.
std::string nccl_version_for(bool ring);
// For bash. It builds in FOLDER, ends with a message where a tool or the code is missing, and prints as its last line
// "built: libnccl.so VERSION with sm_121".
std::string nccl_build_script(const NcclBuildOptions& options);

}  // namespace yoke::launch

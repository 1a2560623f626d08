// The table of backends: which there are in this program, and how one is made.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "yoke/base/spin_policy.h"
#include "yoke/ops/backend.h"

namespace yoke::ops {

std::vector<std::string> backend_names();
std::vector<std::string> usable_backends();  // those that work on this machine
// Why `cuda` does not work here; nothing where it does.
std::optional<std::string> why_no_cuda();
// What "auto" is on this machine; other names stay.
std::string resolved_backend(const std::string& name);

// How much a backend may round: kFast as suits its instructions, kExact in f32 throughout.
enum class Arithmetic { kFast, kExact };

struct BackendOptions {
  int threads = 0;  // 0: as many as this process's share of the processors feeds
  // Whether all threads that compute here, of all ranks, are more than the processors: then none of them spins.
  SpinPolicy::CoreSharing core_sharing = SpinPolicy::CoreSharing::kNone;
  Arithmetic arithmetic = Arithmetic::kFast;
  // Of `cpu`: avx512, avx2, neon, plain … (cpu/instructions.h). Empty: what the environment variable YOKE_INSTRUCTIONS
  // says, else the best that the processor has.
  std::string instructions = {};
  int device = 0;  // of `cuda`: which GPU, modulo how many there are
};
// "auto" is the fastest there is: cuda where there is a GPU that it can use, else cpu. Error(kUnsupported) names those
// there are.
std::unique_ptr<Backend> make_backend(const std::string& name, const BackendOptions& options = {});

}  // namespace yoke::ops

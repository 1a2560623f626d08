// Which kernels this processor can run.
#pragma once
#include <string>
#include <vector>

#include "yoke/ops/cpu/kernels.h"

namespace yoke::ops::cpu {

// Best first; the last is plain C++.
std::vector<Kernels> usable_kernels();

// The best, or those of this name: "avx512", "avx512_near", "avx2", "neon_matrix", "neon", "plain". Error(kUnsupported)
// names those there are.
const Kernels& kernels_named(const std::string& name);

}  // namespace yoke::ops::cpu

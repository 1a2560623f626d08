// The kernels of one kind of processor (matmul_x86.cc or matmul_arm.cc, whichever is compiled): only those that the
// processor under us can run, found out at run time.
#pragma once
#include <vector>

#include "yoke/bench/matmul_kernels.h"

namespace yoke {

std::vector<MatmulKernel> machine_kernels();

}  // namespace yoke

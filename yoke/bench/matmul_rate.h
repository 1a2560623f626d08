// How fast this machine multiplies matrices that are packed and near: the practical ceiling of its arithmetic, in
// multiplications and additions a second, by one core and by all. Each kernel's result is checked first against a plain
// loop over values whose products and sums are exact.
#pragma once
#include <string>
#include <vector>

#include "yoke/base/document.h"
#include "yoke/base/units.h"
#include "yoke/bench/matmul_kernels.h"
#include "yoke/bench/run_record.h"

namespace yoke {

struct MatmulOptions {
  int depth = 512;  // K; M and N are the multiples of the tile nearest to it
  int rounds = 7;
  Seconds round{0.1};  // about as long
  std::vector<int> cores = {};
};

struct MatmulRate {
  DType type = DType::kF32;
  std::string kernel;
  int cores = 1;
  double median = 0;  // operations a second
  double best = 0;
  double low = 0;
  double high = 0;
};

// Whether a kernel agrees with the plain loop for M, N, K rounded up to its tiles.
bool kernel_is_right(const MatmulKernel& kernel, int m, int n, int k);

// The best kernel of each type; a wrong one is an Error(kInternal).
std::vector<MatmulRate> measure_matmul(const MatmulOptions& options);

std::string matmul_text(const std::vector<MatmulRate>& rates);
Document to_json(const std::vector<MatmulRate>& rates);
RunRecord record_of(const std::vector<MatmulRate>& rates);

}  // namespace yoke

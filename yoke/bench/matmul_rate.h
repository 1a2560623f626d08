// How fast this machine multiplies matrices that are packed and near: the practical ceiling of its arithmetic, in
// multiplications and additions a second, by one core and by all. The kernels are those that models run with
// (ops/cpu/kernels.h). The result is checked first against a plain loop over values whose products and sums are exact.
#pragma once
#include <string>
#include <vector>

#include "yoke/base/document.h"
#include "yoke/base/units.h"
#include "yoke/bench/run_record.h"
#include "yoke/ops/cpu/kernels.h"
#include "yoke/tensor/dtype.h"

namespace yoke::bench {

struct MatmulOptions {
  int depth = 512;  // K, M and N
  int rounds = 7;
  Seconds round{0.1};  // about as long
  std::vector<int> cores = {};
};

struct MatmulRate {
  tensor::DType type = tensor::DType::kF32;
  std::string kernel;
  int cores = 1;
  double median = 0;  // operations a second
  double best = 0;
  double low = 0;
  double high = 0;
};

// Whether the kernels of an instruction set agree with the plain loop: [m, k] by [k, n] of f32, bf16 or i8.
bool kernels_are_right(const ops::cpu::Kernels& kernels, tensor::DType type, int m, int n, int k);

// By the best instructions; where they are wrong: Error(kInternal).
std::vector<MatmulRate> measure_matmul(const MatmulOptions& options);

std::string matmul_text(const std::vector<MatmulRate>& rates);
Document to_json(const std::vector<MatmulRate>& rates);
RunRecord record_of(const std::vector<MatmulRate>& rates);

}  // namespace yoke::bench

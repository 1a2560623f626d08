// The kernels of this folder (*.cu), loaded from the program onto a device.
#pragma once
#include <map>
#include <string_view>

#include "yoke/cuda/kernels.h"
#include "yoke/ops/cuda/layout.h"

namespace yoke::ops::cuda {

// Whether this program was built with kernels.
bool has_kernels();

// The kernels of one file, "linear"; Error(kUnsupported) where the program has none, or none for this GPU.
yoke::cuda::CudaModule load_kernels(const yoke::cuda::CudaDevice& device, const char* name);

class Kernels {
 public:
  // Error(kUnsupported) where the program has no kernels, or none for this GPU.
  explicit Kernels(const yoke::cuda::CudaDevice& device);

  yoke::cuda::CudaKernel exact, experts_in, experts_out, embed;                     // exact.cu
  yoke::cuda::CudaKernel pack_values, pack_scales, fill;                            // pack.cu
  yoke::cuda::CudaKernel norm, add, pick_rows, angles, place_heads, route, swiglu;  // rows.cu
  yoke::cuda::CudaKernel attend, attend_splits, attend_merge;                       // attention.cu

  yoke::cuda::CudaKernel round_activations;  // prompt.cu

  // Of prompt.cu: for many rows; null where this matrix, or this GPU, has none.
  const yoke::cuda::CudaKernel* prompt(const PackedMatrix& matrix) const;
  static constexpr unsigned kPromptShared = 3 * 128 * (kBlockColumns + 16) * 2 + 256 * 64 * 4;  // as prompt.cu counts
  // Of linear.cu: for a matrix, and the most rows of activations that one call takes.
  struct Linear {
    yoke::cuda::CudaKernel kernel;
    int rows = 8;
  };
  Linear linear(const PackedMatrix& matrix, int rows) const;

 private:
  struct Choice {
    yoke::cuda::CudaKernel one, two;  // for 8 rows, and for 16 where there is such
    bool has_two = false;
  };
  yoke::cuda::CudaKernel prompt_int4_, prompt_bf16_;
  bool has_prompt_ = false;
  std::map<std::pair<int, bool>, Choice> linears_;  // by kind, and whether groups are of 128 columns or multiples
};

}  // namespace yoke::ops::cuda

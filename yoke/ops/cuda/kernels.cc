#include "yoke/ops/cuda/kernels.h"

#include <fmt/format.h>

#include <cstdlib>

#include "yoke/base/embedded.h"
#include "yoke/base/error.h"

namespace yoke::ops::cuda {
namespace {

using yoke::cuda::CudaModule;

constexpr unsigned kSharedMax = 99U << 10;  // of a block, on every architecture that kernels are compiled for

}  // namespace

CudaModule load_kernels(const yoke::cuda::CudaDevice& device, const char* name) {
  const auto image = embedded_file(fmt::format("kernels/{}.fatbin", name));
  if (!image) {
    throw Error(ErrorCode::kUnsupported, "this program was built without CUDA kernels",
                "build it where nvcc of CUDA 13 is (make build PRESET=cuda), or use --backend cpu");
  }
  return {device, std::as_bytes(std::span(image->data(), image->size()))};
}

bool has_kernels() { return embedded_file("kernels/linear.fatbin").has_value(); }

Kernels::Kernels(const yoke::cuda::CudaDevice& device) {
  // For those who look for a race: kernels of a step one after the other.
  const char* const serial = std::getenv("YOKE_CUDA_SERIAL");
  const auto start = serial != nullptr && *serial != '\0' ? yoke::cuda::KernelStart::kAfterPrevious
                                                          : yoke::cuda::KernelStart::kWaitsItself;
  const CudaModule in_f32 = load_kernels(device, "exact");
  exact = in_f32.kernel("yoke_linear_exact", start);
  experts_in = in_f32.kernel("yoke_experts_in", start);
  experts_out = in_f32.kernel("yoke_experts_out", start);
  embed = in_f32.kernel("yoke_embed", start);
  const CudaModule packing = load_kernels(device, "pack");
  pack_values = packing.kernel("yoke_pack_values");
  pack_scales = packing.kernel("yoke_pack_scales");
  fill = packing.kernel("yoke_fill");
  const CudaModule by_row = load_kernels(device, "rows");
  norm = by_row.kernel("yoke_norm", start);
  add = by_row.kernel("yoke_add", start);
  pick_rows = by_row.kernel("yoke_pick_rows", start);
  angles = by_row.kernel("yoke_angles", start);
  place_heads = by_row.kernel("yoke_place_heads", start);
  route = by_row.kernel("yoke_route", start);
  swiglu = by_row.kernel("yoke_swiglu", start);
  const CudaModule attention = load_kernels(device, "attention");
  attend = attention.kernel("yoke_attend", start);
  attend_splits = attention.kernel("yoke_attend_splits", start);
  attend_merge = attention.kernel("yoke_attend_merge", start);
  const CudaModule prompts = load_kernels(device, "prompt");
  round_activations = prompts.kernel("yoke_round_activations", start);
  has_prompt_ = static_cast<unsigned>(device.shared_memory_max()) >= kPromptShared;
  if (has_prompt_) {
    prompt_int4_ = prompts.kernel("yoke_prompt_int4", start);
    prompt_bf16_ = prompts.kernel("yoke_prompt_bf16", start);
    prompt_int4_.allow_shared(kPromptShared);
    prompt_bf16_.allow_shared(kPromptShared);
  }
  const CudaModule fast = load_kernels(device, "linear");
  const auto add_linear = [&](int kind, bool groups_of_128, const char* one, const char* two) {
    Choice choice{.one = fast.kernel(one, start),
                  .two = fast.kernel(two != nullptr ? two : one, start),
                  .has_two = two != nullptr};
    choice.one.allow_shared(kSharedMax);
    choice.two.allow_shared(kSharedMax);
    linears_.emplace(std::pair{kind, groups_of_128}, choice);
  };
  add_linear(kInt4, true, "yoke_linear_int4_1", "yoke_linear_int4_2");
  add_linear(kInt4, false, "yoke_linear_int4_small_1", nullptr);
  add_linear(kNvfp4, false, "yoke_linear_nvfp4_1", nullptr);
  add_linear(kInt8, true, "yoke_linear_int8_1", nullptr);
  add_linear(kInt8, false, "yoke_linear_int8_small_1", nullptr);
  add_linear(kFp8, true, "yoke_linear_fp8_1", nullptr);
  add_linear(kFp8, false, "yoke_linear_fp8_small_1", nullptr);
  add_linear(kBf16, true, "yoke_linear_bf16_1", "yoke_linear_bf16_2");
  add_linear(kF16, true, "yoke_linear_f16_1", nullptr);
  add_linear(kF32, true, "yoke_linear_f32_1", nullptr);
}

namespace {

bool has_groups_of_128(const PackedMatrix& matrix) {
  return matrix.scale_kind == kNoScale || (matrix.kind != kNvfp4 && matrix.group_steps % (2 * kBlockSteps) == 0);
}

}  // namespace

const yoke::cuda::CudaKernel* Kernels::prompt(const PackedMatrix& matrix) const {
  if (!has_prompt_ || !has_groups_of_128(matrix)) return nullptr;
  return matrix.kind == kInt4 ? &prompt_int4_ : matrix.kind == kBf16 ? &prompt_bf16_ : nullptr;
}

Kernels::Linear Kernels::linear(const PackedMatrix& matrix, int rows) const {
  const Choice& choice = linears_.at({matrix.kind, has_groups_of_128(matrix)});
  if (rows > 8 && choice.has_two) return {.kernel = choice.two, .rows = 16};
  return {.kernel = choice.one, .rows = 8};
}

}  // namespace yoke::ops::cuda

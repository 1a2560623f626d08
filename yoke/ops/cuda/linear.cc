// Weights times activations: which kernel, and how much room it needs.
#include <algorithm>

#include "yoke/ops/cuda/backend.h"
#include "yoke/ops/cuda/slabs.h"

namespace yoke::ops::cuda {
namespace {

constexpr int kExactRows = 8;  // of a block of threads in exact.cu
constexpr unsigned kExactThreads = 128;
constexpr unsigned kFastThreads = 512;
constexpr int kRowPadding = 16;  // linear.cu
constexpr int kPromptRows = 49;  // from so many on one pass of prompt.cu is faster than several of linear.cu
constexpr int kPromptTile = 128, kPromptPanels = 8;  // of a block of threads in prompt.cu
constexpr std::int64_t kMaxBlocks = 65535;           // of CUDA, along the second axis

const CudaStack& stack_of(const PackedStack& packed) {
  const auto* const ours = dynamic_cast<const CudaStack*>(&packed);
  YOKE_CHECK(ours != nullptr, "a stack of {} x {} was packed by another backend", packed.rows(), packed.columns());
  return *ours;
}

}  // namespace

void CudaBackend::linear_piece(const PackedMatrix& piece, LinearCall call) {
  if (piece.panel_count == 0 || piece.blocks == 0) return;
  const int all = call.rows;
  const auto from_row = [&](int first, int count) {
    LinearCall part = call;
    part.x += static_cast<long long>(first) * piece.columns;
    part.y += static_cast<long long>(first) * call.y_columns;
    part.rows = count;
    return part;
  };
  const auto panels = static_cast<unsigned>(call.swiglu != 0 ? piece.panel_count / 2 : piece.panel_count);
  if (is_exact_) {
    for (int first = 0; first < all; first += kExactRows * static_cast<int>(kMaxBlocks)) {
      const int count = std::min(all - first, kExactRows * static_cast<int>(kMaxBlocks));
      const auto groups = static_cast<unsigned>((count + kExactRows - 1) / kExactRows);
      kernels().exact.launch(stream(), {.blocks = {panels, groups, 1}, .threads = kExactThreads}, piece,
                             from_row(first, count));
    }
    return;
  }
  if (all >= kPromptRows && multiply_prompt(piece, call)) return;
  const int units = piece.panel_count * piece.slices;
  const auto blocks = static_cast<unsigned>(std::min(multiprocessors_, units));
  call.counters =
      static_cast<unsigned*>(counters_.need(static_cast<std::size_t>(piece.panel_count) * sizeof(unsigned), true));
  for (int first = 0; first < all;) {
    const Kernels::Linear chosen = kernels().linear(piece, all - first);
    const int count = std::min(chosen.rows, all - first);
    call.partials = static_cast<float*>(partials_.need(
        static_cast<std::size_t>(units) * static_cast<std::size_t>(chosen.rows) * kPanelRows * sizeof(float)));
    const auto shared = static_cast<unsigned>(chosen.rows * (piece.slice_blocks * kBlockColumns + kRowPadding) * 2);
    chosen.kernel.launch(stream(), {.blocks = {blocks, 1, 1}, .threads = kFastThreads, .shared = shared}, piece,
                         from_row(first, count));
    first += count;
  }
}

bool CudaBackend::multiply_prompt(const PackedMatrix& piece, const LinearCall& call) {
  const yoke::cuda::CudaKernel* const kernel = kernels().prompt(piece);
  if (kernel == nullptr) return false;
  const int columns = piece.blocks * kBlockColumns;
  auto* const rounded = static_cast<unsigned short*>(
      rounded_.need(static_cast<std::size_t>(call.rows) * static_cast<std::size_t>(columns) * sizeof(short)));
  kernels().round_activations.launch(stream(), {.blocks = {static_cast<unsigned>(call.rows), 1, 1}, .threads = 256},
                                     call.x, piece.source, piece.columns, columns, rounded);
  const auto rows = static_cast<unsigned>((call.rows + kPromptTile - 1) / kPromptTile);
  const auto panels = static_cast<unsigned>((piece.panel_count + kPromptPanels - 1) / kPromptPanels);
  kernel->launch(stream(), {.blocks = {rows, panels, 1}, .threads = 256, .shared = Kernels::kPromptShared}, piece,
                 PromptCall{.linear = call, .x = rounded, .x_columns = columns});
  return true;
}

void CudaBackend::linear(const PackedStack& weight, const Slab& x, const Slab& y, const LinearOptions& options) {
  const CudaStack& stack = stack_of(weight);
  const std::int64_t tokens = x.extent(0);
  const bool gated = options.activation == Activation::kSwiglu;
  YOKE_CHECK(!gated || (weight.parts().size() == 2 && weight.parts()[0].size() == weight.parts()[1].size()),
             "{} parts are no gate and up", weight.parts().size());
  const std::int64_t N = gated ? weight.parts()[0].size() : weight.rows();
  expect(x, {tokens, weight.columns()});
  expect(y, {tokens, N});
  if (options.bias != nullptr) expect(*options.bias, {weight.rows()});
  if (tokens == 0) return;
  LinearCall call{.x = floats(x),
                  .y = floats(y),
                  .bias = options.bias != nullptr ? floats(*options.bias) : nullptr,
                  .rows = static_cast<int>(tokens),
                  .y_columns = static_cast<int>(N)};
  const bool is_fused = gated && stack.pieces().size() == 1 && stack.pieces().front().is_gated != 0;
  if (gated && !is_fused) {
    call.y = static_cast<float*>(both_.need(static_cast<std::size_t>(tokens * 2 * N) * sizeof(float)));
    call.y_columns = static_cast<int>(2 * N);
  }
  call.swiglu = is_fused ? 1 : 0;
  for (const PackedMatrix& piece : stack.pieces()) linear_piece(piece, call);
  if (!gated || is_fused) return;
  kernels().swiglu.launch(stream(), {.blocks = {static_cast<unsigned>(tokens), 1, 1}, .threads = 256},
                          static_cast<const float*>(call.y), static_cast<int>(N), floats(y));
}

void CudaBackend::embed(const PackedStack& table, std::int32_t first_id, const Slab& x) {
  const CudaStack& stack = stack_of(table);
  YOKE_CHECK_EQ(table.parts().size(), 1U);
  expect(x, {rows_, table.columns()});
  const PackedMatrix& piece = stack.pieces().front();
  kernels().embed.launch(
      stream(),
      {.blocks = {static_cast<unsigned>(rows_), static_cast<unsigned>(piece.blocks), 1}, .threads = kBlockColumns},
      piece, step_.ids, static_cast<int>(first_id), floats(x));
}

void CudaBackend::experts(const PackedStack& gate_up, const PackedStack& down, const Slab& x, const Slab& ids,
                          const Slab& weights, const Slab& y) {
  const PackedMatrix& in = stack_of(gate_up).pieces().front();
  const PackedMatrix& out = stack_of(down).pieces().front();
  const auto E = std::ssize(down.parts());
  YOKE_CHECK(std::ssize(gate_up.parts()) == 2 * E, "{} gates and ups for {} experts", gate_up.parts().size(), E);
  const std::int64_t tokens = x.extent(0);
  const std::int64_t choices = ids.extent(1);
  const std::int64_t F = down.columns();
  const std::int64_t N = down.parts().front().size();
  expect(x, {tokens, gate_up.columns()});
  expect(ids, {tokens, choices});
  expect(weights, {tokens, choices});
  expect(y, {tokens, N});
  auto* const hidden =
      static_cast<float*>(hidden_.need(static_cast<std::size_t>(tokens * choices * F) * sizeof(float)));
  const auto* const chosen = reinterpret_cast<const int*>(ids.address);
  const auto in_panels = static_cast<unsigned>(in.panel_count / (2 * E));
  const auto out_panels = static_cast<unsigned>(out.panel_count / E);
  const std::int64_t most = kMaxBlocks / choices;  // tokens of a launch
  for (std::int64_t first = 0; first < tokens; first += most) {
    const std::int64_t count = std::min(most, tokens - first);
    kernels().experts_in.launch(
        stream(), {.blocks = {in_panels, static_cast<unsigned>(count * choices), 1}, .threads = kExactThreads}, in,
        static_cast<const float*>(floats(x) + first * gate_up.columns()), chosen + first * choices,
        static_cast<int>(choices), static_cast<int>(in_panels), static_cast<int>(F), hidden + first * choices * F);
    kernels().experts_out.launch(
        stream(), {.blocks = {out_panels, static_cast<unsigned>(count), 1}, .threads = kExactThreads}, out,
        static_cast<const float*>(hidden + first * choices * F), chosen + first * choices,
        static_cast<const float*>(floats(weights) + first * choices), static_cast<int>(choices),
        static_cast<int>(out_panels), static_cast<int>(N), floats(y) + first * N);
  }
}

}  // namespace yoke::ops::cuda

// Weights times activations, and rows of a table.
#include <algorithm>
#include <numeric>

#include "yoke/ops/cpu/backend.h"

namespace yoke::ops::cpu {
namespace {

constexpr std::int64_t kRowsAtOnce = 64;  // outputs of a panel that lie on the stack

// So many panels that threads meet seldom, and so few that none of them waits long for the last.
std::int64_t grain_of(std::int64_t panels, int threads) { return std::max<std::int64_t>(1, panels / (8 * threads)); }

}  // namespace

std::size_t CpuBackend::packed_bytes(std::span<const tensor::MatrixInfo> stack, MatrixUse) const {
  std::size_t bytes = 0;
  for (const tensor::MatrixInfo& info : stack) bytes += panel_shape(info).bytes();
  return bytes;
}

// A table is the largest matrix of a model and packed while there is little else to pack; others are packed side by
// side.
std::unique_ptr<PackedStack> CpuBackend::pack(std::span<const tensor::Matrix> stack, MatrixUse use) {
  const bool is_table = use == MatrixUse::kTable || use == MatrixUse::kTableAndHead;
  const int threads = is_table ? pool_.threads() : 1;
  std::vector<Panels> packed;
  std::size_t bytes = 0;
  for (const tensor::Matrix& matrix : stack) {
    packed.emplace_back(matrix, threads);
    bytes += packed.back().shape().bytes();
  }
  return std::make_unique<CpuStack>(stack, std::move(packed), bytes);
}

// Of few rows several panels at a time, first all of the gate, then all of up: so that each is read as one stream.
void CpuBackend::swiglu_panels(const Panels& gate, const Panels& up, const PreparedInput& x_gate,
                               const PreparedInput& x_up, tensor::Range panels, std::span<const std::int32_t> rows,
                               const float* bias, float* y, const std::int32_t* targets) const {
  const std::int64_t N = gate.shape().rows;
  const std::int64_t count_max = std::min(kRowsAtOnce, std::ssize(rows));
  const std::int64_t panels_max = kRowsAtOnce / std::max<std::int64_t>(1, count_max);
  alignas(64) float gates[kRowsAtOnce * kPanelRows], ups[kRowsAtOnce * kPanelRows];
  for (std::int64_t first = panels.begin; first < panels.end; first += panels_max) {
    const tensor::Range some{first, std::min(panels.end, first + panels_max)};
    for (std::int64_t done = 0; done < std::ssize(rows); done += kRowsAtOnce) {
      const std::int64_t count = std::min(kRowsAtOnce, std::ssize(rows) - done);
      const std::int64_t floats = count * kPanelRows;  // of a panel
      const auto multiply = [&](const Panels& weights, const PreparedInput& x, const float* added, float* to) {
        for (std::int64_t p = some.begin; p < some.end; ++p, to += floats) {
          x.multiply()(weights.view(), p, x.rows(), rows.data() + done, count, to);
          if (added == nullptr) continue;
          const std::int64_t lanes = std::min(kPanelRows, N - p * kPanelRows);
          for (std::int64_t i = 0; i < count; ++i) {
            for (std::int64_t lane = 0; lane < lanes; ++lane) {
              to[i * kPanelRows + lane] += added[p * kPanelRows + lane];
            }
          }
        }
      };
      multiply(gate, x_gate, bias, gates);
      multiply(up, x_up, bias == nullptr ? nullptr : bias + N, ups);
      kernels_.swiglu(gates, ups, some.size() * floats, gates);
      for (std::int64_t p = some.begin; p < some.end; ++p) {
        const float* const from = gates + (p - some.begin) * floats;
        const std::int64_t lanes = std::min(kPanelRows, N - p * kPanelRows);
        for (std::int64_t i = 0; i < count; ++i) {
          std::copy_n(from + i * kPanelRows, lanes, y + targets[done + i] * N + p * kPanelRows);
        }
      }
    }
  }
}

void CpuBackend::linear(const PackedStack& weight, const Slab& x, const Slab& y, const LinearOptions& options) {
  const std::vector<Panels>& parts = panels_of(weight);
  const std::int64_t tokens = x.extent(0);
  const std::int64_t K = weight.columns();
  const bool gated = options.activation == Activation::kSwiglu;
  YOKE_CHECK(!gated || (parts.size() == 2 && parts[0].shape().rows == parts[1].shape().rows),
             "{} parts are no gate and up", parts.size());
  const std::int64_t N = gated ? parts[0].shape().rows : weight.rows();
  ref::expect(x, {tokens, K});
  ref::expect(y, {tokens, N});
  if (options.bias != nullptr) ref::expect(*options.bias, {weight.rows()});
  if (tokens == 0) return;
  const float* const bias = options.bias != nullptr ? ref::floats(*options.bias) : nullptr;
  float* const to = ref::floats(y);
  stack_.clear();
  for (const Panels& part : parts) stack_.push_back(&part);
  inputs_.prepare(stack_, kernels_, is_exact_, pool_, ref::floats(x), tokens, K);
  if (std::ssize(all_rows_) < tokens) {
    all_rows_.resize(static_cast<std::size_t>(tokens));
    std::iota(all_rows_.begin(), all_rows_.end(), 0);
  }
  const std::span<const std::int32_t> rows(all_rows_.data(), static_cast<std::size_t>(tokens));
  if (gated) {
    const std::int64_t panels = parts[0].shape().panels();
    pool_.parallel_for(panels, grain_of(panels, pool_.threads()), [&](tensor::Range range) {
      swiglu_panels(parts[0], parts[1], inputs_.of(0), inputs_.of(1), range, rows, bias, to, rows.data());
    });
    return;
  }
  std::int64_t panels = 0;
  for (const Panels& part : parts) panels += part.shape().panels();
  pool_.parallel_for(panels, grain_of(panels, pool_.threads()), [&](tensor::Range range) {
    std::size_t part = 0;
    std::int64_t begin = 0;  // of the part's panels
    for (std::int64_t p = range.begin; p < range.end; ++p) {
      while (p >= begin + parts[part].shape().panels()) begin += parts[part++].shape().panels();
      const std::int64_t lane_row = (p - begin) * kPanelRows;
      const std::int64_t lanes = std::min(kPanelRows, parts[part].shape().rows - lane_row);
      const std::int64_t first = weight.parts()[part].begin + lane_row;
      multiply_rows(parts[part], inputs_.of(part), p - begin, rows, [&](std::int64_t t, const float* products) {
        float* const target = to + t * N + first;
        for (std::int64_t lane = 0; lane < lanes; ++lane) {
          target[lane] = products[lane] + (bias != nullptr ? bias[first + lane] : 0.0F);
        }
      });
    }
  });
}

void CpuBackend::embed(const PackedStack& table, std::int32_t first_id, const Slab& x) {
  const std::vector<Panels>& parts = panels_of(table);
  YOKE_CHECK_EQ(parts.size(), 1U);
  const std::int64_t width = table.columns();
  ref::expect(x, {std::ssize(step_.ids), width});
  pool_.parallel_for(std::ssize(step_.ids), 8, [&](tensor::Range rows) {
    for (std::int64_t t = rows.begin; t < rows.end; ++t) {
      const std::span<float> row(ref::floats(x) + t * width, static_cast<std::size_t>(width));
      const std::int64_t index = std::int64_t{step_.ids[static_cast<std::size_t>(t)]} - first_id;
      if (index >= 0 && index < parts[0].shape().rows) {
        parts[0].unpack_row(index, row);
      } else {
        std::fill(row.begin(), row.end(), 0.0F);
      }
    }
  });
}

}  // namespace yoke::ops::cpu

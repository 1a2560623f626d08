// What experts make of their tokens: all rows of an expert at once, so that its weights are read once.
#include <algorithm>

#include "yoke/ops/cpu/backend.h"

namespace yoke::ops::cpu {

void CpuBackend::experts(const PackedStack& gate_up, const PackedStack& down, const Slab& x, const Slab& ids,
                         const Slab& weights, const Slab& y) {
  const std::vector<Panels>& in = panels_of(gate_up);
  const std::vector<Panels>& out = panels_of(down);
  const auto E = out.size();
  YOKE_CHECK(in.size() == 2 * E, "{} gates and ups for {} experts", in.size(), E);
  const std::int64_t tokens = x.extent(0);
  const std::int64_t choices = ids.extent(1);
  const std::int64_t F = down.columns();
  const std::int64_t N = out.front().shape().rows;
  ref::expect(x, {tokens, gate_up.columns()});
  ref::expect(ids, {tokens, choices});
  ref::expect(weights, {tokens, choices});
  ref::expect(y, {tokens, N});
  const std::int64_t pairs = tokens * choices;
  if (pairs == 0) return;
  pairs_of_.resize(std::max(pairs_of_.size(), E));
  tokens_of_.resize(std::max(tokens_of_.size(), E));
  for (std::size_t e = 0; e < E; ++e) {
    pairs_of_[e].clear();
    tokens_of_[e].clear();
  }
  for (std::int64_t i = 0; i < pairs; ++i) {
    const std::int32_t expert = ref::words(ids)[i];
    YOKE_CHECK(expert >= 0 && expert < static_cast<std::int32_t>(E), "expert {}", expert);
    pairs_of_[static_cast<std::size_t>(expert)].push_back(static_cast<std::int32_t>(i));
    tokens_of_[static_cast<std::size_t>(expert)].push_back(static_cast<std::int32_t>(i / choices));
  }
  gated_.resize(std::max(gated_.size(), static_cast<std::size_t>(pairs * F)));
  products_.resize(std::max(products_.size(), static_cast<std::size_t>(pairs * N)));
  used_experts_.clear();
  stack_.clear();
  for (std::size_t e = 0; e < E; ++e) {
    if (pairs_of_[e].empty()) continue;
    used_experts_.push_back(e);
    stack_.push_back(&in[2 * e]);
    stack_.push_back(&in[2 * e + 1]);
  }
  inputs_.prepare(stack_, kernels_, is_exact_, pool_, ref::floats(x), tokens, gate_up.columns());
  const std::int64_t gate_panels = tensor::ceil_divide(F, kPanelRows);
  const std::int64_t used = std::ssize(used_experts_);
  pool_.parallel_for(used * gate_panels, 1, [&](tensor::Range range) {
    for (std::int64_t task = range.begin; task < range.end; ++task) {
      const auto i = static_cast<std::size_t>(task / gate_panels);
      const std::size_t e = used_experts_[i];
      const std::int64_t panel = task % gate_panels;
      swiglu_panels(in[2 * e], in[2 * e + 1], inputs_.of(2 * i), inputs_.of(2 * i + 1), {panel, panel + 1},
                    tokens_of_[e], nullptr, gated_.data(), pairs_of_[e].data());
    }
  });
  stack_.clear();
  for (const std::size_t e : used_experts_) stack_.push_back(&out[e]);
  inputs_.prepare(stack_, kernels_, is_exact_, pool_, gated_.data(), pairs, F);
  const std::int64_t down_panels = tensor::ceil_divide(N, kPanelRows);
  pool_.parallel_for(used * down_panels, 1, [&](tensor::Range range) {
    for (std::int64_t task = range.begin; task < range.end; ++task) {
      const auto i = static_cast<std::size_t>(task / down_panels);
      const std::vector<std::int32_t>& own = pairs_of_[used_experts_[i]];
      const std::int64_t first = task % down_panels * kPanelRows;
      multiply_rows(out[used_experts_[i]], inputs_.of(i), task % down_panels, own,
                    [&](std::int64_t pair, const float* products) {
                      std::copy_n(products, std::min(kPanelRows, N - first),
                                  products_.data() + own[static_cast<std::size_t>(pair)] * N + first);
                    });
    }
  });
  pool_.parallel_for(tokens, 4, [&](tensor::Range range) {
    for (std::int64_t t = range.begin; t < range.end; ++t) {
      float* const sum = ref::floats(y) + t * N;
      std::fill(sum, sum + N, 0.0F);
      for (std::int64_t i = t * choices; i < (t + 1) * choices; ++i) {  // best first
        for (std::int64_t n = 0; n < N; ++n)
          sum[n] += ref::floats(weights)[i] * products_[static_cast<std::size_t>(i * N + n)];
      }
    }
  });
}

}  // namespace yoke::ops::cpu

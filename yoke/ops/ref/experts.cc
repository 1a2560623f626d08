// Mixture of experts (Shazeer et al. 2017): which experts a token goes to, and what they make of it.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "yoke/ops/ref/backend.h"
#include "yoke/ops/ref/dequantize.h"
#include "yoke/ops/ref/rows.h"
#include "yoke/ops/ref/stack.h"

namespace yoke::ops::ref {
namespace {

// softmax(scores), and the best `count` of it.
void route_row(std::span<const float> scores, const RouteOptions& options, std::int32_t* ids, float* weights) {
  const float max = *std::max_element(scores.begin(), scores.end());
  const std::span<float> chances = scratch(0, std::ssize(scores));
  float sum = 0;
  for (std::size_t e = 0; e < scores.size(); ++e) sum += chances[e] = std::exp(scores[e] - max);
  for (float& chance : chances) chance /= sum;
  float chosen = 0;
  for (std::int64_t i = 0; i < options.count; ++i) {
    std::size_t best = scores.size();
    for (std::size_t e = 0; e < scores.size(); ++e) {
      const bool taken = std::find(ids, ids + i, static_cast<std::int32_t>(e)) != ids + i;
      if (!taken && (best == scores.size() || scores[e] > scores[best])) best = e;
    }
    ids[i] = static_cast<std::int32_t>(best);
    chosen += weights[i] = chances[best];
  }
  if (!options.renormalize) return;
  for (std::int64_t i = 0; i < options.count; ++i) weights[i] /= chosen;
}

}  // namespace

void RefBackend::route(const Slab& scores, const RouteOptions& options, const Slab& ids, const Slab& weights) {
  const Sight sight(*this);
  const std::int64_t tokens = scores.extent(0);
  const std::int64_t E = scores.extent(1);
  YOKE_CHECK(options.count >= 1 && options.count <= E, "{} of {} experts", options.count, E);
  expect(ids, {tokens, options.count});
  expect(weights, {tokens, options.count});
  for (std::int64_t t = 0; t < tokens; ++t) {
    route_row({floats(scores) + t * E, static_cast<std::size_t>(E)}, options, words(ids) + t * options.count,
              floats(weights) + t * options.count);
  }
}

// First silu(gate) * up of all (token, choice) pairs, then their weighted sums: each row of a weight is read once for
// all pairs that need it.
void RefBackend::experts(const PackedStack& gate_up, const PackedStack& down, const Slab& x, const Slab& ids,
                         const Slab& weights, const Slab& y) {
  const Sight sight(*this);
  const std::vector<tensor::Matrix>& in = matrices_of(gate_up);
  const std::vector<tensor::Matrix>& out = matrices_of(down);
  const auto E = static_cast<std::int64_t>(out.size());
  YOKE_CHECK(in.size() == 2 * out.size(), "{} gates and ups for {} experts", in.size(), out.size());
  const std::int64_t tokens = x.extent(0);
  const std::int64_t choices = ids.extent(1);
  const std::int64_t C = gate_up.columns();
  const std::int64_t F = down.columns();
  const std::int64_t N = out.front().rows;
  expect(x, {tokens, C});
  expect(ids, {tokens, choices});
  expect(weights, {tokens, choices});
  expect(y, {tokens, N});
  const std::int64_t pairs = tokens * choices;
  if (pairs == 0) return;
  const std::int32_t* const expert_of = words(ids);
  for (std::int64_t i = 0; i < pairs; ++i) YOKE_CHECK(expert_of[i] >= 0 && expert_of[i] < E, "expert {}", expert_of[i]);
  if (std::ssize(hidden_) < pairs * F) hidden_.resize(static_cast<std::size_t>(pairs * F));
  pool_.parallel_for(E * F, 16, [&](tensor::Range range) {
    const std::span<float> gate = scratch(0, C);
    const std::span<float> up = scratch(1, C);
    for (std::int64_t row = range.begin; row < range.end; ++row) {
      const std::int64_t expert = row / F;
      const std::int64_t f = row % F;
      bool is_read = false;
      for (std::int64_t i = 0; i < pairs; ++i) {
        if (expert_of[i] != expert) continue;
        if (!std::exchange(is_read, true)) {
          dequantize_row(in[static_cast<std::size_t>(2 * expert)], f, gate);
          dequantize_row(in[static_cast<std::size_t>(2 * expert + 1)], f, up);
        }
        const float* const from = floats(x) + i / choices * C;
        hidden_[static_cast<std::size_t>(i * F + f)] = silu(dot(gate.data(), from, C)) * dot(up.data(), from, C);
      }
    }
  });
  pool_.parallel_for(N, 4, [&](tensor::Range range) {
    const std::span<float> row = scratch(0, F);
    const std::span<float> products = scratch(1, pairs);
    for (std::int64_t n = range.begin; n < range.end; ++n) {
      for (std::int64_t expert = 0; expert < E; ++expert) {
        bool is_read = false;
        for (std::int64_t i = 0; i < pairs; ++i) {
          if (expert_of[i] != expert) continue;
          if (!std::exchange(is_read, true)) dequantize_row(out[static_cast<std::size_t>(expert)], n, row);
          products[static_cast<std::size_t>(i)] = dot(row.data(), hidden_.data() + i * F, F);
        }
      }
      for (std::int64_t t = 0; t < tokens; ++t) {
        float sum = 0;
        for (std::int64_t i = t * choices; i < (t + 1) * choices; ++i) {
          sum += floats(weights)[i] * products[static_cast<std::size_t>(i)];
        }
        floats(y)[t * N + n] = sum;
      }
    }
  });
}

}  // namespace yoke::ops::ref

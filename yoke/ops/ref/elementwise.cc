// What looks at one row, or at one element, at a time.
#include <cmath>

#include "yoke/base/check.h"
#include "yoke/ops/ref/backend.h"
#include "yoke/ops/ref/dequantize.h"
#include "yoke/ops/ref/dot.h"

namespace yoke {
namespace {

void check_same(const Tensor& a, const Tensor& b) {
  YOKE_CHECK(a.shape() == b.shape() && a.shape().rank() == 2, "{} and {}", to_string(a.shape()), to_string(b.shape()));
}

}  // namespace

void RefBackend::rms_norm(const Tensor& x, const Tensor& weight, float epsilon, const Tensor& y) {
  check_same(x, y);
  const std::int64_t width = x.extent(1);
  const std::vector<float> factors = ref::to_floats(weight);
  YOKE_CHECK_EQ(std::ssize(factors), width);
  pool_.parallel_for(x.extent(0), 64, [&](Range rows) {
    for (std::int64_t t = rows.begin; t < rows.end; ++t) {
      const float* const from = x.row<float>(t);
      float* const to = y.mutable_row<float>(t);
      const float mean = ref::dot(from, from, width) / static_cast<float>(width);
      const float factor = 1 / std::sqrt(mean + epsilon);
      for (std::int64_t c = 0; c < width; ++c) to[c] = from[c] * factor * factors[static_cast<std::size_t>(c)];
    }
  });
}

void RefBackend::rotate(const Tensor& x, std::span<const std::int64_t> positions, const Rope& rope) {
  YOKE_CHECK(x.shape().rank() == 3 && x.extent(0) == std::ssize(positions) &&
                 x.extent(2) == 2 * std::ssize(rope.inverse_frequencies),
             "{} at {} positions", to_string(x.shape()), positions.size());
  const std::int64_t half = x.extent(2) / 2;
  pool_.parallel_for(x.extent(0), 16, [&](Range rows) {
    for (std::int64_t t = rows.begin; t < rows.end; ++t) {
      const RopeAngles angles = rope_angles(rope, positions[static_cast<std::size_t>(t)]);
      for (std::int64_t h = 0; h < x.extent(1); ++h) {
        float* const head = x.mutable_row<float>(t) + h * x.stride(1);
        for (std::int64_t i = 0; i < half; ++i) {
          const float cosine = angles.cosines[static_cast<std::size_t>(i)];
          const float sine = angles.sines[static_cast<std::size_t>(i)];
          const float a = head[i];
          const float b = head[i + half];
          head[i] = a * cosine - b * sine;
          head[i + half] = b * cosine + a * sine;
        }
      }
    }
  });
}

void RefBackend::swiglu(const Tensor& gate, const Tensor& up, const Tensor& y) {
  check_same(gate, up);
  check_same(gate, y);
  pool_.parallel_for(gate.extent(0), 4, [&](Range rows) {
    for (std::int64_t t = rows.begin; t < rows.end; ++t) {
      const float* const g = gate.row<float>(t);
      const float* const u = up.row<float>(t);
      float* const to = y.mutable_row<float>(t);
      for (std::int64_t c = 0; c < gate.extent(1); ++c) to[c] = g[c] / (1 + std::exp(-g[c])) * u[c];
    }
  });
}

void RefBackend::add(const Tensor& x, const Tensor& y) {
  check_same(x, y);
  for (std::int64_t t = 0; t < x.extent(0); ++t) {
    const float* const from = x.row<float>(t);
    float* const to = y.mutable_row<float>(t);
    for (std::int64_t c = 0; c < x.extent(1); ++c) to[c] += from[c];
  }
}

}  // namespace yoke

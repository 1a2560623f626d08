// What the exact results are, for tests: double precision, and written in other ways than the backends are, so that a
// mistake is not made twice. Numbers are decoded from the definition of their format, matrices bit by bit.
#pragma once
#include <cmath>
#include <complex>
#include <cstdint>
#include <cstring>
#include <vector>

#include "yoke/ops/backend.h"

namespace yoke::ops::oracle {

// sign, exponent and mantissa as IEEE 754 and its small relatives define them; no infinities are asked for.
inline double decode(std::uint32_t bits, int exponent_bits, int mantissa_bits) {
  const double sign = bits >> (exponent_bits + mantissa_bits) & 1U ? -1 : 1;
  const int exponent = static_cast<int>(bits >> mantissa_bits & ((1U << exponent_bits) - 1));
  const double mantissa = std::ldexp(static_cast<double>(bits & ((1U << mantissa_bits) - 1)), -mantissa_bits);
  const int bias = (1 << (exponent_bits - 1)) - 1;
  return exponent == 0 ? sign * std::ldexp(mantissa, 1 - bias) : sign * std::ldexp(1 + mantissa, exponent - bias);
}

inline std::uint32_t bits_at(const tensor::Tensor& tensor, std::int64_t row, std::int64_t column) {
  const std::size_t size = tensor::size_of(tensor.type());
  std::uint32_t bits = 0;
  std::memcpy(&bits, tensor.raw() + (row * tensor.stride(0) + column * tensor.stride(1)) * std::int64_t(size), size);
  return bits;
}

inline double number_at(const tensor::Tensor& tensor, std::int64_t row, std::int64_t column) {
  const std::uint32_t bits = oracle::bits_at(tensor, row, column);
  switch (tensor.type()) {
    case tensor::DType::kF32:
      return oracle::decode(bits, 8, 23);
    case tensor::DType::kBf16:
      return oracle::decode(bits, 8, 7);
    case tensor::DType::kF16:
      return oracle::decode(bits, 5, 10);
    default:
      return oracle::decode(bits, 4, 3);  // fp8 e4m3
  }
}

// All of a matrix, [rows * columns].
inline std::vector<double> dense(const tensor::Matrix& matrix) {
  std::vector<double> all;
  for (std::int64_t r = 0; r < matrix.rows; ++r) {
    for (std::int64_t c = 0; c < matrix.columns; ++c) {
      if (matrix.format == tensor::MatrixFormat::kPlain) {
        all.push_back(oracle::number_at(matrix.values, r, c));
        continue;
      }
      const std::int64_t group =
          matrix.has_order() ? matrix.order.data<std::int32_t>()[c * matrix.order.stride(0)] : c / matrix.scale_columns;
      const double scale = oracle::number_at(matrix.scales, r / matrix.scale_rows, group);
      if (matrix.format == tensor::MatrixFormat::kFp8) {
        all.push_back(oracle::number_at(matrix.values, r, c) * scale);
      } else if (matrix.format == tensor::MatrixFormat::kNvfp4) {
        const std::uint32_t code = oracle::bits_at(matrix.values, r, c / 2) / (c % 2 == 0 ? 1 : 16) % 16;
        all.push_back(oracle::decode(code, 2, 1) * scale * matrix.global_scale);
      } else if (matrix.format == tensor::MatrixFormat::kInt8) {
        const auto number = [](const tensor::Tensor& from, std::int64_t i, std::int64_t j) {
          const auto bits = static_cast<int>(oracle::bits_at(from, i, j));
          return from.type() == tensor::DType::kI8 && bits > 127 ? bits - 256 : bits;
        };
        int zero = matrix.values.type() == tensor::DType::kI8 ? 0 : 128;
        if (matrix.has_zeros()) zero = number(matrix.zeros, r, group);
        all.push_back((number(matrix.values, r, c) - zero) * scale);
      } else {
        std::uint32_t zero = 8;
        if (matrix.has_zeros()) {
          zero = (oracle::bits_at(matrix.zeros, r / 8, group) >> (r % 8 * 4)) % 16 +
                 static_cast<std::uint32_t>(matrix.zero_offset);
        }
        const std::uint32_t code = (oracle::bits_at(matrix.values, r, c / 8) >> (c % 8 * 4)) % 16;
        all.push_back((static_cast<double>(code) - zero) * scale);
      }
    }
  }
  return all;
}

// One query head over the first `count` tokens of a sequence, from token `begin` on; no maximum is subtracted, as tests
// keep scores small.
inline std::vector<double> attend(const std::vector<double>& q, const tensor::Tensor& all_keys,
                                  const tensor::Tensor& all_values, std::span<const std::int32_t> own_pages,
                                  std::int64_t kv_head, tensor::Range tokens, double scale) {
  const std::int64_t page_tokens = all_keys.extent(2);
  std::vector<double> y(q.size());
  double sum = 0;
  for (std::int64_t token = tokens.end - 1; token >= tokens.begin; --token) {
    const std::int64_t page = own_pages[static_cast<std::size_t>(token / page_tokens)];
    const auto vector_of = [&](const tensor::Tensor& pages) {
      return pages.slice(0, {page, page + 1})
          .slice(1, {kv_head, kv_head + 1})
          .copied()
          .reshaped({page_tokens, all_keys.extent(3)});
    };
    const tensor::Tensor keys = vector_of(all_keys);
    const tensor::Tensor values = vector_of(all_values);
    double score = 0;
    for (std::size_t d = 0; d < q.size(); ++d) {
      score += q[d] * number_at(keys, token % page_tokens, static_cast<std::int64_t>(d));
    }
    const double weight = std::exp(score * scale);
    sum += weight;
    for (std::size_t d = 0; d < q.size(); ++d) {
      y[d] += weight * number_at(values, token % page_tokens, static_cast<std::int64_t>(d));
    }
  }
  for (double& value : y) value /= sum;
  return y;
}

inline double silu(double x) { return 0.5 * x * (1 + std::tanh(x / 2)); }

inline std::complex<double> turned(double a, double b, double angle) {
  return std::complex<double>(a, b) * std::polar(1.0, angle);
}

}  // namespace yoke::ops::oracle

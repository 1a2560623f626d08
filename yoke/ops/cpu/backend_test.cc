// What is the processor's alone: rounded activations, instruction sets that agree, and weights that it refuses. The
// cases that all backends pass are in yoke/ops/backend_test.cc and invariance_test.cc.
#include "yoke/ops/cpu/backend.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "yoke/base/error.h"
#include "yoke/base/error_testing.h"
#include "yoke/ops/cases_testing.h"
#include "yoke/ops/cpu/instructions.h"
#include "yoke/ops/oracle_testing.h"

namespace yoke::ops::cpu {
namespace {

std::vector<std::string> instruction_sets() {
  std::vector<std::string> names;
  for (const Kernels& kernels : usable_kernels()) names.emplace_back(kernels.name);
  return names;
}

tensor::Tensor multiplied(Backend& ops, const tensor::Matrix& matrix, const tensor::Tensor& x) {
  const auto packed = ops.pack(std::span(&matrix, 1), MatrixUse::kLinear);
  const HeldSlab y = room(ops, {x.extent(0), matrix.rows});
  ops.linear(*packed, hold(ops, x), y);
  return fetch(ops, y);
}

// A row as int4 weights see it: in blocks of the packed columns, by the nearest of 255 steps.
std::vector<double> rounded_to_int8(const Panels& weights, const float* x, std::int64_t columns) {
  std::vector<double> rounded(static_cast<std::size_t>(columns));
  const std::int64_t block = weights.view().block;
  for (std::int64_t first = 0; first < block * weights.view().blocks; first += block) {
    std::vector<std::int64_t> members;
    for (std::int64_t place = first; place < first + block; ++place) {
      const std::int64_t column = weights.source().empty() ? place : weights.source()[static_cast<std::size_t>(place)];
      if (column >= 0 && column < columns) members.push_back(column);
    }
    float absmax = 0;
    for (const std::int64_t column : members) absmax = std::max(absmax, std::abs(x[column]));
    for (const std::int64_t column : members) {
      rounded[static_cast<std::size_t>(column)] =
          absmax == 0 ? 0 : static_cast<double>(std::nearbyint(x[column] * (127 / absmax))) * (absmax / 127);
    }
  }
  return rounded;
}

class FastTest : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(All, FastTest, testing::ValuesIn(instruction_sets()),
                         [](const auto& name) { return name.param; });

TEST_P(FastTest, ProductsAreThoseOfTheRoundedActivations) {
  const auto ops = make_backend("cpu", {.threads = 2, .instructions = GetParam()});
  const bool rounds_bf16 = kernels_named(GetParam()).multiply_bf16 != nullptr;
  Random random(11);
  for (const MatrixCase& storage : matrix_cases()) {
    for (const auto& [T, N, least_K] : linear_sizes()) {
      const std::int64_t K = tensor::ceil_divide(least_K, column_step(storage)) * column_step(storage);
      const tensor::Matrix matrix = random_matrix(storage, N, K, random);
      const Panels panels(matrix);
      const std::vector<double> weight = oracle::dense(matrix);
      const tensor::Tensor x = random_tensor({T, K}, random);
      const tensor::Tensor y = multiplied(*ops, matrix, x);
      double largest = 1;
      for (const double one : weight) largest = std::max(largest, std::abs(one));
      for (std::int64_t t = 0; t < T; ++t) {
        std::vector<double> in(x.row<float>(t), x.row<float>(t) + K);
        const PanelKind kind = panels.shape().kind;
        if (kind == PanelKind::kInt4 || kind == PanelKind::kInt8) in = rounded_to_int8(panels, x.row<float>(t), K);
        if (kind == PanelKind::kBf16 && rounds_bf16) {
          for (double& one : in) one = static_cast<double>(to_float(tensor::to_bf16(static_cast<float>(one))));
        }
        for (std::int64_t n = 0; n < N; ++n) {
          double exact = 0;
          for (std::int64_t k = 0; k < K; ++k)
            exact += weight[static_cast<std::size_t>(n * K + k)] * in[static_cast<std::size_t>(k)];
          ASSERT_NEAR(y.row<float>(t)[n], exact, tolerance(tensor::DType::kF32, K, largest))
              << storage.name << " T=" << T << " N=" << N << " K=" << K;
        }
      }
    }
  }
}

TEST_P(FastTest, BitsAreThoseOfEveryOtherInstructionSet) {
  const auto ops = make_backend("cpu", {.threads = 1, .instructions = GetParam()});
  const auto plain = make_backend("cpu", {.threads = 1, .instructions = "plain"});
  Random random(12);
  for (const MatrixCase& storage : matrix_cases()) {
    if (storage.type == tensor::DType::kBf16 && storage.format == tensor::MatrixFormat::kPlain)
      continue;  // own rounding
    for (const std::int64_t rows : {1, 7, 20}) {
      const tensor::Matrix matrix = random_matrix(storage, 35, 400, random);
      const tensor::Tensor x = random_tensor({rows, 400}, random);
      const tensor::Tensor a = multiplied(*ops, matrix, x);
      const tensor::Tensor b = multiplied(*plain, matrix, x);
      EXPECT_EQ(std::memcmp(a.raw(), b.raw(), a.bytes()), 0) << storage.name << " " << rows;
    }
  }
}

TEST_P(FastTest, ARowThatIsNoNumberGivesNoneAndLeavesTheOthers) {
  const auto ops = make_backend("cpu", {.threads = 1, .instructions = GetParam()});
  Random random(13);
  for (const MatrixCase& storage : matrix_cases()) {
    const tensor::Matrix matrix = random_matrix(storage, 17, 64, random);
    for (const float bad : {NAN, INFINITY}) {
      tensor::Tensor x = random_tensor({3, 64}, random);
      const tensor::Tensor good = multiplied(*ops, matrix, x);
      x.mutable_row<float>(1)[40] = bad;
      const tensor::Tensor y = multiplied(*ops, matrix, x);
      for (std::int64_t n = 0; n < 17; ++n) {
        EXPECT_FALSE(std::isfinite(y.row<float>(1)[n])) << storage.name;
        EXPECT_EQ(y.row<float>(0)[n], good.row<float>(0)[n]) << storage.name;
        EXPECT_EQ(y.row<float>(2)[n], good.row<float>(2)[n]) << storage.name;
      }
    }
  }
}

TEST_P(FastTest, NormsHaveTheBitsOfTheReference) {
  const auto ops = make_backend("cpu", {.threads = 1, .instructions = GetParam()});
  const auto reference = make_backend("ref", {.threads = 1});
  Random random(16);
  for (const std::int64_t width : {1, 15, 16, 17, 130}) {
    const tensor::Tensor weight = random_tensor({width}, random);
    const tensor::Tensor x = random_tensor({3, width}, random);
    const tensor::Tensor residual = random_tensor({3, width}, random);
    for (const bool adds : {false, true}) {
      std::vector<tensor::Tensor> got;
      for (Backend* const one : {ops.get(), reference.get()}) {
        const HeldSlab more = hold(*one, x), sum = hold(*one, residual), y = room(*one, {3, width});
        one->norm(adds ? &more.slab : nullptr, sum, hold(*one, weight), 1e-6F, y);
        got.push_back(fetch(*one, sum));
        got.push_back(fetch(*one, y));
      }
      EXPECT_EQ(std::memcmp(got[0].raw(), got[2].raw(), got[0].bytes()), 0) << width;
      EXPECT_EQ(std::memcmp(got[1].raw(), got[3].raw(), got[1].bytes()), 0) << width;
    }
  }
}

TEST_P(FastTest, WordsAreSummedAsTheyAre) {
  std::vector<std::uint64_t> words(64 * 24);
  for (std::size_t i = 0; i < words.size(); ++i) words[i] = i * 0x123456789abcdefULL;
  std::uint64_t sum = 0;
  for (const std::uint64_t word : words) sum += word;
  EXPECT_EQ(kernels_named(GetParam()).read(words.data(), words.size() * sizeof words[0]), sum);
  EXPECT_EQ(kernels_named(GetParam()).read_plainly(words.data(), words.size() * sizeof words[0]), sum);
}

TEST(CpuBackend, AnUnknownInstructionSetIsRefusedWithThoseThereAre) {
  EXPECT_ERROR(make_backend("cpu", {.instructions = "abacus"}), ErrorCode::kUnsupported, "abacus", "plain");
}

TEST(CpuBackend, WeightsThatAreNoNumbersAreRefused) {
  Random random(14);
  const auto ops = make_backend("cpu", {.threads = 1});
  for (const MatrixCase& storage : matrix_cases()) {
    tensor::Matrix matrix = random_matrix(storage, 3, 16, random);
    if (storage.format == tensor::MatrixFormat::kFp8) {
      matrix.values.mutable_raw()[5] = std::byte{0x7f};
    } else if (storage.format == tensor::MatrixFormat::kNvfp4) {
      matrix.scales.mutable_raw()[1] = std::byte{0xff};
    } else {
      continue;
    }
    EXPECT_ERROR(ops->pack(std::span(&matrix, 1), MatrixUse::kLinear), ErrorCode::kInvalid, "not a number");
  }
}

TEST(CpuBackend, PackedInt4TakesLittleMoreThanTheFile) {
  Random random(15);
  const auto ops = make_backend("cpu", {.threads = 1});
  const MatrixCase storage = matrix_cases()[4];
  ASSERT_EQ(storage.name, "int4_group128");
  const tensor::Matrix matrix = random_matrix(storage, 256, 1024, random);
  EXPECT_LE(ops->pack(std::span(&matrix, 1), MatrixUse::kLinear)->bytes(), matrix.bytes() * 101 / 100);
}

}  // namespace
}  // namespace yoke::ops::cpu

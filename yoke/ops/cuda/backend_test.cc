// What is the GPU's alone: rounded activations, bits that do not depend on how many rows there are, and what it
// refuses. The cases that all backends pass are in yoke/ops/backend_test.cc and invariance_test.cc.
#include "yoke/ops/cuda/backend.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "yoke/base/error_testing.h"
#include "yoke/ops/backends.h"
#include "yoke/ops/cases_testing.h"
#include "yoke/ops/oracle_testing.h"

namespace yoke::ops::cuda {
namespace {

class CudaBackendTest : public testing::Test {
 protected:
  void SetUp() override {
    if (const auto usable = cuda_usable(); !usable) GTEST_SKIP() << usable.error().message();
    ops_ = make_backend("cuda", {.threads = 2});
  }
  tensor::Tensor multiplied(std::span<const tensor::Matrix> stack, const tensor::Tensor& x,
                            Activation activation = Activation::kNone) {
    const auto packed = ops_->pack(stack, MatrixUse::kLinear);
    const HeldSlab y =
        room(*ops_, {x.extent(0), activation == Activation::kSwiglu ? packed->rows() / 2 : packed->rows()});
    ops_->linear(*packed, hold(*ops_, x), y, {.activation = activation});
    return fetch(*ops_, y);
  }

  std::unique_ptr<Backend> ops_;
  Random random_{21};
};

TEST_F(CudaBackendTest, ProductsAreThoseOfActivationsInBf16) {
  for (const MatrixCase& storage : matrix_cases()) {
    for (const auto& [T, N, least_K] : linear_sizes()) {
      const std::int64_t K = tensor::ceil_divide(least_K, column_step(storage)) * column_step(storage);
      const tensor::Matrix matrix = random_matrix(storage, N, K, random_);
      const std::vector<double> weight = oracle::dense(matrix);
      const tensor::Tensor x = random_tensor({T, K}, random_);
      const tensor::Tensor y = multiplied(std::span(&matrix, 1), x);
      double largest = 1;
      for (const double one : weight) largest = std::max(largest, std::abs(one));
      for (std::int64_t t = 0; t < T; ++t) {
        for (std::int64_t n = 0; n < N; ++n) {
          double exact = 0;
          for (std::int64_t k = 0; k < K; ++k) {
            exact += weight[static_cast<std::size_t>(n * K + k)] *
                     static_cast<double>(to_float(tensor::to_bf16(x.row<float>(t)[k])));
          }
          // Weights of f32 and f16 are sums of three and two numbers, and so is each product.
          const bool is_plain = storage.format == tensor::MatrixFormat::kPlain;
          const std::int64_t terms = !is_plain ? 1 : storage.type == tensor::DType::kF32 ? 3 : 2;
          ASSERT_NEAR(y.row<float>(t)[n], exact, tolerance(tensor::DType::kF32, terms * K, largest))
              << storage.name << " T=" << T << " N=" << N << " K=" << K;
        }
      }
    }
  }
}

// One row, sixteen, and a prompt take different kernels.
TEST_F(CudaBackendTest, ARowHasTheSameBitsAloneAndInAPrompt) {
  for (const MatrixCase& storage : matrix_cases()) {
    const std::vector<tensor::Matrix> stack = {random_matrix(storage, 85, 4352, random_),
                                               random_matrix(storage, 85, 4352, random_)};
    const tensor::Tensor x = random_tensor({150, 4352}, random_);
    for (const Activation activation : {Activation::kNone, Activation::kSwiglu}) {
      const tensor::Tensor all = multiplied(stack, x, activation);
      for (const tensor::Range rows : {tensor::Range{0, 1}, tensor::Range{130, 146}, tensor::Range{149, 150}}) {
        const tensor::Tensor part = multiplied(stack, x.slice(0, rows).copied(), activation);
        const tensor::Tensor same = all.slice(0, rows).copied();
        EXPECT_EQ(std::memcmp(part.raw(), same.raw(), part.bytes()), 0) << storage.name << " " << to_string(rows);
      }
    }
  }
}

TEST_F(CudaBackendTest, ARowThatIsNoNumberLeavesTheOthers) {
  for (const MatrixCase& storage : matrix_cases()) {
    const tensor::Matrix matrix = random_matrix(storage, 17, 64, random_);
    tensor::Tensor x = random_tensor({3, 64}, random_);
    const tensor::Tensor good = multiplied(std::span(&matrix, 1), x);
    x.mutable_row<float>(1)[40] = NAN;
    const tensor::Tensor y = multiplied(std::span(&matrix, 1), x);
    for (std::int64_t n = 0; n < 17; ++n) {
      EXPECT_TRUE(std::isnan(y.row<float>(1)[n])) << storage.name;
      EXPECT_EQ(y.row<float>(0)[n], good.row<float>(0)[n]) << storage.name;
      EXPECT_EQ(y.row<float>(2)[n], good.row<float>(2)[n]) << storage.name;
    }
  }
}

TEST_F(CudaBackendTest, WeightsThatAreNoNumbersAreRefused) {
  for (const MatrixCase& storage : matrix_cases()) {
    tensor::Matrix matrix = random_matrix(storage, 3, 16, random_);
    if (storage.format == tensor::MatrixFormat::kFp8) {
      matrix.values.mutable_raw()[5] = std::byte{0x7f};
    } else if (storage.format == tensor::MatrixFormat::kNvfp4) {
      matrix.scales.mutable_raw()[1] = std::byte{0xff};
    } else {
      continue;
    }
    EXPECT_ERROR(ops_->pack(std::span(&matrix, 1), MatrixUse::kLinear), ErrorCode::kInvalid, "not a number");
  }
}

TEST_F(CudaBackendTest, MoreMemoryThanTheDeviceHasIsRefused) {
  EXPECT_ERROR(ops_->allocate({std::int64_t{1} << 50}, tensor::DType::kU8), ErrorCode::kExhausted, "allocate");
}

TEST_F(CudaBackendTest, PackedInt4TakesLittleMoreThanTheFile) {
  const MatrixCase storage = matrix_cases()[4];
  ASSERT_EQ(storage.name, "int4_group128");
  const tensor::Matrix matrix = random_matrix(storage, 2048, 4096, random_);
  EXPECT_LE(ops_->pack(std::span(&matrix, 1), MatrixUse::kLinear)->bytes(), matrix.bytes() * 101 / 100);
}

// Many decode steps in a row, as attention takes them with splits in parallel, and a prompt that takes them in turns.
TEST_F(CudaBackendTest, AttentionInParallelSplitsHasTheBitsOfSplitsInTurns) {
  const AttentionCase attention{.name = "", .sequences = {{0, 1500}}, .heads = 8, .kv_heads = 2, .width = 64};
  const KvPages kv = random_pages(attention, random_);
  const HeldSlab keys = hold(*ops_, kv.keys);
  const HeldSlab values = hold(*ops_, kv.values);
  const tensor::Tensor qkv = random_tensor({1500, 12 * 64}, random_);
  const HeldSlab q = room(*ops_, {1500, 8, 64});
  const HeadsOptions heads{.heads = 8, .kv_heads = 2, .width = 64};
  ops_->begin_step(kv.step.batch(), kv.room, no_rope(64));
  ops_->place_heads(hold(*ops_, qkv), heads, {keys, values}, q);
  ops_->attend(q, {keys, values}, q, {.scale = 0.125F});
  const tensor::Tensor whole = fetch(*ops_, q);
  for (const std::int64_t position : {0, 255, 256, 1023, 1499}) {
    StepRows step;
    step.add_sequence(position, std::vector<std::int32_t>{0}, kv.pages[0]);
    const HeldSlab one = room(*ops_, {1, 8, 64});
    ops_->begin_step(step.batch(), kv.room, no_rope(64));
    ops_->place_heads(hold(*ops_, qkv.slice(0, {position, position + 1})), heads, {keys, values}, one);
    ops_->attend(one, {keys, values}, one, {.scale = 0.125F});
    const tensor::Tensor alone = fetch(*ops_, one);
    EXPECT_EQ(std::memcmp(alone.raw(), whole.row<float>(position), alone.bytes()), 0) << position;
  }
}

TEST(CudaBackend, SaysWhyItIsNotUsable) {
  const auto usable = cuda_usable();
  if (usable) GTEST_SKIP() << "this machine has a GPU that it can use";
  EXPECT_FALSE(usable.error().message().empty());
  EXPECT_FALSE(usable.error().hint().empty());
  EXPECT_ERROR(make_backend("cuda"), usable.error().code(), usable.error().message());
  EXPECT_EQ(resolved_backend("auto"), "cpu");
}

}  // namespace
}  // namespace yoke::ops::cuda

// Every backend over all cases, against the exact results of oracle.h.
#include "yoke/ops/backend.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "yoke/base/error.h"
#include "yoke/ops/backends.h"
#include "yoke/ops/cases_testing.h"
#include "yoke/ops/oracle_testing.h"

namespace yoke {
namespace {

constexpr std::uint64_t kSeed = 20261115;

class BackendTest : public testing::TestWithParam<std::string> {
 protected:
  std::unique_ptr<Backend> ops_ = make_backend(GetParam(), {.threads = 3});
  Random random_{kSeed};
};
INSTANTIATE_TEST_SUITE_P(All, BackendTest, testing::ValuesIn(backend_names()),
                         [](const auto& backend) { return backend.param; });

double largest(const std::vector<double>& values) {
  double most = 0;
  for (const double value : values) most = std::max(most, std::abs(value));
  return most;
}

TEST_P(BackendTest, LinearIsTheSumOfProductsForEveryFormatAndSize) {
  for (const MatrixCase& storage : matrix_cases()) {
    for (const auto& [T, N, least_K] : linear_sizes()) {
      const std::int64_t K = ceil_divide(least_K, column_step(storage)) * column_step(storage);
      const Matrix matrix = random_matrix(storage, N, K, random_);
      const std::vector<double> weight = oracle::dense(matrix);
      const auto packed = ops_->pack(matrix);
      const Tensor x = random_tensor(*ops_, {T, K}, random_);
      const Tensor bias = random_tensor(*ops_, {N}, random_);
      const Tensor y = ops_->allocate({T, N}, DType::kF32);
      ops_->linear(*packed, x, y, {.bias = &bias});
      ops_->wait();
      const double allowed = tolerance(DType::kF32, K, std::max(1.0, largest(weight)));
      for (std::int64_t t = 0; t < T; ++t) {
        for (std::int64_t n = 0; n < N; ++n) {
          double exact = bias.data<float>()[n];
          for (std::int64_t k = 0; k < K; ++k)
            exact += weight[static_cast<std::size_t>(n * K + k)] * x.row<float>(t)[k];
          ASSERT_NEAR(y.row<float>(t)[n], exact, allowed) << storage.name << " T=" << T << " N=" << N << " K=" << K;
        }
      }
    }
  }
}

TEST_P(BackendTest, LinearOfASliceIsTheSliceOfLinear) {
  for (const MatrixCase& storage : matrix_cases()) {
    const std::int64_t N = 64;
    const std::int64_t K = 512;
    const Matrix matrix = random_matrix(storage, N, K, random_);
    const Tensor x = random_tensor(*ops_, {3, K}, random_);
    const Tensor whole = ops_->allocate({3, N}, DType::kF32);
    ops_->linear(*ops_->pack(matrix), x, whole);
    const Tensor rows = ops_->allocate({3, N / 2}, DType::kF32);
    ops_->linear(*ops_->pack(matrix.sliced(Slice::rows({N / 2, N}))), x, rows);
    Tensor sum = Tensor::zeros({3, N}, DType::kF32);
    for (const Range half : {Range{0, K / 2}, Range{K / 2, K}}) {
      const Tensor part = ops_->allocate({3, N}, DType::kF32);
      ops_->linear(*ops_->pack(matrix.sliced(Slice::columns(half))), x.slice(1, half), part);
      ops_->wait();
      for (std::int64_t i = 0; i < 3 * N; ++i) sum.mutable_data<float>()[i] += part.data<float>()[i];
    }
    ops_->wait();
    const double allowed = tolerance(DType::kF32, K, largest(oracle::dense(matrix)));
    for (std::int64_t t = 0; t < 3; ++t) {
      for (std::int64_t n = 0; n < N; ++n) {
        ASSERT_NEAR(sum.row<float>(t)[n], whole.row<float>(t)[n], allowed) << storage.name;
      }
      for (std::int64_t n = 0; n < N / 2; ++n) {
        ASSERT_EQ(rows.row<float>(t)[n], whole.row<float>(t)[N / 2 + n]) << storage.name;
      }
    }
  }
}

TEST_P(BackendTest, APackedMatrixDoesNotNeedItsSource) {
  Tensor source = Tensor::zeros({2, 3}, DType::kF32);
  const auto packed = ops_->pack(plain_matrix(Tensor::borrow(source.mutable_span<float>(), {2, 3})));
  for (float& value : source.mutable_span<float>()) value = NAN;
  const Tensor x = random_tensor(*ops_, {1, 3}, random_);
  const Tensor y = ops_->allocate({1, 2}, DType::kF32);
  ops_->linear(*packed, x, y);
  ops_->wait();
  EXPECT_EQ(y.data<float>()[1], 0.0F);
}

TEST_P(BackendTest, AMatrixMayLieMisalignedAsInAFile) {
  const Tensor values = random_tensor(*ops_, {5, 7}, random_);
  const Storage file = Storage::allocate(values.bytes() + 1);
  std::memcpy(file.mutable_data() + 1, values.raw(), values.bytes());
  const auto packed = ops_->pack(plain_matrix(Tensor(file, {5, 7}, DType::kF32, 1)));
  const Tensor y = ops_->allocate({1, 7}, DType::kF32);
  ops_->embed(*packed, std::vector<std::int32_t>{4}, y);
  ops_->wait();
  for (std::int64_t c = 0; c < 7; ++c) EXPECT_EQ(y.data<float>()[c], values.row<float>(4)[c]);
}

TEST_P(BackendTest, EmbedGivesRowsAndZerosOutsideTheTable) {
  for (const MatrixCase& storage : matrix_cases()) {
    const Matrix matrix = random_matrix(storage, 9, 64, random_);
    const std::vector<double> table = oracle::dense(matrix);
    const std::vector<std::int32_t> ids = {108, 100, 99, 109, 103, -1};
    const Tensor y = ops_->allocate({6, 64}, DType::kF32);
    ops_->embed(*ops_->pack(matrix), ids, y, {.first_id = 100});
    ops_->wait();
    for (std::size_t t = 0; t < ids.size(); ++t) {
      const std::int64_t row = ids[t] - 100;
      for (std::int64_t c = 0; c < 64; ++c) {
        const double exact = row >= 0 && row < 9 ? table[static_cast<std::size_t>(row * 64 + c)] : 0;
        ASSERT_NEAR(y.row<float>(static_cast<std::int64_t>(t))[c], exact, tolerance(DType::kF32, 1, largest(table)));
      }
    }
  }
}

TEST_P(BackendTest, RmsNormFollowsItsFormula) {
  for (const auto& [T, C] : row_sizes()) {
    const Tensor x = random_tensor(*ops_, {T, C}, random_);
    const Tensor weight = random_tensor(*ops_, {C}, random_);
    const Tensor y = ops_->allocate({T, C}, DType::kF32);
    ops_->rms_norm(x, weight, 1e-5F, y);
    ops_->wait();
    for (std::int64_t t = 0; t < T; ++t) {
      double sum = 0;
      for (std::int64_t c = 0; c < C; ++c) sum += std::pow(x.row<float>(t)[c], 2.0);
      const double length = std::hypot(std::sqrt(sum / static_cast<double>(C)), std::sqrt(1e-5));
      for (std::int64_t c = 0; c < C; ++c) {
        const double exact = x.row<float>(t)[c] / length * weight.data<float>()[c];
        ASSERT_NEAR(y.row<float>(t)[c], exact, tolerance(DType::kF32, C, std::abs(exact))) << T << " x " << C;
      }
    }
    ops_->rms_norm(x, weight, 1e-5F, x);
    ops_->wait();
    for (std::int64_t i = 0; i < x.count(); ++i) ASSERT_EQ(x.data<float>()[i], y.data<float>()[i]) << "in place";
  }
}

TEST_P(BackendTest, RotateTurnsPairsByTheAngleOfTheirPosition) {
  const Rope rope{{1.0F, 0.3F, 0.01F}};
  const std::vector<std::int64_t> positions = {0, 1, 77, 2047};
  const Tensor x = random_tensor(*ops_, {4, 3, 6}, random_);
  const Tensor before = x.copied();
  ops_->rotate(x, positions, rope);
  ops_->wait();
  for (std::int64_t t = 0; t < 4; ++t) {
    for (std::int64_t h = 0; h < 3; ++h) {
      const float* const from = before.row<float>(t) + h * 6;
      const float* const to = x.row<float>(t) + h * 6;
      for (std::size_t i = 0; i < 3; ++i) {
        const float angle = static_cast<float>(positions[static_cast<std::size_t>(t)]) * rope.inverse_frequencies[i];
        const std::complex<double> exact = oracle::turned(from[i], from[i + 3], angle);
        ASSERT_NEAR(to[i], exact.real(), tolerance(DType::kF32, 2, 1));
        ASSERT_NEAR(to[i + 3], exact.imag(), tolerance(DType::kF32, 2, 1));
      }
    }
  }
}

TEST_P(BackendTest, AttentionIsTheSoftmaxOverAllTokensUpToTheQuery) {
  for (const AttentionCase& attention : attention_cases()) {
    const KvPages kv = random_pages(*ops_, attention, random_);
    const KvView view = kv.view();
    std::int64_t T = 0;
    for (const KvSequence& sequence : view.sequences) T += sequence.fresh;
    const Tensor k = random_tensor(*ops_, {T, attention.kv_heads, attention.width}, random_);
    const Tensor v = random_tensor(*ops_, {T, attention.kv_heads, attention.width}, random_);
    const Tensor q = random_tensor(*ops_, {T, attention.heads, attention.width}, random_);
    const Tensor y = ops_->allocate(q.shape(), DType::kF32);
    const float scale = 1 / std::sqrt(static_cast<float>(attention.width));
    ops_->store_kv(k, v, view);
    ops_->attend(q, view, y, {.scale = scale, .window = attention.window});
    ops_->wait();
    std::int64_t row = 0;
    for (const KvSequence& sequence : view.sequences) {
      for (std::int64_t i = 0; i < sequence.fresh; ++i, ++row) {
        const std::int64_t end = sequence.context + i + 1;
        const Range tokens{attention.window > 0 ? std::max<std::int64_t>(0, end - attention.window) : 0, end};
        for (std::int64_t h = 0; h < attention.heads; ++h) {
          const float* const head = q.row<float>(row) + h * attention.width;
          const std::int64_t kv_head = h * attention.kv_heads / attention.heads;
          const std::vector<double> exact =
              oracle::attend({head, head + attention.width}, view, sequence, kv_head, tokens, scale);
          for (std::int64_t d = 0; d < attention.width; ++d) {
            ASSERT_NEAR(y.row<float>(row)[h * attention.width + d], exact[static_cast<std::size_t>(d)],
                        tolerance(DType::kF32, tokens.size() + attention.width, 1))
                << attention.name << " row " << row << " head " << h;
          }
        }
      }
    }
  }
}

TEST_P(BackendTest, StoredKeysAndValuesAreThoseOfTheirTokens) {
  const AttentionCase attention{.name = "", .sequences = {{15, 3}}, .type = DType::kBf16};
  const KvPages kv = random_pages(*ops_, attention, random_);
  const Tensor k = random_tensor(*ops_, {3, 2, 16}, random_);
  const Tensor v = random_tensor(*ops_, {3, 2, 16}, random_);
  ops_->store_kv(k, v, kv.view());
  ops_->wait();
  // Token 17 is slot 1 of the second page; of head 1 the element 5.
  const std::int64_t at = ((kv.pages[0][1] * 2 + 1) * 16 + 1) * 16 + 5;
  EXPECT_EQ(kv.keys.data<Bf16>()[at], to_bf16(k.row<float>(2)[16 + 5]));
  EXPECT_EQ(kv.values.data<Bf16>()[at], to_bf16(v.row<float>(2)[16 + 5]));
}

TEST_P(BackendTest, SwigluAndAddGoElementByElement) {
  for (const auto& [T, C] : row_sizes()) {
    const Tensor gate = random_tensor(*ops_, {T, C}, random_);
    if (T > 0) gate.mutable_data<float>()[0] = -100;  // exp(100) must not become infinity times zero
    const Tensor up = random_tensor(*ops_, {T, C}, random_);
    const Tensor y = ops_->allocate({T, C}, DType::kF32);
    ops_->swiglu(gate, up, y);
    const Tensor sum = up.copied();
    ops_->add(gate, sum);
    ops_->wait();
    for (std::int64_t i = 0; i < T * C; ++i) {
      const double g = gate.data<float>()[i];
      const double u = up.data<float>()[i];
      ASSERT_NEAR(y.data<float>()[i], oracle::silu(g) * u, tolerance(DType::kF32, 1, 1));
      ASSERT_EQ(sum.data<float>()[i], gate.data<float>()[i] + up.data<float>()[i]);
    }
  }
}

TEST_P(BackendTest, CandidatesAreTheBestInOrderWithTheSumOfAll) {
  for (const std::int64_t V : {1, 2, 7, 255, 256, 257, 1009}) {
    const Tensor logits = random_tensor(*ops_, {3, V}, random_);
    for (float& logit : logits.mutable_span<float>()) logit = std::round(logit * 40);  // many are equal
    const auto rows = ops_->candidates(logits, {.count = 256, .first_id = 1000});
    ASSERT_EQ(rows.size(), 3U);
    for (std::int64_t t = 0; t < 3; ++t) {
      const float* const row = logits.row<float>(t);
      std::vector<std::pair<float, std::int32_t>> sorted;
      double sum = 0;
      for (std::int64_t i = 0; i < V; ++i) {
        sorted.emplace_back(-row[i], 1000 + i);
        sum += std::exp(static_cast<double>(row[i]));
      }
      std::sort(sorted.begin(), sorted.end());
      const Candidates& best = rows[static_cast<std::size_t>(t)];
      ASSERT_EQ(best.ids.size(), static_cast<std::size_t>(std::min<std::int64_t>(V, 256)));
      for (std::size_t i = 0; i < best.ids.size(); ++i) {
        ASSERT_EQ(best.ids[i], sorted[i].second);
        ASSERT_EQ(best.logits[i], -sorted[i].first);
      }
      const double log_sum = std::log(sum);
      EXPECT_NEAR(best.max + std::log(best.sum), log_sum, tolerance(DType::kF32, V, std::abs(log_sum) + 1));
    }
  }
}

TEST_P(BackendTest, NaNIsNeverTheBest) {
  const Tensor logits = ops_->allocate({1, 3}, DType::kF32);
  logits.mutable_data<float>()[0] = std::numeric_limits<float>::quiet_NaN();
  logits.mutable_data<float>()[1] = -5;
  logits.mutable_data<float>()[2] = -4;
  EXPECT_EQ(ops_->candidates(logits, {.count = 1})[0].ids[0], 2);
}

TEST(Backends, AnUnknownOneIsToldWithThoseThereAre) {
  try {
    make_backend("abacus");
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(error.hint().find("ref"), std::string::npos);
  }
}

}  // namespace
}  // namespace yoke

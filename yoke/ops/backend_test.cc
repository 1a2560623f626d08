// Every backend over all cases, against the exact results of oracle_testing.h.
#include "yoke/ops/backend.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "yoke/base/error.h"
#include "yoke/base/error_testing.h"
#include "yoke/ops/backends.h"
#include "yoke/ops/cases_testing.h"
#include "yoke/ops/oracle_testing.h"

namespace yoke::ops {
namespace {

constexpr std::uint64_t kSeed = 20261115;

class BackendTest : public testing::TestWithParam<BackendVariant> {
 protected:
  // A step of so many rows, for operations that need one.
  void begin_rows(std::int64_t rows, std::vector<std::int32_t> logit_rows = {}) {
    StepRows step;
    step.add_sequence(0, std::vector<std::int32_t>(static_cast<std::size_t>(rows), 0),
                      std::vector<std::int32_t>(static_cast<std::size_t>(rows), 0));
    step.logit_rows = std::move(logit_rows);
    ops_->begin_step(step.batch(), {.pages = 1, .page_tokens = 1}, no_rope(2));
  }
  tensor::Tensor linear(std::span<const tensor::Matrix> stack, const tensor::Tensor& x,
                        const tensor::Tensor* bias = nullptr, Activation activation = Activation::kNone) {
    const auto packed = ops_->pack(stack, MatrixUse::kLinear);
    const HeldSlab in = hold(*ops_, x);
    std::optional<HeldSlab> added;
    if (bias != nullptr) added = hold(*ops_, *bias);
    const std::int64_t rows = activation == Activation::kSwiglu ? packed->rows() / 2 : packed->rows();
    const HeldSlab out = room(*ops_, {x.extent(0), rows});
    ops_->linear(*packed, in, out, {.bias = added ? &added->slab : nullptr, .activation = activation});
    return fetch(*ops_, out);
  }
  tensor::Tensor linear(const tensor::Matrix& matrix, const tensor::Tensor& x) {
    return linear(std::span(&matrix, 1), x);
  }

  std::unique_ptr<Backend> ops_ = GetParam().make(3);
  Random random_{kSeed};
};
INSTANTIATE_TEST_SUITE_P(All, BackendTest, testing::ValuesIn(exact_variants()), label_of);

double largest(const std::vector<double>& values) {
  double most = 0;
  for (const double value : values) most = std::max(most, std::abs(value));
  return most;
}

TEST_P(BackendTest, LinearIsTheSumOfProductsForEveryFormatAndSize) {
  for (const MatrixCase& storage : matrix_cases()) {
    for (const auto& [T, N, least_K] : linear_sizes()) {
      const std::int64_t K = tensor::ceil_divide(least_K, column_step(storage)) * column_step(storage);
      const tensor::Matrix matrix = random_matrix(storage, N, K, random_);
      const std::vector<double> weight = oracle::dense(matrix);
      const tensor::Tensor x = random_tensor({T, K}, random_);
      const tensor::Tensor bias = random_tensor({N}, random_);
      const tensor::Tensor y = linear(std::span(&matrix, 1), x, &bias);
      const double allowed = tolerance(tensor::DType::kF32, K, std::max(1.0, largest(weight)));
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

TEST_P(BackendTest, AStackIsItsPartsOneByOne) {
  const auto cases = matrix_cases();
  for (std::size_t first = 0; first < cases.size(); ++first) {  // mixed formats: files have such
    std::vector<tensor::Matrix> stack;
    for (const std::int64_t rows : {17, 1, 16}) {
      stack.push_back(random_matrix(cases[(first + stack.size()) % cases.size()], rows, 64, random_));
    }
    const tensor::Tensor x = random_tensor({5, 64}, random_);
    const tensor::Tensor all = linear(stack, x);
    std::int64_t begin = 0;
    for (const tensor::Matrix& part : stack) {
      const tensor::Tensor alone = linear(part, x);
      for (std::int64_t t = 0; t < 5; ++t) {
        for (std::int64_t n = 0; n < part.rows; ++n) ASSERT_EQ(all.row<float>(t)[begin + n], alone.row<float>(t)[n]);
      }
      begin += part.rows;
    }
  }
}

TEST_P(BackendTest, SwigluOfAStackIsThatOfItsParts) {
  for (const MatrixCase& storage : matrix_cases()) {
    const std::vector<tensor::Matrix> stack = {random_matrix(storage, 15, 64, random_),
                                               random_matrix(storage, 15, 64, random_)};
    tensor::Tensor x = random_tensor({3, 64}, random_);
    for (float& value : x.mutable_span<float>()) value *= 30;  // exp(-g) must not make infinity times zero
    const tensor::Tensor bias = random_tensor({30}, random_);
    const tensor::Tensor both = linear(stack, x, &bias);
    const tensor::Tensor y = linear(stack, x, &bias, Activation::kSwiglu);
    for (std::int64_t t = 0; t < 3; ++t) {
      for (std::int64_t n = 0; n < 15; ++n) {
        const double g = both.row<float>(t)[n];
        const double u = both.row<float>(t)[15 + n];
        const double exact = oracle::silu(g) * u;
        ASSERT_NEAR(y.row<float>(t)[n], exact, tolerance(tensor::DType::kF32, 1, std::max(1.0, std::abs(exact))))
            << storage.name;
      }
    }
  }
}

TEST_P(BackendTest, PackedBytesAreWhatPackingTakes) {
  for (const MatrixCase& storage : matrix_cases()) {
    const tensor::Matrix whole = random_matrix(storage, 64, 512, random_);
    for (const tensor::Slice slice :
         {tensor::Slice{}, tensor::Slice::rows({32, 64}), tensor::Slice::columns({0, 256})}) {
      const std::vector<tensor::Matrix> stack = {whole.sliced(slice), whole.sliced(slice)};
      const std::vector<tensor::MatrixInfo> infos = {tensor::describe(stack[0]), tensor::describe(stack[1])};
      EXPECT_EQ(ops_->packed_bytes(infos, MatrixUse::kLinear), ops_->pack(stack, MatrixUse::kLinear)->bytes())
          << storage.name;
    }
  }
}

TEST_P(BackendTest, LinearOfASliceIsTheSliceOfLinear) {
  for (const MatrixCase& storage : matrix_cases()) {
    const std::int64_t N = 64;
    const std::int64_t K = 512;
    const tensor::Matrix matrix = random_matrix(storage, N, K, random_);
    const tensor::Tensor x = random_tensor({3, K}, random_);
    const tensor::Tensor whole = linear(matrix, x);
    const tensor::Tensor rows = linear(matrix.sliced(tensor::Slice::rows({N / 2, N})), x);
    tensor::Tensor sum = tensor::Tensor::zeros({3, N}, tensor::DType::kF32);
    for (const tensor::Range half : {tensor::Range{0, K / 2}, tensor::Range{K / 2, K}}) {
      const tensor::Tensor part = linear(matrix.sliced(tensor::Slice::columns(half)), x.slice(1, half).copied());
      for (std::int64_t i = 0; i < 3 * N; ++i) sum.mutable_data<float>()[i] += part.data<float>()[i];
    }
    const double allowed = tolerance(tensor::DType::kF32, K, largest(oracle::dense(matrix)));
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
  tensor::Tensor source = tensor::Tensor::zeros({2, 3}, tensor::DType::kF32);
  const tensor::Matrix matrix = tensor::plain_matrix(tensor::Tensor::borrow(source.mutable_span<float>(), {2, 3}));
  const auto packed = ops_->pack(std::span(&matrix, 1), MatrixUse::kLinear);
  for (float& value : source.mutable_span<float>()) value = NAN;
  const HeldSlab x = hold(*ops_, random_tensor({1, 3}, random_));
  const HeldSlab y = room(*ops_, {1, 2});
  ops_->linear(*packed, x, y);
  EXPECT_EQ(fetch(*ops_, y).data<float>()[1], 0.0F);
}

TEST_P(BackendTest, EmbedGivesRowsAndZerosOutsideTheTableAlsoOfAMisalignedFile) {
  for (const MatrixCase& storage : matrix_cases()) {
    const tensor::Matrix matrix = random_matrix(storage, 9, 64, random_);
    const std::vector<double> table = oracle::dense(matrix);
    const std::vector<std::int32_t> ids = {108, 100, 99, 109, 103, -1};
    StepRows step;
    step.add_sequence(0, ids, std::vector<std::int32_t>(6, 0));
    ops_->begin_step(step.batch(), {.pages = 1, .page_tokens = 1}, no_rope(2));
    const HeldSlab y = room(*ops_, {6, 64});
    ops_->embed(*ops_->pack(std::span(&matrix, 1), MatrixUse::kTable), 100, y);
    const tensor::Tensor rows = fetch(*ops_, y);
    for (std::size_t t = 0; t < ids.size(); ++t) {
      const std::int64_t row = ids[t] - 100;
      for (std::int64_t c = 0; c < 64; ++c) {
        const double exact = row >= 0 && row < 9 ? table[static_cast<std::size_t>(row * 64 + c)] : 0;
        ASSERT_NEAR(rows.row<float>(static_cast<std::int64_t>(t))[c], exact,
                    tolerance(tensor::DType::kF32, 1, largest(table)));
      }
    }
  }
  const tensor::Tensor values = random_tensor({5, 7}, random_);
  const tensor::Storage file = tensor::Storage::allocate(values.bytes() + 1);
  std::memcpy(file.mutable_data() + 1, values.raw(), values.bytes());
  const tensor::Matrix misaligned = tensor::plain_matrix(tensor::Tensor(file, {5, 7}, tensor::DType::kF32, 1));
  begin_rows(1);
  const HeldSlab y = room(*ops_, {1, 7});
  ops_->embed(*ops_->pack(std::span(&misaligned, 1), MatrixUse::kTable), -4, y);
  for (std::int64_t c = 0; c < 7; ++c) EXPECT_EQ(fetch(*ops_, y).data<float>()[c], values.row<float>(4)[c]);
}

TEST_P(BackendTest, NormAddsToTheResidualAndFollowsItsFormula) {
  for (const auto& [T, C] : row_sizes()) {
    const tensor::Tensor before = random_tensor({T, C}, random_);
    const tensor::Tensor x = random_tensor({T, C}, random_);
    const tensor::Tensor weight = random_tensor({C}, random_);
    const HeldSlab residual = hold(*ops_, before);
    const HeldSlab added = hold(*ops_, x);
    const HeldSlab held_weight = hold(*ops_, weight);
    const HeldSlab y = room(*ops_, {T, C});
    ops_->norm(nullptr, residual, held_weight, 1e-5F, y);
    for (const bool adds : {false, true}) {
      if (adds) ops_->norm(&added.slab, residual, held_weight, 1e-5F, y);
      const tensor::Tensor sums = fetch(*ops_, residual);
      const tensor::Tensor normed = fetch(*ops_, y);
      for (std::int64_t t = 0; t < T; ++t) {
        double sum = 0;
        for (std::int64_t c = 0; c < C; ++c) sum += std::pow(sums.row<float>(t)[c], 2.0);
        const double length = std::hypot(std::sqrt(sum / static_cast<double>(C)), std::sqrt(1e-5));
        for (std::int64_t c = 0; c < C; ++c) {
          ASSERT_EQ(sums.row<float>(t)[c],
                    adds ? before.row<float>(t)[c] + x.row<float>(t)[c] : before.row<float>(t)[c]);
          const double exact = sums.row<float>(t)[c] / length * weight.data<float>()[c];
          ASSERT_NEAR(normed.row<float>(t)[c], exact, tolerance(tensor::DType::kF32, C, std::abs(exact)))
              << T << " x " << C;
        }
      }
    }
    const HeldSlab plain = hold(*ops_, before);
    ops_->add(added, plain);
    const tensor::Tensor plain_sums = fetch(*ops_, plain);
    const tensor::Tensor sums = fetch(*ops_, residual);
    EXPECT_EQ(std::memcmp(plain_sums.raw(), sums.raw(), sums.bytes()), 0);
  }
}

TEST_P(BackendTest, PlacedHeadsAreNormedTurnedAndInTheirPages) {
  const Rope rope{{1.0F, 0.3F, 0.01F}};
  const std::int64_t H = 3, Hkv = 2, D = 6;
  for (const bool norms : {false, true}) {
    for (const tensor::DType type : {tensor::DType::kF32, tensor::DType::kBf16}) {
      StepRows step;
      step.add_sequence(15, std::vector<std::int32_t>(3, 0), std::vector<std::int32_t>{1, 0});
      step.add_sequence(0, std::vector<std::int32_t>(1, 0), std::vector<std::int32_t>{2});
      ops_->begin_step(step.batch(), {.pages = 3, .page_tokens = 16}, rope);
      const tensor::Tensor qkv = random_tensor({4, (H + 2 * Hkv) * D}, random_);
      const tensor::Tensor weight = random_tensor({D}, random_);
      const HeldSlab held_weight = hold(*ops_, weight);
      const HeldSlab keys = room(*ops_, {3, Hkv, 16, D}, type);
      const HeldSlab values = room(*ops_, {3, Hkv, 16, D}, type);
      const HeldSlab q = room(*ops_, {4, H, D});
      const Slab* const norm = norms ? &held_weight.slab : nullptr;
      ops_->place_heads(hold(*ops_, qkv),
                        {.heads = H, .kv_heads = Hkv, .width = D, .q_norm = norm, .k_norm = norm, .epsilon = 1e-6F},
                        {keys, values}, q);
      const tensor::Tensor placed_q = fetch(*ops_, q);
      const tensor::Tensor placed_k = fetch(*ops_, keys);
      const tensor::Tensor placed_v = fetch(*ops_, values);
      const double allowed = tolerance(type, 8, 4);
      for (std::int64_t t = 0; t < 4; ++t) {
        const std::int64_t position = t < 3 ? 15 + t : 0;
        const std::int64_t page = t == 3 ? 2 : position < 16 ? 1 : 0;
        for (std::int64_t head = 0; head < H + Hkv; ++head) {
          const float* const from = qkv.row<float>(t) + head * D;
          double squares = 0;
          for (std::int64_t d = 0; d < D; ++d) squares += std::pow(from[d], 2.0);
          const double length = norms ? std::sqrt(squares / D + 1e-6) : 1;
          const auto exact_of = [&](std::int64_t i) {
            const double a = from[i] / length * (norms ? weight.data<float>()[i] : 1.0F);
            const double b = from[i + 3] / length * (norms ? weight.data<float>()[i + 3] : 1.0F);
            return oracle::turned(a, b,
                                  static_cast<float>(position) * rope.inverse_frequencies[static_cast<std::size_t>(i)]);
          };
          const std::int64_t row = (page * Hkv + head - H) * 16 + position % 16;
          for (std::int64_t i = 0; i < 3; ++i) {
            const bool is_q = head < H;
            const tensor::Tensor keys_flat = placed_k.reshaped({3 * Hkv * 16, D});
            const double first = is_q ? placed_q.row<float>(t)[head * D + i] : oracle::number_at(keys_flat, row, i);
            const double second =
                is_q ? placed_q.row<float>(t)[head * D + i + 3] : oracle::number_at(keys_flat, row, i + 3);
            ASSERT_NEAR(first, exact_of(i).real(), allowed) << t << " " << head;
            ASSERT_NEAR(second, exact_of(i).imag(), allowed) << t << " " << head;
          }
          if (head < H) continue;
          const tensor::Tensor values_flat = placed_v.reshaped({3 * Hkv * 16, D});
          for (std::int64_t d = 0; d < D; ++d) {
            const float given = qkv.row<float>(t)[(head + Hkv) * D + d];
            ASSERT_EQ(static_cast<float>(oracle::number_at(values_flat, row, d)),
                      type == tensor::DType::kF32 ? given : tensor::to_float(tensor::to_bf16(given)));
          }
        }
      }
    }
  }
}

TEST_P(BackendTest, AttentionIsTheSoftmaxOverAllTokensUpToTheQuery) {
  for (const AttentionCase& attention : attention_cases()) {
    const KvPages kv = random_pages(attention, random_);
    const std::int64_t T = kv.step.batch().tokens();
    const std::int64_t heads = attention.heads + 2 * attention.kv_heads;
    const HeldSlab keys = hold(*ops_, kv.keys);
    const HeldSlab values = hold(*ops_, kv.values);
    const HeldSlab q = room(*ops_, {T, attention.heads, attention.width});
    const HeldSlab y = room(*ops_, {T, attention.heads, attention.width});
    const float scale = 1 / std::sqrt(static_cast<float>(attention.width));
    ops_->begin_step(kv.step.batch(), kv.room, no_rope(attention.width));
    ops_->place_heads(hold(*ops_, random_tensor({T, heads * attention.width}, random_)),
                      {.heads = attention.heads, .kv_heads = attention.kv_heads, .width = attention.width},
                      {keys, values}, q);
    ops_->attend(q, {keys, values}, y, {.scale = scale, .window = attention.window});
    const tensor::Tensor queries = fetch(*ops_, q);
    const tensor::Tensor answers = fetch(*ops_, y);
    const tensor::Tensor stored_keys = fetch(*ops_, keys);
    const tensor::Tensor stored_values = fetch(*ops_, values);
    std::int64_t row = 0;
    for (std::size_t s = 0; s < kv.step.sequences.size(); ++s) {
      const StepSequence& sequence = kv.step.sequences[s];
      for (std::int64_t i = 0; i < sequence.fresh; ++i, ++row) {
        const std::int64_t end = sequence.context + i + 1;
        const tensor::Range tokens{attention.window > 0 ? std::max<std::int64_t>(0, end - attention.window) : 0, end};
        for (std::int64_t h = 0; h < attention.heads; ++h) {
          const float* const head = queries.row<float>(row) + h * attention.width;
          const std::vector<double> exact =
              oracle::attend({head, head + attention.width}, stored_keys, stored_values, kv.pages[s],
                             h * attention.kv_heads / attention.heads, tokens, scale);
          for (std::int64_t d = 0; d < attention.width; ++d) {
            ASSERT_NEAR(answers.row<float>(row)[h * attention.width + d], exact[static_cast<std::size_t>(d)],
                        tolerance(tensor::DType::kF32, tokens.size() + attention.width, 1))
                << attention.name << " row " << row << " head " << h;
          }
        }
      }
    }
  }
}

TEST_P(BackendTest, PickedRowsAreThoseThatGoToTheHead) {
  for (const std::vector<std::int32_t>& rows : {std::vector<std::int32_t>{}, {3}, {0, 1, 2, 3, 4}, {1, 4}}) {
    begin_rows(5, rows);
    const tensor::Tensor x = random_tensor({5, 7}, random_);
    const HeldSlab y = room(*ops_, {std::ssize(rows), 7});
    ops_->pick_rows(hold(*ops_, x), y);
    const tensor::Tensor picked = fetch(*ops_, y);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      EXPECT_EQ(std::memcmp(picked.row<float>(static_cast<std::int64_t>(i)), x.row<float>(rows[i]), 7 * sizeof(float)),
                0);
    }
  }
}

TEST_P(BackendTest, ExpertsAreTheWeightedSumOfThoseThatTheRouterChose) {
  const std::int64_t T = 5, E = 7, C = 32, F = 16, k = 3;
  for (const bool renormalize : {false, true}) {
    tensor::Tensor scores = random_tensor({T, E}, random_);
    scores.mutable_row<float>(1)[4] = scores.mutable_row<float>(1)[2] = 3;  // of equal ones the lower
    const HeldSlab ids = room(*ops_, {T, k}, tensor::DType::kI32);
    const HeldSlab weights = room(*ops_, {T, k});
    ops_->route(hold(*ops_, scores), {.count = k, .renormalize = renormalize}, ids, weights);
    const tensor::Tensor chosen = fetch(*ops_, ids);
    const tensor::Tensor chances = fetch(*ops_, weights);
    EXPECT_EQ(chosen.row<std::int32_t>(1)[0], 2);
    EXPECT_EQ(chosen.row<std::int32_t>(1)[1], 4);
    std::vector<tensor::Matrix> gate_up, down;
    for (std::int64_t e = 0; e < E; ++e) {
      for (int i = 0; i < 2; ++i) gate_up.push_back(random_matrix(matrix_cases()[1], F, C, random_));
      down.push_back(random_matrix(matrix_cases()[0], C, F, random_));
    }
    const tensor::Tensor x = random_tensor({T, C}, random_);
    const HeldSlab y = room(*ops_, {T, C});
    ops_->experts(*ops_->pack(gate_up, MatrixUse::kExpertGateUp), *ops_->pack(down, MatrixUse::kExpertDown),
                  hold(*ops_, x), ids, weights, y);
    const tensor::Tensor answers = fetch(*ops_, y);
    for (std::int64_t t = 0; t < T; ++t) {
      double sum = 0, sum_of_chosen = 0;
      for (std::int64_t e = 0; e < E; ++e) sum += std::exp(static_cast<double>(scores.row<float>(t)[e]));
      for (std::int64_t i = 0; i < k; ++i) {
        sum_of_chosen += std::exp(static_cast<double>(scores.row<float>(t)[chosen.row<std::int32_t>(t)[i]])) / sum;
      }
      std::vector<double> exact(static_cast<std::size_t>(C));
      for (std::int64_t i = 0; i < k; ++i) {
        const auto expert = static_cast<std::size_t>(chosen.row<std::int32_t>(t)[i]);
        const double chance =
            std::exp(static_cast<double>(scores.row<float>(t)[expert])) / sum / (renormalize ? sum_of_chosen : 1);
        ASSERT_NEAR(chances.row<float>(t)[i], chance, tolerance(tensor::DType::kF32, E, 1));
        const auto product = [&](const tensor::Matrix& matrix, const std::vector<double>& in) {
          const std::vector<double> all = oracle::dense(matrix);
          std::vector<double> out(static_cast<std::size_t>(matrix.rows));
          for (std::size_t n = 0; n < out.size(); ++n) {
            for (std::size_t c = 0; c < in.size(); ++c) out[n] += all[n * in.size() + c] * in[c];
          }
          return out;
        };
        const std::vector<double> in(x.row<float>(t), x.row<float>(t) + C);
        std::vector<double> hidden = product(gate_up[2 * expert], in);
        const std::vector<double> up = product(gate_up[2 * expert + 1], in);
        for (std::size_t f = 0; f < hidden.size(); ++f) hidden[f] = oracle::silu(hidden[f]) * up[f];
        const std::vector<double> out = product(down[expert], hidden);
        for (std::size_t c = 0; c < exact.size(); ++c) exact[c] += chance * out[c];
      }
      for (std::int64_t c = 0; c < C; ++c) {
        ASSERT_NEAR(answers.row<float>(t)[c], exact[static_cast<std::size_t>(c)],
                    tolerance(tensor::DType::kF32, C + F, largest(exact) + 8));
      }
    }
  }
}

TEST(Backends, AnUnknownOneIsRefusedWithThoseThereAre) {
  EXPECT_ERROR(make_backend("abacus"), ErrorCode::kUnsupported, "abacus", "auto, cpu, cuda, ref");
}

}  // namespace
}  // namespace yoke::ops

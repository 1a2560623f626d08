// Same bits whatever the company: a row alone, in a batch, in another chunk, on another number of threads.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "yoke/ops/backends.h"
#include "yoke/ops/cases_testing.h"

namespace yoke {
namespace {

class InvarianceTest : public testing::TestWithParam<std::string> {
 protected:
  std::unique_ptr<Backend> ops_ = make_backend(GetParam(), {.threads = 4});
  std::unique_ptr<Backend> alone_ = make_backend(GetParam(), {.threads = 1});
  Random random_{7};
};
INSTANTIATE_TEST_SUITE_P(All, InvarianceTest, testing::ValuesIn(backend_names()),
                         [](const auto& backend) { return backend.param; });

void expect_same_bits(const Tensor& a, const Tensor& b, const std::string& what) {
  ASSERT_EQ(a.shape(), b.shape());
  EXPECT_EQ(std::memcmp(a.copied().raw(), b.copied().raw(), a.bytes()), 0) << what;
}

TEST_P(InvarianceTest, ARowOfLinearDoesNotDependOnItsBatch) {
  for (const MatrixCase& storage : matrix_cases()) {
    const Matrix matrix = random_matrix(storage, 37, 336, random_);
    const Tensor x = random_tensor(*ops_, {13, 336}, random_);
    const Tensor y = ops_->allocate({13, 37}, DType::kF32);
    ops_->linear(*ops_->pack(matrix), x, y);
    for (const Range rows : {Range{0, 1}, Range{5, 6}, Range{5, 12}, Range{12, 13}}) {
      const Tensor part = alone_->allocate({rows.size(), 37}, DType::kF32);
      alone_->linear(*alone_->pack(matrix), x.slice(0, rows), part);
      expect_same_bits(part, y.slice(0, rows), storage.name);
    }
  }
}

// A prompt of 700 tokens of one sequence, given in chunks, beside another sequence or alone.
Tensor attend_in_chunks(Backend& ops, std::int64_t chunk, bool in_company) {
  Random random(3);
  const AttentionCase attention{.name = "", .sequences = {{0, 700}, {0, 700}}, .heads = 2, .kv_heads = 1, .width = 8};
  KvPages kv = random_pages(ops, attention, random);
  const Tensor q = random_tensor(ops, {700, 2, 8}, random);
  const Tensor k = random_tensor(ops, {700, 1, 8}, random);
  const Tensor v = random_tensor(ops, {700, 1, 8}, random);
  Tensor all = ops.allocate({700, 2, 8}, DType::kF32);
  for (std::int64_t begin = 0; begin < 700; begin += chunk) {
    const std::int64_t fresh = std::min<std::int64_t>(chunk, 700 - begin);
    const std::int64_t copies = in_company ? 2 : 1;
    std::vector<KvSequence> sequences;
    for (std::int64_t i = 0; i < copies; ++i) {
      sequences.push_back({kv.pages[static_cast<std::size_t>(i)], begin, fresh});
    }
    const auto repeated = [&](const Tensor& rows) {
      Tensor both = ops.allocate({copies * fresh, rows.extent(1), rows.extent(2)}, DType::kF32);
      for (std::int64_t i = 0; i < copies; ++i) {
        std::memcpy(both.mutable_row<float>(i * fresh), rows.row<float>(begin),
                    rows.slice(0, {begin, begin + fresh}).bytes());
      }
      return both;
    };
    const KvView view{kv.keys, kv.values, sequences};
    const Tensor y = ops.allocate({copies * fresh, 2, 8}, DType::kF32);
    ops.store_kv(repeated(k), repeated(v), view);
    ops.attend(repeated(q), view, y, {.scale = 0.5F});
    ops.wait();
    const Tensor ours = y.slice(0, {(copies - 1) * fresh, copies * fresh});
    std::memcpy(all.mutable_row<float>(begin), ours.raw(), ours.bytes());
  }
  return all;
}

TEST_P(InvarianceTest, AttentionDoesNotDependOnChunksNorOnTheBatch) {
  const Tensor whole = attend_in_chunks(*alone_, 700, false);
  for (const std::int64_t chunk : {1, 97, 256, 257}) {
    expect_same_bits(attend_in_chunks(*ops_, chunk, false), whole, fmt::format("chunks of {}", chunk));
    expect_same_bits(attend_in_chunks(*ops_, chunk, true), whole, fmt::format("chunks of {} in company", chunk));
  }
}

TEST_P(InvarianceTest, NormsAndRotationsDoNotDependOnTheBatch) {
  const Tensor x = random_tensor(*ops_, {200, 34}, random_);
  const Tensor weight = random_tensor(*ops_, {34}, random_);
  const Tensor y = ops_->allocate({200, 34}, DType::kF32);
  ops_->rms_norm(x, weight, 1e-6F, y);
  const Tensor one = alone_->allocate({1, 34}, DType::kF32);
  alone_->rms_norm(x.slice(0, {131, 132}), weight, 1e-6F, one);
  expect_same_bits(one, y.slice(0, {131, 132}), "rms_norm");
  const Rope rope{std::vector<float>(17, 0.1F)};
  std::vector<std::int64_t> positions(200);
  for (std::size_t i = 0; i < positions.size(); ++i) positions[i] = static_cast<std::int64_t>(i * i);
  ops_->rotate(y.reshaped({200, 1, 34}), positions, rope);
  alone_->rotate(one.reshaped({1, 1, 34}), std::span(positions).subspan(131, 1), rope);
  expect_same_bits(one, y.slice(0, {131, 132}), "rotate");
}

}  // namespace
}  // namespace yoke

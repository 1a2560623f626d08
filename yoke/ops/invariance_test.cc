// Same bits whatever the company: a row alone, in a batch, in another chunk, on another number of threads.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "yoke/ops/backends.h"
#include "yoke/ops/cases_testing.h"

namespace yoke::ops {
namespace {

class InvarianceTest : public testing::TestWithParam<BackendVariant> {
 protected:
  std::unique_ptr<Backend> ops_ = GetParam().make(4);
  std::unique_ptr<Backend> alone_ = GetParam().make(1);
  Random random_{7};
};
INSTANTIATE_TEST_SUITE_P(All, InvarianceTest, testing::ValuesIn(all_variants()), label_of);

void expect_same_bits(const tensor::Tensor& a, const tensor::Tensor& b, const std::string& what) {
  ASSERT_EQ(a.shape(), b.shape());
  EXPECT_EQ(std::memcmp(a.copied().raw(), b.copied().raw(), a.bytes()), 0) << what;
}

tensor::Tensor linear_on(Backend& ops, std::span<const tensor::Matrix> stack, const tensor::Tensor& x,
                         Activation activation) {
  const auto packed = ops.pack(stack, MatrixUse::kLinear);
  const HeldSlab y = room(ops, {x.extent(0), activation == Activation::kSwiglu ? packed->rows() / 2 : packed->rows()});
  ops.linear(*packed, hold(ops, x), y, {.activation = activation});
  return fetch(ops, y);
}

TEST_P(InvarianceTest, ARowOfLinearDoesNotDependOnItsBatchNorOnItsStack) {
  for (const MatrixCase& storage : matrix_cases()) {
    const std::vector<tensor::Matrix> stack = {random_matrix(storage, 37, 336, random_),
                                               random_matrix(storage, 37, 336, random_)};
    const tensor::Tensor x = random_tensor({13, 336}, random_);
    for (const Activation activation : {Activation::kNone, Activation::kSwiglu}) {
      const tensor::Tensor y = linear_on(*ops_, stack, x, activation);
      for (const tensor::Range rows :
           {tensor::Range{0, 1}, tensor::Range{5, 6}, tensor::Range{5, 12}, tensor::Range{12, 13}}) {
        const tensor::Tensor part = linear_on(*alone_, stack, x.slice(0, rows), activation);
        expect_same_bits(part, y.slice(0, rows), storage.name);
      }
    }
  }
}

// A prompt of 700 tokens of one sequence, given in chunks, beside another sequence or alone.
tensor::Tensor attend_in_chunks(Backend& ops, std::int64_t chunk, bool in_company) {
  Random random(3);
  const AttentionCase attention{.name = "", .sequences = {{0, 700}, {0, 700}}, .heads = 2, .kv_heads = 1, .width = 8};
  const KvPages kv = random_pages(attention, random);
  const HeldSlab keys = hold(ops, kv.keys);
  const HeldSlab values = hold(ops, kv.values);
  const tensor::Tensor qkv = random_tensor({700, 4 * 8}, random);
  const Rope rope{std::vector<float>(4, 0.1F)};
  const tensor::Tensor all = tensor::Tensor::empty({700, 2, 8}, tensor::DType::kF32);
  for (std::int64_t begin = 0; begin < 700; begin += chunk) {
    const std::int64_t fresh = std::min<std::int64_t>(chunk, 700 - begin);
    const std::int64_t copies = in_company ? 2 : 1;
    const tensor::Tensor both = tensor::Tensor::empty({copies * fresh, 4 * 8}, tensor::DType::kF32);
    StepRows step;
    for (std::int64_t i = 0; i < copies; ++i) {
      step.add_sequence(begin, std::vector<std::int32_t>(static_cast<std::size_t>(fresh), 0),
                        kv.pages[static_cast<std::size_t>(i)]);
      std::memcpy(both.mutable_row<float>(i * fresh), qkv.row<float>(begin),
                  static_cast<std::size_t>(fresh) * 4 * 8 * sizeof(float));
    }
    const HeldSlab q = room(ops, {copies * fresh, 2, 8});
    ops.begin_step(step.batch(), kv.room, rope);
    ops.place_heads(hold(ops, both), {.heads = 2, .kv_heads = 1, .width = 8}, {keys, values}, q);
    ops.attend(q, {keys, values}, q, {.scale = 0.5F});
    const tensor::Tensor y = fetch(ops, q.slab.rows({(copies - 1) * fresh, copies * fresh}));
    std::memcpy(all.mutable_row<float>(begin), y.raw(), y.bytes());
  }
  return all;
}

TEST_P(InvarianceTest, AttentionDoesNotDependOnChunksNorOnTheBatch) {
  const tensor::Tensor whole = attend_in_chunks(*alone_, 700, false);
  for (const std::int64_t chunk : {1, 97, 256, 257}) {
    expect_same_bits(attend_in_chunks(*ops_, chunk, false), whole, fmt::format("chunks of {}", chunk));
    expect_same_bits(attend_in_chunks(*ops_, chunk, true), whole, fmt::format("chunks of {} in company", chunk));
  }
}

TEST_P(InvarianceTest, ANormDoesNotDependOnTheBatch) {
  const tensor::Tensor x = random_tensor({200, 34}, random_);
  const tensor::Tensor weight = random_tensor({34}, random_);
  const HeldSlab y = room(*ops_, {200, 34});
  ops_->norm(nullptr, hold(*ops_, x), hold(*ops_, weight), 1e-6F, y);
  const HeldSlab one = room(*alone_, {1, 34});
  alone_->norm(nullptr, hold(*alone_, x.slice(0, {131, 132})), hold(*alone_, weight), 1e-6F, one);
  expect_same_bits(fetch(*alone_, one), fetch(*ops_, y.slab.rows({131, 132})), "norm");
}

TEST_P(InvarianceTest, SelectedCandidatesDoNotDependOnTheBatchNorOnThreads) {
  const tensor::Tensor logits = random_tensor({5, 20011}, random_);
  const std::vector<TokenBias> bias = {{7, 2.0F}};
  for (Backend* const ops : {ops_.get(), alone_.get()}) {
    ops->open_slot(0, {.bias = bias});
    ops->open_slot(1, {.repetition_penalty = 1.3F, .prompt = std::vector<std::int32_t>{3, 9, 20000}});
  }
  std::vector<SelectRow> rows;
  for (std::int32_t row = 0; row < 5; ++row) {
    rows.push_back(
        {.logit_row = row, .slot = row % 2, .temperature = 0.7F, .count = 40, .raw_count = 3, .raw_mass = true});
  }
  const auto words = static_cast<std::int64_t>(select_words(43));
  const HeldSlab all = room(*ops_, {5, words}, tensor::DType::kI32);
  ops_->select(hold(*ops_, logits), 100, rows, all);
  for (std::size_t row = 0; row < 5; ++row) {
    const HeldSlab one = room(*alone_, {1, words}, tensor::DType::kI32);
    alone_->select(hold(*alone_, logits), 100, std::span(rows).subspan(row, 1), one);
    const auto at = static_cast<std::int64_t>(row);
    expect_same_bits(fetch(*alone_, one), fetch(*ops_, all.slab.rows({at, at + 1})), "select");
  }
}

}  // namespace
}  // namespace yoke::ops

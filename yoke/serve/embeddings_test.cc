#include "yoke/serve/embeddings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "yoke/base/files.h"

namespace yoke::serve {
namespace {

using testing::ElementsAre;
using testing::FloatNear;

tensor::Tensor rows_of(std::vector<std::vector<float>> values) {
  const tensor::Tensor rows =
      tensor::Tensor::empty({std::ssize(values), std::ssize(values.front())}, tensor::DType::kF32);
  for (std::size_t i = 0; i < values.size(); ++i) {
    std::copy(values[i].begin(), values[i].end(), rows.mutable_row<float>(static_cast<std::int64_t>(i)));
  }
  return rows;
}

TEST(Embeddings, PoolTheLastTokenOrTheMeanToLengthOne) {
  Pool last(Pooling::kLast), mean(Pooling::kMean);
  for (Pool* pool : {&last, &mean}) {
    pool->add(rows_of({{3, 0}, {1, 0}}));
    pool->add(rows_of({{0, 3}}));
  }
  EXPECT_THAT(last.vector(), ElementsAre(0, 1));
  EXPECT_THAT(mean.vector(), ElementsAre(FloatNear(0.8F, 1e-6F), FloatNear(0.6F, 1e-6F)));
  EXPECT_TRUE(Pool(Pooling::kMean).vector().empty());
}

TEST(Embeddings, GoAsBase64OfLittleEndianFloats) {
  EXPECT_EQ(base64_floats({}), "");
  EXPECT_EQ(base64_floats({1.0F}), "AACAPw==");
  EXPECT_EQ(base64_floats({1.0F, -2.0F}), "AACAPwAAAMA=");
  EXPECT_EQ(base64_floats({1.0F, -2.0F, 0.5F}), "AACAPwAAAMAAAAA/");
}

TEST(Embeddings, TakeThePoolingThatTheModelsFolderNames) {
  const ScratchDir scratch("yoke-pooling");
  EXPECT_EQ(pooling_of_model(scratch.path()), Pooling::kLast);
  std::filesystem::create_directory(scratch.path() / "1_Pooling");
  const auto file = scratch.path() / "1_Pooling/config.json";
  write_file_atomically(file, R"({"word_embedding_dimension": 8, "pooling_mode_mean_tokens": true})");
  EXPECT_EQ(pooling_of_model(scratch.path()), Pooling::kMean);
  write_file_atomically(file, R"({"pooling_mode_lasttoken": true, "pooling_mode_mean_tokens": false})");
  EXPECT_EQ(pooling_of_model(scratch.path()), Pooling::kLast);
  write_file_atomically(file, "{");
  EXPECT_EQ(pooling_of_model(scratch.path()), Pooling::kLast);
}

}  // namespace
}  // namespace yoke::serve

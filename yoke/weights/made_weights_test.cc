#include "yoke/weights/made_weights.h"

#include <gtest/gtest.h>

#include <cstring>

#include "yoke/base/files.h"
#include "yoke/weights/model_files.h"

namespace yoke::weights {
namespace {

void expect_same(const tensor::Tensor& a, const tensor::Tensor& b, const std::string& what) {
  ASSERT_EQ(a.shape(), b.shape()) << what;
  ASSERT_EQ(a.type(), b.type()) << what;
  const tensor::Tensor left = a.copied();
  const tensor::Tensor right = b.copied();
  EXPECT_EQ(std::memcmp(left.raw(), right.raw(), left.bytes()), 0) << what;
}

TEST(MadeWeights, AreThoseOfTheMadeFile) {
  for (const auto& [name, format] : enum_names(MakeFormat{})) {
    const ScratchDir scratch;
    MakeModelOptions options{.shape = *spec::find_model_shape("nano"), .format = format, .seed = 7};
    if (format == MakeFormat::kFp8 || format == MakeFormat::kW4a16) options.head = HeadFormat::kInt8;
    if (format == MakeFormat::kBf16 || format == MakeFormat::kNvfp4) options.head = HeadFormat::kInt4;
    options.shape.layers = 1;
    make_model(scratch.path() / "made", options);
    const ModelFiles files(scratch.path() / "made");
    const MadeWeights made(options);
    for (const char* const module :
         {"model.embed_tokens", "model.layers.0.self_attn.k_proj", "model.layers.0.mlp.down_proj"}) {
      for (const tensor::Slice& slice :
           {tensor::Slice{}, tensor::Slice::rows({0, 64}), tensor::Slice::columns({0, 64})}) {
        const tensor::Matrix expected = files.matrix(module, slice);
        const tensor::Matrix got = made.matrix(module, slice);
        expect_same(got.values, expected.values, fmt::format("{} {}", name, module));
        if (expected.scales.count() > 0) expect_same(got.scales, expected.scales, module);
        EXPECT_EQ(got.global_scale, expected.global_scale);
        EXPECT_EQ(got.scale_columns, expected.scale_columns);
        EXPECT_EQ(made.describe(module, slice).stored_bytes, files.describe(module, slice).stored_bytes);
      }
      EXPECT_EQ(made.row_step(module), files.row_step(module));
    }
    expect_same(made.vector("model.norm.weight"), files.vector("model.norm.weight"), name);
  }
}

}  // namespace
}  // namespace yoke::weights

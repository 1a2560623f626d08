#include "yoke/weights/model_summary.h"

#include <gtest/gtest.h>

#include "yoke/base/error.h"
#include "yoke/weights/make_model.h"

namespace yoke::weights {
namespace {

namespace fs = std::filesystem;

const StoredKind& kind(const ModelSummary& summary, std::string_view name) {
  static const StoredKind absent;
  for (const StoredKind& candidate : summary.kinds) {
    if (candidate.name == name) return candidate;
  }
  return absent;
}

TEST(ModelSummary, TheShippedModelIsReported) {
  const ModelSummary nano = summarize_model(ModelFiles(fs::path(YOKE_SOURCE_DIR) / "models/nano"));
  EXPECT_EQ(nano.catalogued, "nano");
  EXPECT_EQ(nano.parameters, spec::count_parameters(*spec::find_model_shape("nano")));
  EXPECT_EQ(nano.quantization, "compressed-tensors");
  EXPECT_EQ(kind(nano, "int4").tensors, 8 * 7);
  EXPECT_EQ(kind(nano, "int4").bytes.value * 2, kind(nano, "int4").parameters);
  EXPECT_EQ(kind(nano, "scales").parameters, 0);
  ASSERT_EQ(nano.files.size(), 1U);
  EXPECT_EQ(nano.files[0].name, "model.safetensors");
  EXPECT_GT(nano.files[0].bytes, nano.bytes);
}

TEST(ModelSummary, ParametersAreCountedAlikeInEveryFormat) {
  spec::ModelShape shape = *spec::find_model_shape("nano");
  shape.layers = 2;
  for (const auto& [name, format] : enum_names(MakeFormat{})) {
    const ScratchDir scratch;
    make_model(scratch.path() / "made", {.shape = shape, .format = format, .shard_size = Bytes{1'000'000}});
    const ModelSummary summary = summarize_model(ModelFiles(scratch.path() / "made"));
    EXPECT_EQ(summary.parameters, spec::count_parameters(shape)) << name;
    EXPECT_EQ(summary.catalogued, "nano") << name;
    EXPECT_GT(summary.files.size(), 1U) << name;
    EXPECT_EQ(kind(summary, "scales").tensors > 0, !summary.quantization.empty()) << name;
  }
}

}  // namespace
}  // namespace yoke::weights

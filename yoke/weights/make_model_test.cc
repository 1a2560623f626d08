#include "yoke/weights/make_model.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "yoke/base/fields.h"
#include "yoke/base/json.h"
#include "yoke/weights/model_files.h"
#include "yoke/weights/values_testing.h"

namespace yoke::weights {
namespace {

namespace fs = std::filesystem;

// A shape of every feature: biases, norms of heads, an odd number of layers, an untied head.
spec::ModelShape small_shape() {
  spec::ModelShape shape = *spec::find_model_shape("nano");
  shape.layers = 3;
  shape.qkv_bias = true;
  shape.qk_norm = true;
  shape.tied = false;
  return shape;
}

struct MakeModel : testing::Test {
  ScratchDir scratch;
  const fs::path folder = scratch.path() / "made";
};

bool same_bytes(const tensor::Tensor& a, const tensor::Tensor& b) {
  return a.bytes() == b.bytes() && std::memcmp(a.raw(), b.raw(), a.bytes()) == 0;
}

struct MadeFormat {
  MakeFormat format;
  tensor::MatrixFormat stored;
};
class MakeModelFormats : public MakeModel, public testing::WithParamInterface<MadeFormat> {};
INSTANTIATE_TEST_SUITE_P(All, MakeModelFormats,
                         testing::Values(MadeFormat{MakeFormat::kF32, tensor::MatrixFormat::kPlain},
                                         MadeFormat{MakeFormat::kBf16, tensor::MatrixFormat::kPlain},
                                         MadeFormat{MakeFormat::kF16, tensor::MatrixFormat::kPlain},
                                         MadeFormat{MakeFormat::kW4a16, tensor::MatrixFormat::kInt4},
                                         MadeFormat{MakeFormat::kW8a16, tensor::MatrixFormat::kInt8},
                                         MadeFormat{MakeFormat::kFp8, tensor::MatrixFormat::kFp8},
                                         MadeFormat{MakeFormat::kNvfp4, tensor::MatrixFormat::kNvfp4}),
                         [](const auto& test) { return to_document(test.param.format).text; });

TEST_P(MakeModelFormats, EveryMatrixIsReadBackWithTheRightDeviation) {
  const spec::ModelShape shape = small_shape();
  make_model(folder, {.shape = shape, .format = GetParam().format});
  const ModelFiles files(folder);
  const auto check = [&](const std::string& module, std::int64_t rows, std::int64_t columns,
                         tensor::MatrixFormat format) {
    const double gain = module.ends_with("q_proj") || module.ends_with("k_proj") ? 2 : 1;
    const tensor::Matrix matrix = files.load_matrix(module);
    EXPECT_EQ(matrix.format, format) << module;
    ASSERT_EQ(matrix.rows, rows) << module;
    ASSERT_EQ(matrix.columns, columns) << module;
    double sum = 0;
    double squares = 0;
    for (const float value : matrix_values(matrix)) {
      sum += static_cast<double>(value);
      squares += static_cast<double>(value) * static_cast<double>(value);
    }
    const auto count = static_cast<double>(rows * columns);
    const double expected = gain / std::sqrt(static_cast<double>(columns));
    EXPECT_NEAR(std::sqrt(squares / count), expected, 0.03 * expected) << module;
    EXPECT_NEAR(sum / count, 0, 5 * expected / std::sqrt(count)) << module;
  };
  for (std::int64_t layer = 0; layer < shape.layers; ++layer) {
    for (const spec::LinearShape& linear : spec::layer_linears(shape)) {
      const std::string module = fmt::format("model.layers.{}.{}", layer, linear.module);
      check(module, linear.outputs, linear.inputs, GetParam().stored);
      EXPECT_EQ(files.has_tensor(module + ".bias"), linear.has_bias);
    }
    EXPECT_EQ(files.load_tensor(fmt::format("model.layers.{}.self_attn.q_norm.weight", layer)).count(), 32);
  }
  check("model.embed_tokens", shape.vocabulary, shape.width, tensor::MatrixFormat::kPlain);
  check("lm_head", shape.vocabulary, shape.width, tensor::MatrixFormat::kPlain);
  EXPECT_EQ(files.quantization().method(),
            GetParam().stored == tensor::MatrixFormat::kPlain ? "" : "compressed-tensors");
}

TEST_F(MakeModel, EmbeddingAndHeadMayBeQuantizedToo) {
  for (const auto& [head, stored] : {std::pair{HeadFormat::kInt4, tensor::MatrixFormat::kInt4},
                                     std::pair{HeadFormat::kInt8, tensor::MatrixFormat::kInt8}}) {
    for (const MakeFormat format : {MakeFormat::kBf16, MakeFormat::kW4a16, MakeFormat::kFp8}) {
      const fs::path place = scratch.path() / fmt::format("{}-{}", static_cast<int>(head), static_cast<int>(format));
      make_model(place, {.shape = small_shape(), .format = format, .head = head});
      const ModelFiles files(place);
      EXPECT_EQ(files.load_matrix("lm_head").format, stored);
      EXPECT_EQ(files.load_matrix("model.embed_tokens").format, stored);
      const tensor::MatrixFormat layers = files.load_matrix("model.layers.0.mlp.up_proj").format;
      EXPECT_EQ(layers, format == MakeFormat::kBf16    ? tensor::MatrixFormat::kPlain
                        : format == MakeFormat::kW4a16 ? tensor::MatrixFormat::kInt4
                                                       : tensor::MatrixFormat::kFp8);
    }
  }
}

TEST_F(MakeModel, NormsAreOneButThoseOfQueriesAndKeys) {
  make_model(folder, {.shape = small_shape(), .format = MakeFormat::kF32});
  const ModelFiles files(folder);
  const auto check = [&](const std::string& name, float expected) {
    const tensor::Tensor norm = files.load_tensor(name);
    for (const float value : norm.span<float>()) EXPECT_EQ(value, expected) << name;
  };
  check("model.norm.weight", 1);
  check("model.layers.0.input_layernorm.weight", 1);
  check("model.layers.2.self_attn.k_norm.weight", 2);  // which norms of 1 would undo
}

TEST_F(MakeModel, ShardsAndTheNumberOfLayersChangeNoTensor) {
  spec::ModelShape shape = small_shape();
  make_model(folder, {.shape = shape, .format = MakeFormat::kW4a16});
  shape.layers = 2;
  const WrittenModel shards = make_model(
      scratch.path() / "shards", {.shape = shape, .format = MakeFormat::kW4a16, .shard_size = Bytes{1'000'000}});
  EXPECT_GT(shards.shards, 1U);
  const ModelFiles whole(folder);
  const ModelFiles shorter(scratch.path() / "shards");
  EXPECT_LT(shorter.tensor_names().size(), whole.tensor_names().size());
  for (const std::string& name : shorter.tensor_names()) {
    EXPECT_TRUE(same_bytes(whole.view(name), shorter.view(name))) << name;
  }
}

TEST_F(MakeModel, AnotherSeedMakesAnotherModel) {
  make_model(folder, {.shape = small_shape(), .format = MakeFormat::kFp8});
  make_model(scratch.path() / "other", {.shape = small_shape(), .format = MakeFormat::kFp8, .seed = 2});
  const std::string name = "model.layers.0.mlp.up_proj.weight";
  EXPECT_FALSE(same_bytes(ModelFiles(folder).view(name), ModelFiles(scratch.path() / "other").view(name)));
}

TEST_F(MakeModel, TheVocabularyIsFullAndWithoutRepetition) {
  spec::ModelShape shape = small_shape();
  shape.vocabulary = 32000;
  make_model(folder, {.shape = shape, .format = MakeFormat::kW4a16});
  const Document tokenizer = parse_json(read_file(folder / "tokenizer.json"), "tokenizer.json");  // refuses repetition
  std::vector<bool> seen(32000);
  for (const auto& [word, id] : tokenizer.find("model")->find("vocab")->fields) {
    seen.at(from_json<std::size_t>(id)) = true;
  }
  EXPECT_EQ(std::count(seen.begin(), seen.end(), false), 0);
  const Document config = parse_json(read_file(folder / "config.json"), "config.json");
  const Document chat = parse_json(read_file(folder / "tokenizer_config.json"), "tokenizer_config.json");
  EXPECT_EQ(tokenizer.find("model")->find("vocab")->find(chat.find("eos_token")->text)->text,
            config.find("eos_token_id")->text);
}

}  // namespace
}  // namespace yoke::weights

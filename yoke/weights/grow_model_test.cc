#include "yoke/weights/grow_model.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "yoke/base/error.h"
#include "yoke/base/error_testing.h"
#include "yoke/base/hash.h"
#include "yoke/base/json.h"
#include "yoke/weights/model_testing.h"
#include "yoke/weights/values_testing.h"

namespace yoke::weights {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kWidth = 32;

std::string config_json(const std::string& more = "") { return R"({"num_hidden_layers": 2)" + more + "}"; }

// Two layers of which only the outputs matter here, each module in the tensors that `stored_as` makes.
template <class StoredAs>
void write_two_layers(const fs::path& folder, const std::string& config, StoredAs stored_as) {
  std::vector<StoredTensor> tensors;
  for (const char* layer : {"model.layers.0.", "model.layers.1."}) {
    for (const char* module : {"self_attn.q_proj", "self_attn.o_proj", "mlp.down_proj"}) {
      for (StoredTensor& tensor : stored_as(std::string(layer) + module)) tensors.push_back(std::move(tensor));
    }
    tensors.push_back(stored_f32(std::string(layer) + "input_layernorm.weight", {kWidth}));
  }
  tensors.push_back(stored_f32("model.norm.weight", {kWidth}));
  write_model(folder, config, tensors);
}

std::vector<StoredTensor> plain(const std::string& module) {
  return {stored_f32(module + ".weight", {kWidth, kWidth}), stored_f32(module + ".bias", {kWidth})};
}

StoredTensor words(const std::string& name, tensor::Shape shape) {
  std::vector<std::int32_t> values;
  for (std::int64_t i = 0; i < shape.count(); ++i) values.push_back(static_cast<std::int32_t>(i * 0x01234567 + 1));
  return stored(name, tensor::DType::kI32, shape, values);
}

std::vector<StoredTensor> asymmetric_int4(const std::string& module) {
  return {words(module + ".weight_packed", {kWidth, kWidth / 8}), words(module + ".weight_zero_point", {kWidth / 8, 1}),
          stored_f32(module + ".weight_scale", {kWidth, 1})};
}

std::vector<StoredTensor> gptq(const std::string& module) {
  return {words(module + ".qweight", {kWidth / 8, kWidth}), words(module + ".qzeros", {1, kWidth / 8}),
          stored_f32(module + ".scales", {1, kWidth})};
}

struct Grow : testing::Test {
  ScratchDir scratch;
  const fs::path source = scratch.path() / "source";
  const fs::path deep = scratch.path() / "deep";
  Grow() { fs::create_directory(source); }

  // The added layers add exactly zero, and the others are as they were.
  void check_grown() const {
    const ModelFiles before(source);
    const ModelFiles after(deep);
    for (const std::string& name : before.tensor_names()) {
      const tensor::Tensor was = before.view(name);
      const tensor::Tensor is = after.view(name);
      ASSERT_EQ(is.bytes(), was.bytes()) << name;
      EXPECT_EQ(std::memcmp(is.raw(), was.raw(), was.bytes()), 0) << name;
    }
    for (std::int64_t layer = layers_of(before); layer < layers_of(after); ++layer) {
      const std::string prefix = fmt::format("model.layers.{}.", layer);
      for (const std::string module : {"self_attn.o_proj", "mlp.down_proj"}) {
        const std::vector<float> values = matrix_values(after.load_matrix(prefix + module));
        EXPECT_EQ(std::count(values.begin(), values.end(), 0.0F), std::ssize(values)) << prefix << module;
        const std::vector<float> old = matrix_values(before.load_matrix("model.layers.1." + module));
        EXPECT_LT(std::count(old.begin(), old.end(), 0.0F), std::ssize(old)) << "the test would see nothing";
      }
      EXPECT_EQ(matrix_values(after.load_matrix(prefix + "self_attn.q_proj")),
                matrix_values(before.load_matrix("model.layers.1.self_attn.q_proj")));
    }
  }
  void grow(std::int64_t layers, const fs::path& folder) const {
    grow_model(ModelFiles(source), folder, {.layers = layers});
  }
};

TEST_F(Grow, PlainWeightsAndBiasesBecomeZero) {
  write_two_layers(source, config_json(), plain);
  EXPECT_EQ(grow_model(ModelFiles(source), deep, {.layers = 5}).shards, 1U);
  check_grown();
  const tensor::Tensor bias = ModelFiles(deep).load_tensor("model.layers.4.self_attn.o_proj.bias");
  for (const float value : bias.span<float>()) EXPECT_EQ(value, 0);
  EXPECT_EQ(ModelFiles(deep).load_tensor("model.layers.4.self_attn.q_proj.bias").data<float>()[3], 3);
  EXPECT_FALSE(ModelFiles(deep).has_tensor("model.layers.5.self_attn.q_proj.weight"));
}

TEST_F(Grow, Int4WithZerosBecomesItsZeros) {
  write_two_layers(source, config_json(), asymmetric_int4);
  grow_model(ModelFiles(source), deep, {.layers = 3});
  check_grown();
}

TEST_F(Grow, BothKindsOfGptqBecomeTheirZeros) {
  write_two_layers(source, config_json(R"(, "quantization_config": {"quant_method": "gptq", "bits": 4})"), gptq);
  grow_model(ModelFiles(source), deep, {.layers = 3});
  check_grown();
  fs::remove_all(deep);
  fs::remove_all(source);
  fs::create_directory(source);
  write_two_layers(
      source,
      config_json(R"(, "quantization_config": {"quant_method": "gptq", "bits": 4, "checkpoint_format": "gptq_v2"})"),
      gptq);
  grow_model(ModelFiles(source), deep, {.layers = 3});
  check_grown();
}

class GrowGolden : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Formats, GrowGolden, testing::Values("w4a16", "fp8", "nvfp4", "bf16-tied"),
                         [](const auto& test) { return std::string(test.param).substr(0, 4); });

TEST_P(GrowGolden, EveryQuantizedFormatBecomesZero) {
  const fs::path source = fs::path(YOKE_SOURCE_DIR) / "tests/golden" / (std::string("llama-") + GetParam());
  const ScratchDir scratch;
  const ModelFiles before(source);
  const std::int64_t layers = layers_of(before) + 1;
  grow_model(before, scratch.path() / "deep", {.layers = layers});
  const ModelFiles after(scratch.path() / "deep");
  for (const char* module : {"self_attn.o_proj", "mlp.down_proj"}) {
    const auto values = matrix_values(after.load_matrix(fmt::format("model.layers.{}.{}", layers - 1, module)));
    EXPECT_EQ(std::count(values.begin(), values.end(), 0.0F), std::ssize(values)) << module;
  }
}

TEST_F(Grow, FilesBesideTheWeightsComeAlongAndTheModelIsOnlyRead) {
  write_two_layers(source, config_json(), plain);
  write_file_atomically(source / "golden.json", "golden");
  write_file_atomically(source / "golden.safetensors", "not weights of the model");
  write_file_atomically(source / "tokenizer.json", "tokens", {.mode = 0444});
  write_file_atomically(source / "pytorch_model.bin", "the same in another form");
  write_file_atomically(source / "consolidated.safetensors", "the same in the maker's own form");
  fs::create_directory(source / "original");
  const std::string weights = sha256_file_hex(source / "model.safetensors");
  grow_model(ModelFiles(source), deep, {.layers = 3});
  EXPECT_EQ(read_file(deep / "golden.json"), "golden");
  EXPECT_EQ(read_file(deep / "golden.safetensors"), "not weights of the model");
  EXPECT_EQ(read_file(deep / "tokenizer.json"), "tokens");
  EXPECT_FALSE(fs::exists(deep / "pytorch_model.bin"));
  EXPECT_FALSE(fs::exists(deep / "consolidated.safetensors"));
  EXPECT_FALSE(fs::exists(deep / "original"));
  EXPECT_EQ(sha256_file_hex(source / "model.safetensors"), weights);
  EXPECT_EQ(read_file(source / "config.json"), config_json());
}

TEST_F(Grow, ASizeIsReachedByTheFewestLayers) {
  write_two_layers(source, config_json(), plain);
  const ModelFiles files(source);
  const std::int64_t layer = (3 * (kWidth * kWidth + kWidth) + kWidth) * 4;
  const std::int64_t present = files.bytes().value;
  EXPECT_EQ(layers_for_size(files, Bytes{present + 1}), 3);
  EXPECT_EQ(layers_for_size(files, Bytes{present + layer}), 3);
  EXPECT_EQ(layers_for_size(files, Bytes{present + layer + 1}), 4);
  EXPECT_ERROR(layers_for_size(files, files.bytes()), ErrorCode::kInvalid, "which is not less than");
  EXPECT_ERROR(layers_for_size(files, Bytes{std::int64_t{1} << 60}), ErrorCode::kInvalid, "would need");
}

TEST_F(Grow, ListsOfLayersInTheConfigGrowToo) {
  const Document config = parse_json(R"({"num_hidden_layers": 2, "layer_types": ["full", "sliding"],
      "quantization_config": {"ignore": ["lm_head", "model.layers.1.mlp.down_proj", "model.layers.0.x"]}})",
                                     "config.json");
  EXPECT_EQ(print_json(grown_config(config, 4), JsonLayout::kOneLine),
            R"({"num_hidden_layers":4,"layer_types":["full","sliding","sliding","sliding"],)"
            R"("quantization_config":{"ignore":["lm_head","model.layers.1.mlp.down_proj","model.layers.0.x",)"
            R"("model.layers.2.mlp.down_proj","model.layers.3.mlp.down_proj"]}})");
}

TEST_F(Grow, WhatCannotBeIsRefused) {
  write_two_layers(source, config_json(), plain);
  EXPECT_ERROR(grow(2, deep), ErrorCode::kInvalid, "has 2 layers; it cannot be grown to 2");
  EXPECT_ERROR(grow(kMaxLayers + 1, deep), ErrorCode::kInvalid, "it cannot be grown to");
  EXPECT_ERROR(grow(3, source), ErrorCode::kConflict, "is inside the model's folder");
  EXPECT_ERROR(grow(3, source / "inside"), ErrorCode::kConflict, "is inside the model's folder");
  fs::remove(source / "model.safetensors");
  write_tensors(source / "model.safetensors", {stored_f32("model.layers.1.mlp.experts.0.weight", {4, 4})});
  EXPECT_ERROR(grow(3, deep), ErrorCode::kUnsupported, "which a grown model makes zero");
  EXPECT_FALSE(fs::exists(deep));
}

}  // namespace
}  // namespace yoke::weights

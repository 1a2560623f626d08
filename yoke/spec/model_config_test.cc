#include "yoke/spec/model_config.h"

#include <gtest/gtest.h>

#include "yoke/base/error.h"
#include "yoke/base/files.h"
#include "yoke/base/json.h"

namespace yoke::spec {
namespace {

constexpr const char* kSmall = R"({"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 64,
  "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 128, "vocab_size": 300})";

ModelShape read(const std::string& json) { return model_shape_from_config(parse_json(json, "config.json")); }

std::string with(const std::string& field) { return std::string(kSmall).insert(1, field + ", "); }
std::string without(std::string json, const std::string& field) {
  return json.replace(json.find(field), field.size(), "\"x\"");
}

TEST(ModelConfig, EveryCataloguedShapeSurvivesItsConfig) {
  for (ModelShape shape : model_catalogue()) {
    const std::string json = print_json(config_of_model_shape(shape));
    shape.name = {};
    EXPECT_EQ(read(json), shape) << json;
  }
}

TEST(ModelConfig, TheShippedModelIsTheCataloguedNano) {
  ModelShape nano = *find_model_shape("nano");
  nano.name = {};
  EXPECT_EQ(read(read_file(std::filesystem::path(YOKE_SOURCE_DIR) / "models/nano/config.json")), nano);
}

TEST(ModelConfig, WhatIsLeftOutHasTheDefaultsOfTransformers) {
  const ModelShape shape = read(kSmall);
  EXPECT_EQ(shape.kv_heads, 4);
  EXPECT_EQ(shape.head_width, 16);
  EXPECT_EQ(shape.context, 2048);
  EXPECT_EQ(shape.rope_theta, 10000);
  EXPECT_FALSE(shape.tied || shape.qkv_bias || shape.qk_norm);
  EXPECT_EQ(read(without(kSmall, "\"architectures\"")).architecture, ModelArchitecture::kLlama);
}

TEST(ModelConfig, BothFormsOfRopeAreRead) {
  const std::string scaling = R"({"factor": 32.0, "original_max_position_embeddings": 4096, "rope_theta": 7.0, )";
  EXPECT_EQ(read(with(R"("rope_theta": 5e5, "rope_scaling": )" + scaling + R"("type": "llama3"})")).rope_theta, 5e5);
  const ModelShape now = read(with(R"("rope_parameters": )" + scaling + R"("rope_type": "llama3"})"));
  EXPECT_EQ(now.rope_theta, 7);
  EXPECT_EQ(now.rope_scaling, (Llama3Rope{.factor = 32, .original_context = 4096}));
  EXPECT_EQ(read(with(R"("rope_scaling": {"type": "yarn", "factor": 4})")).rope_scaling, std::nullopt);
}

struct Refused {
  const char* name;
  std::string json;
  ErrorCode code;
  const char* message;
};
class ModelConfigRefuses : public testing::TestWithParam<Refused> {};
TEST_P(ModelConfigRefuses, WithAClearMessage) {
  try {
    read(GetParam().json);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), GetParam().code);
    EXPECT_NE((error.message() + error.hint()).find(GetParam().message), std::string::npos)
        << error.message() << error.hint();
  }
}
INSTANTIATE_TEST_SUITE_P(
    Configs, ModelConfigRefuses,
    testing::Values(Refused{"AnotherArchitecture", R"({"architectures": ["GPT2LMHeadModel"]})", ErrorCode::kUnsupported,
                            "LlamaForCausalLM, MistralForCausalLM, Qwen2ForCausalLM, Qwen3ForCausalLM"},
                    Refused{"MixtureOfExperts", R"({"architectures": ["MixtralForCausalLM"], "model_type": "mixtral"})",
                            ErrorCode::kUnsupported, "'MixtralForCausalLM'"},
                    Refused{"NoArchitecture", "{}", ErrorCode::kInvalid, "neither 'architectures' nor 'model_type'"},
                    Refused{"AList", "[]", ErrorCode::kInvalid, "a JSON object"},
                    Refused{"NoWidth", without(kSmall, "\"hidden_size\""), ErrorCode::kInvalid,
                            "'hidden_size' is missing"},
                    Refused{"NegativeVocabulary", R"({"model_type": "llama", "hidden_size": 64, "num_hidden_layers": 2,
                "num_attention_heads": 4, "intermediate_size": 128, "vocab_size": -1})",
                            ErrorCode::kInvalid, "a number from 1"},
                    Refused{"UnevenHeads", with(R"("num_key_value_heads": 3)"), ErrorCode::kInvalid, "cannot share 3"},
                    Refused{"OddHead", with(R"("head_dim": 15)"), ErrorCode::kInvalid, "width 15"},
                    Refused{"ZeroTheta", with(R"("rope_theta": 0)"), ErrorCode::kInvalid, "a positive number"}),
    [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace yoke::spec

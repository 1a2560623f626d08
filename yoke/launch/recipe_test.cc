#include "yoke/launch/recipe.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "yoke/base/error_testing.h"
#include "yoke/launch/launch_cases_testing.h"

namespace yoke::launch {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::Not;

// The forms of the two collections, shortened.
constexpr const char* kVersion1 =
    "recipe_version: \"1\"\nname: MiMo on three\ncontainer: vllm-node:latest\nmods: [mods/fix]\n"
    "defaults:\n  port: 8000\n  tensor_parallel: 1\n  spec: '{\"method\": \"mtp\"}'\n  sizes: \"1 2 4\"\n"
    "env: { VLLM_USE_X: \"1\", HF_TOKEN: \"$HF_TOKEN\" }\n"
    "command: |\n  vllm serve org/MiMo \\\n    --port {port} -tp {tensor_parallel} \\\n"
    "    --speculative-config '{spec}' --compilation-config '{{\"a\": {{\"b\": 1}}}}' \\\n"
    "    --override '{\"raw\": {\"x\": 2}}' --graph-sizes {sizes} --distributed-executor-backend ray\n";
constexpr const char* kVersion2 =
    "recipe_version: \"2\"\nmodel: org/M\nruntime: sglang\ncontainer: lmsysorg/sglang:v1\nmin_nodes: 2\n"
    "defaults: { tp: 2 }\nmetadata: { description: x }\n"
    "command: python3 -m sglang.launch_server --model-path {model} --tp-size {tp} --host 0.0.0.0 --port 30000 --nnodes "
    "2\n";

TEST(Recipe, OfSparkVllmDockerBecomesADescription) {
  const ConvertedRecipe recipe = convert_recipe(kVersion1, "r.yaml");
  EXPECT_EQ(recipe.engine, "vllm");
  EXPECT_EQ(recipe.model, "org/MiMo");
  EXPECT_EQ(recipe.argv,
            (std::vector<std::string>{"vllm", "serve", "org/MiMo", "-tp", "1", "--speculative-config",
                                      "{\"method\": \"mtp\"}", "--compilation-config", "{\"a\": {\"b\": 1}}",
                                      "--override", "{\"raw\": {\"x\": 2}}", "--graph-sizes", "1", "2", "4"}))
      << "braces by word, launcher's flags gone";
  EXPECT_THAT(recipe.notes, Contains(HasSubstr("mods of the recipe is not run")));
  EXPECT_THAT(recipe.notes, Contains(HasSubstr("env HF_TOKEN is left out")));
  EXPECT_THAT(recipe.notes, Contains(HasSubstr("':latest'")));
  const EngineFile engine = parse_engine(recipe.description, "r.yaml");
  const LaunchPlan plan = plan_launch(engine, {.model = "/models/mimo"}, three_sparks().nodes, {});
  EXPECT_THAT(plan.of_node(2).front()->argv, Contains("--headless"));
  EXPECT_THAT(plan.of_node(2).front()->argv, Contains("/models/mimo"));
  EXPECT_THAT(plan.of_node(2).front()->argv, Contains("{\"raw\": {\"x\": 2}}"));
  EXPECT_EQ(plan.image, "vllm-node:latest");
}

TEST(Recipe, OfSparkrunBecomesADescription) {
  const ConvertedRecipe recipe = convert_recipe(kVersion2, "r.yaml");
  EXPECT_EQ(recipe.engine, "sglang");
  const LaunchPlan plan =
      plan_launch(parse_engine(recipe.description, "r"), {.model = "org/M"}, two_sparks().nodes, {});
  EXPECT_THAT(plan.of_node(1).front()->argv, Contains("192.168.100.1:20000"));
  EXPECT_EQ(std::count(plan.of_node(1).front()->argv.begin(), plan.of_node(1).front()->argv.end(), "--nnodes"), 1);
}

TEST(Recipe, MistakesAreNamed) {
  EXPECT_ERROR(convert_recipe(std::string(kVersion2) + "runtme: x\n", "r.yaml"), ErrorCode::kInvalid,
               "unknown key 'runtme'");
  EXPECT_ERROR(convert_recipe("model: m\n", "r.yaml"), ErrorCode::kUnsupported, "has no command");
  EXPECT_ERROR(convert_recipe("command: ollama run m\n", "r.yaml"), ErrorCode::kUnsupported, "neither");
  EXPECT_ERROR(convert_recipe("command: vllm serve 'm\n", "r.yaml"), ErrorCode::kInvalid, "a quote without its end");
}

// Recipes come from others: what stands in one may become a value of the description, and no key of it.
TEST(Recipe, VariablesCannotAddToTheDescription) {
  for (const char* name : {"X, value: y, reason: z }\\nlower: [a]\\nremarks: [b]\\n#", "A B", "A;touch /tmp/x", ""}) {
    const std::string recipe = fmt::format("command: vllm serve m\nenv: {{ \"{}\": \"1\" }}\n", name);
    EXPECT_ERROR(convert_recipe(recipe, "r.yaml"), ErrorCode::kInvalid, "is no name of a variable") << name;
  }
}

// A value of 100 kB that stands 20,000 times took 4.8 GB; a million braces took minutes.
TEST(Recipe, ItsCommandHasABound) {
  std::string command = "command: vllm serve";
  for (int i = 0; i < 20'000; ++i) command += " {a}";
  EXPECT_ERROR(convert_recipe(command + "\ndefaults: { a: " + std::string(100'000, 'b') + " }\n", "r.yaml"),
               ErrorCode::kInvalid, "the command of the recipe has more than 2 MiB");
  const std::string braces(400'000, '{');
  EXPECT_EQ(recipe_words(braces + "}", {{"a", "b"}}).size(), 1U);
  EXPECT_EQ(expand_text(braces + "}", {}).size(), braces.size() + 1);
}

}  // namespace
}  // namespace yoke::launch

#include "yoke/spec/model_catalogue.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

namespace yoke::spec {
namespace {

TEST(ModelCatalogue, ParameterSumsAreThePublishedTotals) {
  const std::map<std::string_view, std::int64_t> published = {
      {"llama-2-7b", 6'738'415'616},   {"llama-2-13b", 13'015'864'320},   {"llama-2-70b", 68'976'648'192},
      {"llama-3.1-8b", 8'030'261'248}, {"llama-3.1-70b", 70'553'706'496}, {"llama-3.1-405b", 405'853'388'800},
      {"llama-3.2-1b", 1'235'814'400}, {"llama-3.2-3b", 3'212'749'824},   {"llama-3.3-70b", 70'553'706'496},
      {"mistral-7b", 7'248'023'552},   {"qwen2.5-0.5b", 494'032'768},     {"qwen2.5-1.5b", 1'543'714'304},
      {"qwen2.5-3b", 3'085'938'688},   {"qwen2.5-7b", 7'615'616'512},     {"qwen2.5-14b", 14'770'033'664},
      {"qwen2.5-32b", 32'763'876'352}, {"qwen2.5-72b", 72'706'203'648},   {"qwen3-0.6b", 596'049'920},
      {"qwen3-1.7b", 1'720'574'976},   {"qwen3-4b", 4'022'468'096},       {"qwen3-8b", 8'190'735'360},
      {"qwen3-14b", 14'768'307'200},   {"qwen3-32b", 32'762'123'264},     {"nano", 6'820'096},
  };
  ASSERT_EQ(published.size(), model_catalogue().size());
  for (const ModelShape& shape : model_catalogue()) {
    ASSERT_TRUE(published.contains(shape.name)) << shape.name;
    EXPECT_EQ(count_parameters(shape), published.at(shape.name)) << shape.name;
  }
}

TEST(ModelCatalogue, CachesAreAsLargeAsOthersCountThem) {
  const auto bf16_bytes = [](std::string_view name) { return 2 * count_kv_values_per_token(*find_model_shape(name)); };
  EXPECT_EQ(bf16_bytes("llama-3.1-8b"), 131072);
  EXPECT_EQ(bf16_bytes("llama-3.1-405b"), 516096);
  EXPECT_EQ(bf16_bytes("qwen3-32b"), 262144);
}

TEST(ModelCatalogue, ShapesHoldTogetherAndNamesAreUnique) {
  std::set<std::string_view> names;
  for (const ModelShape& shape : model_catalogue()) {
    EXPECT_TRUE(names.insert(shape.name).second) << shape.name;
    EXPECT_EQ(shape.heads % shape.kv_heads, 0) << shape.name;
    EXPECT_EQ(shape.head_width % 2, 0) << shape.name;
    EXPECT_TRUE(shape.qk_norm || shape.heads * shape.head_width == shape.width) << shape.name;
    for (const LinearShape& linear : layer_linears(shape)) {
      EXPECT_EQ(linear.inputs % 32, 0) << shape.name << " " << linear.module << ": its groups would not be whole";
    }
  }
  EXPECT_EQ(find_model_shape("llama-4"), nullptr);
}

}  // namespace
}  // namespace yoke::spec

#include "yoke/spec/hardware_facts.h"

#include <gtest/gtest.h>

#include <set>

#include "yoke/base/error_testing.h"
#include "yoke/base/json.h"
#include "yoke/spec/image_facts.h"

namespace yoke::spec {
namespace {

TEST(HardwareFacts, EveryFigureHasASource) {
  for (const auto& list : {hardware_facts(), other_hardware_facts()}) {
    for (const HardwareFacts& facts : list) {
      for (const Figure& figure : {facts.memory, facts.bandwidth, facts.bf16, facts.fp8, facts.fp4, facts.nvlink,
                                   facts.gpu_power, facts.idle_power, facts.load_power, facts.nic_limit}) {
        EXPECT_FALSE(figure.source.empty()) << facts.hardware->name;
      }
      EXPECT_GT(facts.memory.value, 0) << facts.hardware->name;
      EXPECT_GT(facts.bandwidth.value, 0) << facts.hardware->name;
      EXPECT_LT(facts.idle_power.value, facts.load_power.value) << facts.hardware->name;
    }
  }
}

TEST(HardwareFacts, AreThoseOfTheCatalogueThatChecksUse) {
  for (const Hardware& hardware : hardware_catalogue()) {
    const HardwareFacts* const facts = find_hardware_facts(hardware.name);
    ASSERT_NE(facts, nullptr) << hardware.name;
    EXPECT_EQ(facts->hardware, &hardware);
    const auto memory = static_cast<double>(hardware.gpu_memory.value);
    EXPECT_NEAR(facts->memory.value, memory, 0.03 * memory) << hardware.name << ": units differ by so much";
    EXPECT_EQ(facts->bandwidth.value, hardware.gpu_memory_bandwidth.value) << hardware.name;
    EXPECT_EQ(facts->rails * hardware.rail_rate.value / 8, facts->nic_limit.value) << hardware.name;
  }
}

TEST(HardwareFacts, MuchRepeatedWrongFiguresAreNotHere) {
  const HardwareFacts& b300 = *find_hardware_facts("xe9780");
  EXPECT_GT(b300.memory.value, 270e9) << "not 192 GB: that is a B200";
  EXPECT_EQ(b300.fp8.value, 4.5e15) << "not 2.25: that is BF16";
  EXPECT_GE(b300.gpu_power.value, 1100) << "not 700 W: that is an H100";
  EXPECT_EQ(b300.nvlink.value, 1.8e12) << "not 0.9: that is NVLink 4";
  const HardwareFacts& spark = *find_hardware_facts("gb10");
  EXPECT_EQ(spark.nvlink.value, 0) << "there is none between units";
  EXPECT_EQ(spark.nic_limit.value, 25e9) << "200 Gb/s for the NIC, however it is cabled";
  EXPECT_EQ(spark.fp4.value, 500e12) << "the PFLOP counts sparsity";
  EXPECT_EQ(spark.cables.size(), 3U);
}

TEST(HardwareFacts, NamesAreUniqueAndGpusAreFoundByTheDriversName) {
  std::set<std::string> names;
  for (const std::string& name : hardware_fact_names()) EXPECT_TRUE(names.insert(name).second) << name;
  EXPECT_EQ(find_hardware_facts_by_gpu("NVIDIA B300 SXM6 AC")->hardware->name, "b300");
  EXPECT_EQ(find_hardware_facts_by_gpu("NVIDIA GB300")->hardware->name, "gb300");
  EXPECT_EQ(find_hardware_facts_by_gpu("NVIDIA T4"), nullptr);
  EXPECT_EQ(find_hardware_facts_by_gpu(""), nullptr);
  EXPECT_EQ(find_hardware_facts("toaster"), nullptr);
}

TEST(ImageFacts, AStepOfFluxTakesThePublishedArithmetic) {
  const ImageModelFacts& dev = *find_image_model_facts("flux.1-dev");
  EXPECT_NEAR(step_flop(dev, 1024, 1024), 74.4e12, 0.5e12);
  EXPECT_NEAR(step_flop(dev, 512, 512), 21.5e12, 0.3e12);
  EXPECT_NEAR(step_flop(dev, 4096, 4096), 3908e12, 10e12);
  EXPECT_EQ(find_image_model_facts("flux-schnell")->steps, 4);
  EXPECT_NEAR(static_cast<double>(image_parameters(dev)), 16.87e9, 0.01e9);
}

TEST(ImageFacts, AConfigOfTransformerSizesGivesTheSameModel) {
  const auto read = [](std::string_view json) { return image_facts_from_config(parse_json(json, "config.json")); };
  const ImageModelFacts model = read(R"({"_class_name": "FluxTransformer2DModel", "num_layers": 19,
    "num_single_layers": 38, "num_attention_heads": 24, "attention_head_dim": 128, "guidance_embeds": true})");
  EXPECT_EQ(model.width, 3072);
  EXPECT_NEAR(static_cast<double>(model.parts[0].parameters), 11.90e9, 0.03e9);
  EXPECT_ERROR(read(R"({"_class_name": "UNet2DConditionModel"})"), ErrorCode::kUnsupported, "not an image model");
  EXPECT_ERROR(read(R"({"_class_name": "FluxTransformer2DModel", "num_layers": 0})"), ErrorCode::kInvalid, "from 1 to");
  EXPECT_ERROR(read(R"({"_class_name": "FluxTransformer2DModel", "num_layers": 19})"), ErrorCode::kInvalid,
               "'num_single_layers' is missing");
}

}  // namespace
}  // namespace yoke::spec

// Known answers: what anybody who owns such machines can check.
#include "yoke/plan/planner.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "yoke/base/error_testing.h"
#include "yoke/base/json.h"
#include "yoke/plan/explain.h"
#include "yoke/plan/request_json.h"

namespace yoke::plan {
namespace {

Request request_for(std::string_view model, std::string_view format, std::string_view machines) {
  Request request;
  const spec::ModelFacts* const found = spec::find_model_facts(model);
  request.model = found ? *found : spec::facts_from_size(model).value();
  request.format = *find_format(format);
  request.machines = parse_machines(machines);
  return request;
}

Plan plan_for(const Request& request) { return make_plan(request, shipped_constants()); }

const Estimate& estimate_in(const Plan& plan, std::string_view start) {
  for (const Estimate& estimate : plan.estimates) {
    if (estimate.name.starts_with(start)) return estimate;
  }
  ADD_FAILURE() << "no estimate " << start;
  return plan.estimates.front();
}

bool any_has(const std::vector<std::string>& lines, std::string_view part) {
  return std::any_of(lines.begin(), lines.end(),
                     [&](const std::string& line) { return line.find(part) != std::string::npos; });
}

TEST(Planner, SeveralImagesAreDrawnWholeOnEachGpuWithTheReason) {
  for (const char* name : {"sdxl", "flux.1-dev"}) {
    for (const char* machines : {"2xspark", "xe9780"}) {
      Request request{.goal = Goal::kDraw, .machines = parse_machines(machines)};
      request.image = *spec::find_image_model_facts(name);
      const Plan plan = make_plan(request, shipped_constants());
      const bool is_reported = std::any_of(plan.changes.begin(), plan.changes.end(), [](const std::string& change) {
        return change.find("draw each whole on one GPU") != std::string::npos;
      });
      EXPECT_TRUE(is_reported) << name << " on " << machines;
    }
  }
}

TEST(Planner, AFullMeshOfFourJoinsEachPairOnceAndIsNoSlowerThanARing) {
  Request request{.model = *spec::find_model_facts("llama-3.1-70b"),
                  .format = *find_format("int4"),
                  .machines = parse_machines("4xspark")};
  request.embeddings = true;
  request.tensor = 4;
  const Plan ring = make_plan(request, shipped_constants());
  request.machines.topology = spec::Topology::kMesh;
  const Plan mesh = make_plan(request, shipped_constants());
  ASSERT_EQ(mesh.cabling.cables.size(), 6U);
  std::set<std::pair<std::string, std::string>> pairs;
  std::set<std::string> ends, subnets;
  for (const Cable& cable : mesh.cabling.cables) {
    pairs.insert({cable.from, cable.to});
    ends.insert(cable.from + cable.rails.at(0).from_interface);
    ends.insert(cable.to + cable.rails.at(0).to_interface);
    subnets.insert(cable.rails.at(0).subnet);
  }
  EXPECT_EQ(pairs.size(), 6U);
  EXPECT_EQ(ends.size(), 12U) << "no half of a port is used twice";
  EXPECT_EQ(subnets.size(), 6U);
  const auto of = [](const Plan& plan, std::string_view name) {
    for (const Estimate& estimate : plan.estimates) {
      if (estimate.name.starts_with(name)) return estimate.value;
    }
    return 0.0;
  };
  EXPECT_GE(of(mesh, "decode, one"), of(ring, "decode, one"));
  EXPECT_NEAR(of(mesh, "embeddings of"), of(mesh, "prefill") / request.prompt, 1e-9);
}

TEST(Planner, Llama405bInFourBitsNeedsTwoSparks) {
  const Plan one = plan_for(request_for("llama-3.1-405b", "int4", "spark"));
  EXPECT_FALSE(one.fits);
  EXPECT_TRUE(any_has(one.changes, "2xspark")) << "it says what would hold it";
  const Plan two = plan_for(request_for("llama-3.1-405b", "int4", "2xspark"));
  ASSERT_TRUE(two.fits);
  EXPECT_EQ(two.layouts.front().name, "TP 2");
  EXPECT_NEAR(two.layouts.front().memory.weights, 108e9, 2e9) << "per node";
}

TEST(Planner, Llama405bOnTwoSparksDecodesNearTwoTokensASecondBecauseOfBandwidth) {
  const Plan plan = plan_for(request_for("llama-3.1-405b", "int4", "2xspark"));
  const Estimate& decode = estimate_in(plan, "decode, one");
  EXPECT_NEAR(decode.value, 1.95, 0.2) << "0.80 of the bandwidth would give 1.95";
  EXPECT_LT(decode.low, 1.95);
  EXPECT_GT(decode.high, 1.95);
  double total = 0;
  for (const TimeShare& share : plan.step) total += share.seconds;
  EXPECT_EQ(plan.step.front().part, "weights");
  EXPECT_GT(plan.step.front().seconds / total, 0.9);
}

TEST(Planner, TwoHundredBillionInFourBitsFillOneSparkAndFourPoolHalfATerabyte) {
  Request request = request_for("200b", "nvfp4", "spark");
  request.context = 512;
  const Plan one = plan_for(request);
  EXPECT_TRUE(one.fits);
  EXPECT_LT(one.layouts.front().memory.left(), 5e9) << "with almost no room for a cache";
  EXPECT_FALSE(plan_for(request_for("240b", "nvfp4", "spark")).fits);
  const Machines four = parse_machines("4xspark");
  EXPECT_NEAR(four.nodes * four.gpu.memory, 512e9, 12e9);
}

TEST(Planner, ServersHoldWhatTheyAreSoldFor) {
  EXPECT_TRUE(plan_for(request_for("llama-2-70b", "bf16", "xe9780")).fits);
  EXPECT_TRUE(plan_for(request_for("llama-3.1-405b", "fp8", "xe9780")).fits);
  EXPECT_TRUE(plan_for(request_for("kimi-k2", "fp8", "xe9780")).fits) << "a mixture of a trillion parameters";
  EXPECT_FALSE(plan_for(request_for("kimi-k2", "fp8", "h100")).fits);
}

TEST(Planner, SeventyBillionOnTwoServersIsTensorParallelInsideAndReplicasAcross) {
  Request request = request_for("llama-3.1-70b", "bf16", "2xxe9780");
  request.concurrency = 16;
  const Plan plan = plan_for(request);
  EXPECT_EQ(plan.layouts.front().layout.tensor, 8);
  EXPECT_EQ(plan.layouts.front().layout.replicas, 2);
}

TEST(Planner, ThreeSparksAreARingThatIsAFullMesh) {
  const Plan plan = plan_for(request_for("llama-3.1-70b", "int4", "3xspark"));
  EXPECT_EQ(plan.cabling.topology, spec::Topology::kRing);
  ASSERT_EQ(plan.cabling.cables.size(), 3U);
  EXPECT_NE(plan.cabling.shape.find("full mesh"), std::string::npos);
  std::vector<std::string> subnets;
  for (const Cable& cable : plan.cabling.cables) {
    for (const CableRail& rail : cable.rails) subnets.push_back(rail.subnet);
  }
  std::sort(subnets.begin(), subnets.end());
  EXPECT_EQ(std::unique(subnets.begin(), subnets.end()), subnets.end()) << "one subnet for each rail of each cable";
}

TEST(Planner, AThirdSparkHelpsByPipelineAndSaysSo) {
  const Plan plan = plan_for(request_for("llama-3.1-405b", "int4", "3xspark"));
  ASSERT_TRUE(plan.fits);
  EXPECT_EQ(plan.layouts.front().layout.tensor, 1);
  EXPECT_EQ(plan.layouts.front().layout.pipeline, 3);
  EXPECT_TRUE(any_has(plan.warnings, "3 ranks do not divide the 128 heads"));
  EXPECT_TRUE(any_has(plan.warnings, "by pipeline"));
  EXPECT_TRUE(any_has(plan.warnings, "faster on 2 of the 3 nodes: TP 2"));
  EXPECT_FALSE(any_has(plan_for(request_for("llama-3.1-405b", "int4", "4xspark")).warnings, "faster on"));
}

TEST(Planner, TensorParallelismOverOneGigabitIsAMistakeAndSaysSo) {
  Request request = request_for("llama-3.1-70b", "int4", "2xspark");
  set_link_rate(request.machines, {1e9});
  const Plan plan = plan_for(request);
  EXPECT_TRUE(any_has(plan.warnings, "is a mistake"));
  EXPECT_EQ(plan.layouts.front().layout.tensor, 1);
}

TEST(Planner, SevenBillionInTrainingNeedTheBytesOfTheFormula) {
  TrainCase c;
  c.model = *spec::find_model_facts("llama-2-7b");
  c.machines = parse_machines("h100");
  c.sharding = Sharding::kNone;
  const TrainMemory whole = train_memory(c);
  EXPECT_NEAR(whole.weights + whole.gradients + whole.optimizer, 18 * 6.738e9, 1e8) << "18 bytes a parameter";
  // 34 s b h for each layer is what Korthikanti gives for a plain MLP; a gated one with 2.7 h is close.
  EXPECT_NEAR(activation_bytes_per_layer(c) / (4096.0 * 4096), 34, 3);
  c.layout.replicas = 8;
  c.sharding = Sharding::kOptimizer;
  EXPECT_NEAR(train_memory(c).optimizer, 12 * 6.738e9 / 8, 1e8);
  EXPECT_NEAR(train_flop_per_token(c), 42.9e9, 0.1e9) << "causal, at 4k";
}

TEST(Planner, ATrillionTokensTakeTheDaysThatTheRateGives) {
  Request request = request_for("llama-2-7b", "bf16", "h100");
  request.goal = Goal::kTrain;
  request.tokens = 1e12;
  const Plan plan = plan_for(request);
  const double rate = estimate_in(plan, "training").value;
  EXPECT_NEAR(estimate_in(plan, "time for").value, 1e12 / rate / 86400, 1e-6);
  EXPECT_NEAR(1e12 / 45000 / 86400, 257, 1) << "at 45,000 tok/s";
}

TEST(Planner, TwoSparksDrawFasterBySequence) {
  Request request;
  request.goal = Goal::kDraw;
  request.image = *spec::find_image_model_facts("flux.1-dev");
  request.format = *find_format("bf16");
  request.machines = parse_machines("2xspark");
  const Plan plan = plan_for(request);
  const double one = estimate_in(plan, "seconds per image, 1 GPU").value;
  const double two = estimate_in(plan, "seconds per image, 2 GPUs").value;
  EXPECT_NEAR(one, 30, 8);
  EXPECT_GT(one / two, 1.6);
  EXPECT_LT(one / two, 2.0);
  EXPECT_TRUE(any_has(plan.warnings, "by layers does not"));
}

TEST(Planner, HeadsThatDoNotDivideAreRefusedWithTheSizesThatWork) {
  Request request = request_for("llama-3.1-405b", "int4", "3xspark");
  request.tensor = 3;
  try {
    plan_for(request);
    FAIL() << "taken";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUsage);
    EXPECT_NE(error.message().find("does not divide the 128 heads"), std::string::npos);
    EXPECT_NE(error.hint().find("1, 2, 4, 8, 16 would"), std::string::npos) << error.hint();
  }
  request.tensor = 4;
  EXPECT_ERROR(plan_for(request), ErrorCode::kUsage, "4 ranks were asked for", "at most the number of GPUs");
}

TEST(Planner, CacheFollowsTheEnginesRules) {
  ServeCase c;
  c.model = *spec::find_model_facts("gpt-oss-120b");
  c.format = *find_format("mxfp4");
  c.engine = Engine::kVllm;
  EXPECT_EQ(cache_bytes_held(c, 1024), 73728.0 * 1024) << "vLLM keeps all layers at full length";
  c.engine = Engine::kLlamaCpp;
  EXPECT_LT(cache_bytes_held(c, 1024), 0.6 * 73728 * 1024) << "llama.cpp keeps windows short";
  EXPECT_EQ(cache_bytes_held(c, 1001), cache_bytes_held(c, 1008)) << "whole pages";
}

TEST(Planner, TheReserveOnUnifiedMemoryIsAtLeastEightGibibytesAndEightPercent) {
  MemoryUse use;
  evaluate_memory(use, GpuModel{.memory = 32.0 * 1073741824, .kind = spec::MemoryKind::kUnified});
  EXPECT_EQ(use.reserve, 8.0 * 1073741824);
  const GpuModel spark = parse_machines("spark").gpu;
  evaluate_memory(use, spark);
  EXPECT_NEAR(use.reserve, 0.08 * spark.memory, 100);
}

TEST(Planner, WhatFitsStopsFittingOneStepBeyondTheLongestContext) {
  const ServeCase c = serve_case(request_for("llama-3.1-405b", "int4", "2xspark"), {.tensor = 2});
  const double longest = longest_context(c);
  ASSERT_GT(longest, 1000);
  EXPECT_TRUE(serve_memory(c, longest, 1).fits());
  EXPECT_FALSE(serve_memory(c, longest + 1, 1).fits());
}

TEST(Planner, SpeculationMakesMoreTokensAndAWiderInterval) {
  Request request = request_for("llama-3.1-70b", "int4", "spark");
  const Estimate plain = estimate_in(plan_for(request), "decode, one");
  request.draft = 3;
  request.acceptance = 0.7;
  const Estimate drafted = estimate_in(plan_for(request), "decode, one");
  EXPECT_GT(drafted.value, 1.8 * plain.value);
  EXPECT_GT(drafted.high / drafted.value, plain.high / plain.value);
}

TEST(Planner, OneShotExchangeLiftsTensorParallelMixtures) {
  Request request = request_for("gpt-oss-120b", "mxfp4-all", "2xspark");
  const double nccl = estimate_in(plan_for(request), "decode, one").value;
  request.machines.exchange = Exchange::kOneShot;
  const double one_shot = estimate_in(plan_for(request), "decode, one").value;
  EXPECT_NEAR(nccl, 69, 8) << "as published";
  EXPECT_GT(one_shot, 1.3 * nccl);
}

TEST(Planner, FiveHundredTwelveNodesScaleWithHierarchicalCollectives) {
  Request request = request_for("llama-3.1-70b", "fp8", "xe9780");
  request.goal = Goal::kTrain;
  const std::vector<ScalePoint> points = scale_plan(request, 512, shipped_constants());
  ASSERT_EQ(points.size(), 10U);
  EXPECT_EQ(points.back().nodes, 512);
  EXPECT_GT(points.back().rate, 200 * points[1].rate);
  EXPECT_LE(points.back().efficiency, 1.05);
}

TEST(Planner, ARequestReplaysFromItsJson) {
  Request serve = request_for("deepseek-v3", "fp8", "2xxe9780");
  serve.machines.oversubscription = 2;
  serve.concurrency = 12;
  Request draw;
  draw.goal = Goal::kDraw;
  draw.image = *spec::find_image_model_facts("flux.1-dev");
  draw.format = *find_format("bf16");
  draw.machines = parse_machines("2xspark");
  for (const Request& request : {serve, draw}) {
    const Request again = from_json<Request>(parse_json(print_json(to_json(request)), "plan.json"));
    EXPECT_EQ(print_json(to_json(plan_for(again))), print_json(to_json(plan_for(request))));
  }
  Document broken = to_json(serve);
  for (auto& [key, value] : broken.fields) {
    if (key == "context") value = Document::number(-1.0);
  }
  EXPECT_ERROR(from_json<Request>(broken), ErrorCode::kInvalid, "makes no sense");
}

TEST(Planner, TheSameRequestGivesTheSamePlan) {
  const Request request = request_for("gpt-oss-120b", "mxfp4", "2xspark");
  EXPECT_EQ(print_json(to_json(plan_for(request))), print_json(to_json(plan_for(request))));
}

TEST(Machines, AreReadFromWordsAndRefusedWithTheNearestName) {
  EXPECT_EQ(parse_machines("2xspark").nodes, 2);
  EXPECT_EQ(parse_machines(" 16 x XE9780 ").gpus(), 128);
  EXPECT_EQ(parse_machines("dell-pro-max").hardware, "spark");
  EXPECT_EQ(parse_machines("8xh100").gpus_per_node, 8);
  EXPECT_EQ(parse_machines("2xcpu").exchange, Exchange::kTcp);
  for (const char* wrong :
       {"", "2x", "0xspark", "-1xspark", "99999xspark", "2xsparc", "x", "99999999999999999xspark"}) {
    EXPECT_ERROR(parse_machines(wrong), ErrorCode::kUsage, "--on") << wrong;
  }
  try {
    parse_machines("2xsparc");
  } catch (const Error& error) {
    EXPECT_NE(error.hint().find("did you mean 'spark'"), std::string::npos) << error.hint();
  }
}

TEST(Machines, FollowAClusterFilesOwnExpectations) {
  const yoke::spec::Cluster cluster = spec::parse_cluster(R"(name: desk
nodes:
  - { name: a, address: 192.168.1.21 }
  - { name: b, address: 192.168.1.22 }
hardware: spark
compute: { memory_bandwidth: 250GB/s }
fabric: { topology: direct, rail_rate: 50Gb/s }
)",
                                                          "desk.yaml");
  const Machines machines = machines_of(cluster);
  EXPECT_EQ(machines.nodes, 2);
  EXPECT_EQ(machines.gpu.bandwidth, 250e9);
  EXPECT_EQ(machines.link, 100e9 / 8);
  EXPECT_EQ(machines.exchange, Exchange::kNccl);
}

TEST(Machines, ProbedFactsReplaceTheCataloguesMemory) {
  yoke::spec::Machine spark;
  spark.gpus.push_back({.index = 0, .name = "NVIDIA GB10"});
  spark.memory.unified = true;
  spark.memory.available = Bytes{100'000'000'000};
  yoke::spec::Machine fuller = spark;
  fuller.memory.available = Bytes{90'000'000'000};
  const Machines machines = machines_of(std::vector{spark, fuller});
  EXPECT_EQ(machines.hardware, "spark");
  EXPECT_EQ(machines.gpu.memory, 90e9) << "of the fuller node";
  yoke::spec::Machine plain;
  plain.memory.total = Bytes{16'000'000'000};
  EXPECT_EQ(machines_of(std::vector{plain}).hardware, "cpu");
}

TEST(Explain, SeparatesThePlausibleFromTheImpossible) {
  const Constants constants = shipped_constants();
  const ClaimExplained published = explain_claim("69 tok/s gpt-oss-120b 2xspark", constants);
  EXPECT_EQ(published.verdict, "plausible");
  EXPECT_NEAR(published.bandwidth_percent, 35, 5) << "2.7 GB a token of 546 GB/s";
  EXPECT_EQ(explain_claim("400 tok/s llama-3.1-70b int4 2xspark", constants).verdict, "impossible");
  const ClaimExplained slow = explain_claim("45,000 tok/s train llama-2-7b h100", constants);
  EXPECT_EQ(slow.verdict, "worse than expected");
  EXPECT_NEAR(slow.arithmetic_percent, 24, 1) << "241 TFLOP/s of 990";
  const ClaimExplained fast = explain_claim("180000 tok/s train llama-2-7b h100", constants);
  EXPECT_EQ(fast.verdict, "impossible");
  EXPECT_NEAR(fast.arithmetic_percent, 97, 2) << "965 TFLOP/s: not in BF16";
  EXPECT_TRUE(any_has(fast.notes, "of the FP8 peak it would be 49%"));
  EXPECT_EQ(explain_claim("180000 tok/s train llama-2-7b xe9780", constants).verdict, "plausible");
  for (const char* gap : {"", "69 tok/s", "gpt-oss-120b 2xspark", "69 tok/s gpt-oss-120b", "tok/s spark",
                          "69 gpt-oss-120b 3 2xspark", "-5 tok/s llama-3.1-8b spark", "5 s/image llama-3.1-8b spark"}) {
    EXPECT_ERROR(explain_claim(gap, constants), ErrorCode::kUsage, "the claim") << gap;
  }
}

TEST(Explain, ReadsClaimsAsPeopleWriteThem) {
  const Constants constants = shipped_constants();
  for (const char* same :
       {"12 tok/s llama-3.1-70b fp8 2xspark", "12 tokens/s Llama 3.1 70B FP8 on 2x spark",
        "12tok/s, Llama-3.1-70B (FP8) on 2 DGX Sparks!", "Llama 3.1 70B FP8 gets ~12 tokens per second on 2 x spark",
        "2xspark fp8 llama31-70b 12t/s", "12 tok/s, Llama 3.1 70B FP8 on two DGX Sparks"}) {
    const ClaimExplained explained = explain_claim(same, constants);
    EXPECT_EQ(explained.claimed, 12) << same;
    EXPECT_EQ(explained.layout, "TP 2") << same;
    EXPECT_EQ(explained.verdict, "impossible") << same << ": twice 273 GB/s read 70 GB at most 7.7 times a second";
    EXPECT_FALSE(any_has(explained.notes, "not understood")) << same;
  }
  EXPECT_EQ(explain_claim("45k tok/s train llama-2-7b h100", constants).claimed, 45000);
  EXPECT_EQ(explain_claim("155 tok/s gpt-oss-120b 2xspark batch 4", constants).verdict, "plausible");
  EXPECT_TRUE(any_has(explain_claim("69 tok/s gpt-oss-120b 2xspark turbo", constants).notes, "left out: turbo"));
  EXPECT_ERROR(explain_claim("69 tok/s gpt-oss-120 2xspark", constants), ErrorCode::kUsage, "no model",
               "did you mean 'gpt-oss-120b'");
  EXPECT_ERROR(explain_claim("69 tok/s gpt-oss-120b 2xsparx", constants), ErrorCode::kUsage, "no machines",
               "did you mean '2xspark'");
}

}  // namespace
}  // namespace yoke::plan

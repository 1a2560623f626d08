#include "yoke/plan/calibration.h"

#include <gtest/gtest.h>

#include "yoke/base/error_testing.h"
#include "yoke/base/json.h"
#include "yoke/plan/planner.h"
#include "yoke/plan/request_json.h"

namespace yoke::plan {
namespace {

Calibration sample_calibration() {
  return {.name = "desk",
          .time = "2026-11-18T02:00:00Z",
          .processor = "a processor",
          .backend = "ref",
          .transport = "direct",
          .nodes = 2,
          .threads = 1,
          .memory = 8e9,
          .bandwidth = 10e9,
          .arithmetic = 50e9,
          .constants = {{"decode.cpu.16bit.bandwidth", 0.5},
                        {"decode.cpu.32bit.bandwidth", 0.5},
                        {"decode.cpu.8bit.bandwidth", 0.5},
                        {"decode.cpu.4bit.bandwidth", 0.1},
                        {"decode.cache.cpu.bandwidth", 0.5},
                        {"decode.layer.cpu", 20},
                        {"decode.step.cpu", 100},
                        {"decode.step.cpu.ranks", 300}},
          .reads = {{"decode.cpu.4bit.bandwidth", 1e6, 9e9}, {"decode.cpu.4bit.bandwidth", 1e8, 1e9}},
          .all_reduce = {{256, 50e-6}, {4096, 60e-6}, {1 << 20, 5e-3}}};
}

Request request_on(const Machines& machines) {
  Request request;
  request.model = *spec::find_model_facts("llama-3.2-1b");
  request.format = *find_format("bf16");
  request.machines = machines;
  request.engine = Engine::kYoke;
  request.cache_bytes = 4;
  request.context = 128;
  request.prompt = 16;
  return request;
}

const Estimate& decode_of(const Plan& plan) {
  for (const Estimate& estimate : plan.estimates) {
    if (estimate.name == "decode, one request") return estimate;
  }
  throw Error(ErrorCode::kNotFound, "no estimate of decoding");
}

TEST(Calibration, SurvivesAsJson) {
  const Calibration calibration = sample_calibration();
  EXPECT_EQ(from_json<Calibration>(parse_json(print_json(to_json(calibration)), "desk.json")), calibration);
}

TEST(Calibration, RefusesWhatCannotBeMeasured) {
  const auto refused = [](const auto& change, const char* why) {
    Calibration calibration = sample_calibration();
    change(calibration);
    EXPECT_ERROR(from_json<Calibration>(to_json(calibration)), ErrorCode::kInvalid, why, "yoke bench calibrate");
  };
  refused([](Calibration& c) { c.nodes = 0; }, "out of range");
  refused([](Calibration& c) { c.memory = -1; }, "out of range");
  refused([](Calibration& c) { c.bandwidth = 1e300; }, "out of range");
  refused([](Calibration& c) { c.constants[0].name = "decode.speed"; }, "no constant is called 'decode.speed'");
  refused([](Calibration& c) { c.constants[0].value = 0; }, "cannot be 0");
  refused([](Calibration& c) { c.constants[0].value = 50; }, "cannot be 50");
  refused([](Calibration& c) { c.reads = {{"decode.speed", 1e6, 1e9}}; }, "no constant is called 'decode.speed'");
  refused([](Calibration& c) { c.reads = {{"decode.cpu.4bit.bandwidth", 0, 1e9}}; }, "do not rise");
  refused(
      [](Calibration& c) {
        c.reads = {{"decode.cpu.4bit.bandwidth", 9, 1e9}, {"decode.cpu.4bit.bandwidth", 9, 1e9}};
      },
      "do not rise");
  refused([](Calibration& c) { c.reads = {{"decode.cpu.4bit.bandwidth", 9, -1}}; }, "out of range");
  refused([](Calibration& c) { c.all_reduce[1].bytes = 256; }, "do not rise");
  refused([](Calibration& c) { c.all_reduce[1].seconds = 0; }, "out of range");
}

TEST(Calibration, TheCurveIsALineBetweenSizesAndGoesOnBeyondThem) {
  const std::vector<CurvePoint> curve = {{1000, 10e-6}, {3000, 30e-6}, {4000, 90e-6}};
  EXPECT_DOUBLE_EQ(curve_seconds(curve, 0), 10e-6);
  EXPECT_DOUBLE_EQ(curve_seconds(curve, 2000), 20e-6);
  EXPECT_DOUBLE_EQ(curve_seconds(curve, 3500), 60e-6);
  EXPECT_NEAR(curve_seconds(curve, 5000), 150e-6, 1e-12);
  EXPECT_DOUBLE_EQ(curve_seconds({{100, 1e-6}}, 1e9), 1e-6);
}

TEST(Calibration, RatesOfReadingLieBetweenMeasuredSizes) {
  const Calibration calibration = sample_calibration();
  const std::string_view name = "decode.cpu.4bit.bandwidth";
  EXPECT_DOUBLE_EQ(*read_rate(calibration, name, 1), 9e9);
  EXPECT_DOUBLE_EQ(*read_rate(calibration, name, 1e6), 9e9);
  EXPECT_NEAR(*read_rate(calibration, name, 1e7), 3e9, 1) << "half way on logarithmic scales";
  EXPECT_DOUBLE_EQ(*read_rate(calibration, name, 1e8), 1e9);
  EXPECT_DOUBLE_EQ(*read_rate(calibration, name, 1e12), 1e9);
  EXPECT_FALSE(read_rate(calibration, "decode.cpu.16bit.bandwidth", 1e6));
}

TEST(Calibration, ASmallModelIsPlannedAtTheSpeedOfItsCache) {
  Machines machines = parse_machines("2xcpu");
  calibrate(sample_calibration(), machines);
  Request request = request_on(machines);
  request.format = *find_format("int4");
  request.model.vocabulary = 16;
  request.model.layers = 1;
  const double small = make_plan(request, shipped_constants()).step.front().seconds;
  request.model.layers = 8;
  const double large = make_plan(request, shipped_constants()).step.front().seconds;
  EXPECT_GT(large, 1.8 * 8 * small) << "15.7 MB a rank at 2.6 GB/s, 125 MB at 1 GB/s";
}

TEST(Calibration, PlansOfTheseMachinesUseItAndSaySo) {
  Machines machines = parse_machines("2xcpu");
  const Plan before = make_plan(request_on(machines), shipped_constants());
  calibrate(sample_calibration(), machines);
  EXPECT_EQ(machines.gpu.memory, 8e9);
  const Plan after = make_plan(request_on(machines), shipped_constants());
  EXPECT_EQ(after.layouts.front().name, "TP 2");
  // 2.47 GB in BF16, half on each node, at half of 10 GB/s: 247 ms; 32 all-reduces of 4 x 2048 bytes.
  EXPECT_NEAR(after.step.front().seconds, 0.247, 0.002);
  const double exchange = 32 * curve_seconds(sample_calibration().all_reduce, 8192) + 300e-6;
  EXPECT_NEAR(after.step.back().seconds, exchange, 1e-9);
  EXPECT_NE(decode_of(after).provenance.find("measured here"), std::string::npos) << decode_of(after).provenance;
  EXPECT_EQ(decode_of(after).provenance.find("published"), std::string::npos) << decode_of(after).provenance;
  EXPECT_EQ(decode_of(before).provenance.find("measured here"), std::string::npos);
  EXPECT_LT(decode_of(after).high / decode_of(after).low, decode_of(before).high / decode_of(before).low)
      << "what was measured is surer";
}

TEST(Calibration, TravelsWithTheRequestSoThatItReplays) {
  Machines machines = parse_machines("2xcpu");
  calibrate(sample_calibration(), machines);
  Request request = request_on(machines);
  request.rank_weights = {{1, 2.4e9}, {2, 1.3e9}};
  request.context_may_shrink = true;
  const Request again = from_json<Request>(parse_json(print_json(to_json(request)), "plan.json"));
  EXPECT_EQ(print_json(to_json(make_plan(again, shipped_constants()))),
            print_json(to_json(make_plan(request, shipped_constants()))));
}

TEST(Calibration, WhatProcessorsMeasureSaysNothingAboutAGpu) {
  Machines machines = parse_machines("2xspark");
  const Machines before = machines;
  calibrate(sample_calibration(), machines);
  EXPECT_EQ(machines.gpu.bandwidth, before.gpu.bandwidth);
  EXPECT_EQ(machines.gpu.bf16, before.gpu.bf16);
  EXPECT_EQ(machines.gpu.memory, 8e9) << "one memory for both";
  const Group pair{.nodes = 2};
  const Constants k = shipped_constants();
  EXPECT_EQ(all_reduce_seconds(machines, pair, 16384, k), all_reduce_seconds(before, pair, 16384, k))
      << "measured by TCP, used by NCCL";
  machines.measured->transport = "nccl";
  EXPECT_NEAR(all_reduce_seconds(machines, pair, 256, k), 50e-6 + 50e-6, 1e-9)
      << "outside a graph, and what a graph was published to add";
}

}  // namespace
}  // namespace yoke::plan

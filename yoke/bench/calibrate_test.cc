// Constants come back out of samples that were made with them.
#include "yoke/bench/calibrate.h"

#include <gtest/gtest.h>

#include "yoke/base/json.h"
#include "yoke/bench/calibration_files.h"
#include "yoke/plan/planner.h"

namespace yoke::bench {
namespace {

using plan::Constant;

struct KnownEngine {
  plan::Machines machines = plan::machines_of(*spec::find_hardware_facts("cpu"), 2);
  plan::Constants constants = plan::shipped_constants();
  double all_reduce = 120e-6;

  KnownEngine() {
    machines.gpu.bandwidth = 10e9;
    machines.gpu.bf16 = machines.gpu.fp8 = 60e9;
    machines.measured = plan::Calibration{.nodes = 2, .all_reduce = {{256, all_reduce}, {512, all_reduce}}};
    constants.set(plan::Constant::kEtaCpu32, 0.4);
    constants.set(plan::Constant::kEtaCpu16, 0.3);
    constants.set(plan::Constant::kEtaCpu8, 0.15);
    constants.set(plan::Constant::kEtaCpu4, 0.05);
    constants.set(plan::Constant::kEtaCpu4Group32, 0.03);
    constants.set(plan::Constant::kEtaCpuFp4, 0.08);
    constants.set(plan::Constant::kEtaCpuCache, 0.2);
    constants.set(plan::Constant::kLayerCpu, 25);
    constants.set(plan::Constant::kStepCpu, 150);
    constants.set(plan::Constant::kStepCpuRanks, 400);
    constants.set(plan::Constant::kPrefillCpu32, 0.3);
    constants.set(plan::Constant::kPrefillCpu16, 0.25);
    constants.set(plan::Constant::kPrefillCpu8, 0.2);
    constants.set(plan::Constant::kPrefillCpu4, 0.1);
    constants.set(plan::Constant::kPrefillCpuFp4, 0.15);
  }

  void time(EngineSample& sample) const {
    plan::ServeCase c;
    c.model = spec::facts_of_shape(shape_of(sample));
    const std::string_view format = sample.format == weights::MakeFormat::kF32     ? "f32"
                                    : sample.format == weights::MakeFormat::kFp8   ? "fp8"
                                    : sample.format == weights::MakeFormat::kNvfp4 ? "nvfp4"
                                    : sample.int4_group == 32                      ? "int4-g32"
                                    : sample.format == weights::MakeFormat::kW4a16 ? "int4"
                                                                                   : "bf16";
    c.format = *plan::find_format(format);
    c.engine = plan::Engine::kYoke;
    c.machines = machines;
    c.layout = {.tensor = sample.ranks};
    c.context = static_cast<double>(sample.prompt + sample.answer / 2);
    c.cache_bytes = 2;
    c.chunk = static_cast<double>(sample.prompt);
    sample.step = plan::decode_step(c, constants).total();
    sample.prefill = plan::prefill_seconds(c, static_cast<double>(sample.prompt), 0, constants);
  }

  CalibrationSamples sampled() const {
    CalibrationSamples samples{
        .backend = "made", .nodes = 2, .threads = 1, .memory = 4e9, .bandwidth = 10e9, .arithmetic = 60e9};
    const auto take = [&](std::vector<EngineSample> wanted) {
      for (EngineSample& sample : wanted) {
        time(sample);
        samples.samples.push_back(sample);
      }
    };
    take(samples_wanted(samples.nodes));
    take(larger_samples(samples, 16e6));
    return samples;
  }
};

CollectiveRun curve_run(double microseconds) {
  CollectiveRun run;
  run.transport = "direct: TCP over 2 rails";
  for (const std::int64_t size : {256, 4096, 65536}) {
    CollectiveRow row{.size = size};
    row.out_of_place.stats.p50 = microseconds + static_cast<double>(size) / 1000;
    run.rows.push_back(row);
  }
  return run;
}

double value_of(const plan::Calibration& calibration, plan::Constant id) {
  for (const plan::MeasuredConstant& constant : calibration.constants) {
    if (constant.name == plan::row_of(id).name) return constant.value;
  }
  ADD_FAILURE() << plan::row_of(id).name << " was not fitted";
  return 0;
}

TEST(Calibrate, RecoversTheConstantsBehindSamples) {
  const KnownEngine known;
  const plan::Calibration calibration = calibration_of(known.sampled(), curve_run(60));
  for (const plan::Constant id :
       {plan::Constant::kEtaCpu32, plan::Constant::kEtaCpu16, plan::Constant::kEtaCpu8, plan::Constant::kEtaCpu4,
        plan::Constant::kEtaCpu4Group32, plan::Constant::kEtaCpuFp4, plan::Constant::kPrefillCpuFp4,
        plan::Constant::kEtaCpuCache, plan::Constant::kLayerCpu, plan::Constant::kStepCpu,
        plan::Constant::kStepCpuRanks, plan::Constant::kPrefillCpu32, plan::Constant::kPrefillCpu16,
        plan::Constant::kPrefillCpu8, plan::Constant::kPrefillCpu4}) {
    const double wanted = known.constants.peek(id);
    EXPECT_NEAR(value_of(calibration, id), wanted, 0.05 * wanted) << plan::row_of(id).name;
  }
}

TEST(Calibrate, TheCurveIsMovedToWhatTheEngineWaits) {
  const KnownEngine known;
  const plan::Calibration calibration = calibration_of(known.sampled(), curve_run(60));
  EXPECT_EQ(calibration.transport, "direct");
  ASSERT_EQ(calibration.all_reduce.size(), 3U);
  EXPECT_NEAR(plan::curve_seconds(calibration.all_reduce, 512), known.all_reduce, 0.05 * known.all_reduce);
  EXPECT_NEAR(calibration.all_reduce[2].seconds - calibration.all_reduce[1].seconds, 61.44e-6, 1e-9)
      << "the slope stays as measured";
  EXPECT_NEAR(plan::curve_seconds(calibration.all_reduce_bare, 4096), 64.096e-6, 1e-9) << "the bare one is kept, too";
}

TEST(Calibrate, AModelThatTookNoPartIsPredicted) {
  const KnownEngine known;
  const CalibrationSamples samples = known.sampled();
  const auto check = check_calibration(samples, calibration_of(samples, curve_run(60)));
  ASSERT_TRUE(check);
  EXPECT_NEAR(check->predicted / check->measured, 1, 0.1);
  EXPECT_FALSE(check_calibration({.nodes = 1}, {})) << "one node has no such model";
}

// Weights that lie in a cache are read faster, and a plan of a model between two measured sizes knows it.
TEST(Calibrate, SmallModelsAreReadAtTheSpeedOfTheCachesThatHoldThem) {
  KnownEngine known;
  const std::string constant(plan::row_of(Constant::kEtaCpu4).name);
  known.machines.measured->reads = {
      {constant, 1e6, 8e9}, {constant, 8e6, 5e9}, {constant, 48e6, 0.8e9}, {constant, 500e6, 0.6e9}};
  const CalibrationSamples samples = known.sampled();
  const plan::Calibration calibration = calibration_of(samples, curve_run(60));
  double before = 1e18;
  int sizes = 0;
  for (const plan::ReadRate& read : calibration.reads) {
    if (read.constant != constant) continue;
    EXPECT_NEAR(read.rate / *plan::read_rate(*known.machines.measured, constant, read.bytes), 1, 0.05) << read.bytes;
    EXPECT_LT(read.rate, before);
    before = read.rate;
    ++sizes;
  }
  EXPECT_EQ(sizes, 3);
  const auto check = check_calibration(samples, calibration);
  ASSERT_TRUE(check);
  EXPECT_NEAR(check->predicted / check->measured, 1, 0.25);
}

TEST(Calibrate, AModelOverRanksIsPredictedThoughOneRankAloneWasDisturbed) {
  const KnownEngine known;
  CalibrationSamples samples = known.sampled();
  for (EngineSample& sample : samples.samples) {
    if (sample.ranks == 1) sample.step *= 5;
  }
  const auto check = check_calibration(samples, calibration_of(samples, curve_run(60)));
  ASSERT_TRUE(check);
  EXPECT_NEAR(check->predicted / check->measured, 1, 0.1);
}

CollectiveRun noisy_curve() {
  CollectiveRun run = curve_run(60);
  run.rows[0].out_of_place.stats.p50 = 5000;
  return run;
}

TEST(Calibrate, AnAllReduceTakesNoLongerThanOneOfMoreBytes) {
  const plan::Calibration calibration = calibration_of(KnownEngine().sampled(), noisy_curve());
  ASSERT_EQ(calibration.all_reduce_bare.size(), 3U);
  EXPECT_NEAR(calibration.all_reduce_bare[0].seconds, 64.096e-6, 1e-9);
}

TEST(Calibrate, LargeModelsAreAsLargeAsCachesMemoryAndTheEngineSuggest) {
  CalibrationSamples samples{.memory = 4e9, .bandwidth = 10e9};
  samples.samples = samples_wanted(1);
  for (EngineSample& sample : samples.samples) sample.step = 1e-3;
  const auto largest = [&](double last_cache) {
    double bytes = 0;
    for (const EngineSample& sample : larger_samples(samples, last_cache)) {
      const weights::MakeModelOptions made{.shape = shape_of(sample), .format = sample.format};
      bytes = std::max(bytes, static_cast<double>(weights::made_model_size(made).value));
    }
    return bytes;
  };
  EXPECT_GT(largest(32e6), 90e6) << "no cache holds it";
  EXPECT_LT(largest(32e6), 140e6);
  EXPECT_LT(largest(1e9), 320e6);
  samples.memory = 300e6;  // of a lab's node
  EXPECT_LT(largest(32e6), 100e6);
  samples.memory = 4e9;
  for (EngineSample& sample : samples.samples) sample.step = 1;  // seconds
  EXPECT_EQ(larger_samples(samples, 32e6).size(), 1U) << "a slow engine is not asked for more than the check";
}

TEST(Calibrate, SamplesSurviveAsJson) {
  const CalibrationSamples samples = KnownEngine().sampled();
  EXPECT_EQ(print_json(to_json(from_json<CalibrationSamples>(to_json(samples)))), print_json(to_json(samples)));
}

TEST(Calibrate, SamplesCanBeCutForEveryNumberOfRanks) {
  for (int ranks = 1; ranks <= 9; ++ranks) {
    CalibrationSamples samples{.nodes = ranks, .memory = 4e9, .bandwidth = 10e9};
    samples.samples = samples_wanted(ranks);
    for (EngineSample& sample : samples.samples) sample.step = 1e-3;
    for (const EngineSample& sample : larger_samples(samples, 32e6)) samples.samples.push_back(sample);
    for (const EngineSample& sample : samples.samples) {
      EXPECT_EQ(sample.heads % sample.ranks, 0) << ranks;
      const std::int64_t group = std::max<std::int64_t>(sample.int4_group, 1);
      EXPECT_EQ(sample.width % (sample.ranks * group), 0) << ranks << " " << sample.name;
      EXPECT_EQ(sample.mlp_width % (sample.ranks * group), 0) << ranks << " " << sample.name;
    }
  }
}

TEST(CalibrationFiles, NamesStayInTheirFolder) {
  EXPECT_EQ(calibration_file("../../etc/passwd").parent_path(), calibration_file("desk-1").parent_path());
  EXPECT_EQ(calibration_file("..").filename(), "_..json");
  EXPECT_EQ(calibration_file("desk-1").filename(), "desk-1.json");
}

}  // namespace
}  // namespace yoke::bench

#include "yoke/bench/model_speed.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "yoke/base/error.h"
#include "yoke/base/error_testing.h"
#include "yoke/base/fields.h"
#include "yoke/bench/model_ranks.h"
#include "yoke/spec/model_catalogue.h"

namespace yoke::bench {
namespace {

ModelRequest small_request() {
  weights::MakeModelOptions made{.shape = *spec::find_model_shape("nano"),
                                 .format = weights::MakeFormat::kW4a16,
                                 .head = weights::HeadFormat::kInt8};
  made.shape.layers = 2;
  return {.options = {.made = made, .threads = 1, .prompt = 20, .tokens = 3, .context = 7, .batch = 2, .rounds = 2}};
}

TEST(ModelSpeed, EveryOperationIsCountedWithItsBytesAndItsWork) {
  const ModelRequest request = small_request();
  const ModelRun run = run_model_bench(request);
  const ModelSpeed& speed = run.speed;
  EXPECT_EQ(speed.prefill.seconds.size(), 2U);
  EXPECT_EQ(speed.decode.tokens, 6);
  EXPECT_GT(speed.decode.median(), 0);
  EXPECT_GT(speed.ceilings.read, 0);
  EXPECT_GT(speed.ceilings.arithmetic, 0);
  EXPECT_EQ(speed.ceilings.kind, "int8");
  const spec::ModelShape& shape = request.options.made->shape;
  const auto find = [](const std::vector<OperationTime>& all, const std::string& name) {
    for (const OperationTime& time : all) {
      if (time.name == name) return time;
    }
    ADD_FAILURE() << name;
    return OperationTime{};
  };
  // Two rounds of three steps; a prompt of each of two sequences is a step of its own.
  const OperationTime down = find(speed.decode_operations, "down");
  EXPECT_EQ(down.calls, 2 * 3 * 2);
  EXPECT_EQ(down.operations, 2.0 * 3 * 2 * (2 * 2) * static_cast<double>(shape.width * shape.mlp_width));
  EXPECT_EQ(find(speed.prefill_operations, "q, k, v").calls, 2 * 2 * 2);
  EXPECT_EQ(find(speed.prefill_operations, "head").calls, 2 * 2);
  EXPECT_EQ(find(speed.decode_operations, "selection").calls, 2 * 3);
  const double keys = 2.0 * (28 + 29 + 30) * 2;  // of rounds, steps and sequences; 27 tokens are there before
  EXPECT_EQ(find(speed.decode_operations, "attention").bytes,
            keys * 2 * static_cast<double>(shape.kv_heads * shape.head_width) * 2 * 2);
  EXPECT_NEAR(speed.step_bytes, speed.weight_bytes, speed.weight_bytes * 0.2);
}

TEST(ModelSpeed, TextJsonAndHistoryHoldTheSameRates) {
  const ModelRequest request = small_request();
  ModelRun run = run_model_bench(request);
  const ModelSpeed back = from_json<ModelSpeed>(to_json(run.speed));
  EXPECT_EQ(back.decode.median(), run.speed.decode.median());
  EXPECT_EQ(back.decode_operations.size(), run.speed.decode_operations.size());
  const RunRecord record = model_record(run, request.options);
  ASSERT_EQ(record.rows.size(), 2U);
  EXPECT_EQ(record.rows[1].value, run.speed.decode.median());
  EXPECT_EQ(record.rows[1].name, "decode behind 27");
  run.peer = PeerRates{.prefill = {run.speed.prefill.median() / 2}, .decode = {run.speed.decode.median() / 4}};
  const std::string text = model_text(run, request.options);
  EXPECT_NE(text.find("2.00\n"), std::string::npos) << text;
  EXPECT_NE(text.find("4.00\n"), std::string::npos) << text;
  // With something in the cache before, reading the prompt is more than making a vector of it.
  EXPECT_EQ(text.find("Embeddings"), std::string::npos) << text;
  ModelSpeedOptions alone = request.options;
  alone.context = 0;
  const std::string texts = fmt::format("Embeddings: {:.3g} texts of {} tokens",
                                        run.speed.prefill.median() / static_cast<double>(alone.prompt), alone.prompt);
  EXPECT_NE(model_text(run, alone).find(texts), std::string::npos) << texts;
}

TEST(ModelSpeed, AnOperationsLimitIsTheSlowerOfReadingAndComputing) {
  const ModelCeilings ceilings{.read = 100, .arithmetic = 10, .plain = 2, .kind = "int8"};
  EXPECT_DOUBLE_EQ(limit_seconds({.name = "down", .bytes = 500, .operations = 20}, ceilings), 5);
  EXPECT_DOUBLE_EQ(limit_seconds({.name = "down", .bytes = 50, .operations = 20}, ceilings), 2);
  EXPECT_DOUBLE_EQ(limit_seconds({.name = "attention", .bytes = 50, .operations = 20}, ceilings), 10);
}

TEST(LlamaBench, RatesAreReadAndOtherOutputIsRefused) {
  const PeerRates rates = read_llama_bench(
      R"([{"n_prompt": 512, "n_gen": 0, "avg_ts": 125.5}, {"n_prompt": 0, "n_gen": 64, "avg_ts": 36.25}])");
  EXPECT_EQ(rates.prefill, std::vector<double>{125.5});
  EXPECT_EQ(rates.decode, std::vector<double>{36.25});
  EXPECT_ERROR(read_llama_bench("[]"), ErrorCode::kInvalid, "names no test");
  EXPECT_ERROR(read_llama_bench("error: no model"), ErrorCode::kInvalid, "llama-bench");
}

}  // namespace
}  // namespace yoke::bench

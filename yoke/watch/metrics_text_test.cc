#include "yoke/watch/metrics_text.h"

#include <gtest/gtest.h>

#include "yoke/watch/engines.h"

namespace yoke::watch {
namespace {

TEST(MetricsText, GivesNamesLabelsAndValues) {
  const auto metrics = read_metrics(
      "# TYPE a gauge\na 1\nb{x=\"1\",y=\"a\\\"b\\\\c\\nd\"} 2.5 1700000000\n\nc{} +3e2\nd NaN\ne +Inf\nf{x=\"} 1\n1g "
      "2\n");
  ASSERT_EQ(metrics.size(), 4U);
  EXPECT_EQ(metrics[0], (Metric{"a", {}, 1}));
  EXPECT_EQ(metrics[1].label("y"), "a\"b\\c\nd");
  EXPECT_EQ(metrics[1].label("z"), "");
  EXPECT_EQ(metrics[2].value, 300);
  EXPECT_EQ(metrics[3].name, "1g");
}

TEST(MetricsText, IsBounded) {
  std::string text;
  for (std::size_t i = 0; i < kMaxMetrics + 10; ++i) text += "a 1\n";
  EXPECT_EQ(read_metrics(text).size(), kMaxMetrics);
}

TEST(MetricsText, WritesHeadsOnlyOfFamiliesWithSeries) {
  MetricsWriter writer;
  writer.family("none", "gauge", "x");
  writer.family("some", "gauge", "help");
  writer.series({{"a", "q\"\\\n"}}, 1.5);
  writer.series({}, 2);
  EXPECT_EQ(writer.text(), "# HELP some help\n# TYPE some gauge\nsome{a=\"q\\\"\\\\\\n\"} 1.5\nsome 2\n");
}

TEST(Engines, AreKnownByTheirMetrics) {
  const auto vllm = read_engine(read_metrics("vllm:num_requests_running{model_name=\"m\"} 2\n"
                                             "vllm:num_requests_running{model_name=\"n\"} 1\n"
                                             "vllm:generation_tokens_total{model_name=\"m\"} 12345\n"
                                             "vllm:gpu_cache_usage_perc{model_name=\"m\"} 0.25\n"),
                                8000);
  ASSERT_TRUE(vllm);
  EXPECT_EQ(vllm->kind, "vllm");
  EXPECT_EQ(vllm->running, 3);
  EXPECT_FALSE(vllm->waiting);
  EXPECT_EQ(vllm->generated_tokens, 12345);
  EXPECT_EQ(vllm->cache_usage, 0.25);
  EXPECT_EQ(vllm->model, "m");
  EXPECT_EQ(read_engine(read_metrics("vllm:num_requests_running 0\nyoke_ranks 2\n"), 1)->kind, "yoke");
  const auto yoke = read_engine(read_metrics("vllm:num_requests_running 0\nyoke_canary_up{model_name=\"a\"} 1\n"
                                             "yoke_canary_up{model_name=\"b\"} 0\nyoke_canary_seconds 0.03\n"),
                                1);
  EXPECT_EQ(yoke->canary_up, false) << "one of two models";
  EXPECT_EQ(yoke->canary_seconds, 0.03);
  EXPECT_EQ(vllm->canary_up, std::nullopt);
  EXPECT_EQ(read_engine(read_metrics("sglang:gen_throughput 3.5\n"), 1)->tokens_per_second, 3.5);
  EXPECT_EQ(read_engine(read_metrics("llamacpp:tokens_predicted_total 9\n"), 1)->generated_tokens, 9);
  EXPECT_FALSE(read_engine(read_metrics("node_load1 1\n"), 1));
}

}  // namespace
}  // namespace yoke::watch

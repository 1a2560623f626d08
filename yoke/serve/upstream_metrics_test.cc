#include "yoke/serve/upstream_metrics.h"

#include <gtest/gtest.h>

#include "yoke/base/files.h"

namespace yoke::serve {
namespace {

UpstreamGauges read_seed(const char* name) {
  return read_upstream_metrics(
      read_file(std::filesystem::path(YOKE_SOURCE_DIR) / "tests/corpus/upstream_metrics_fuzz" / name));
}

TEST(UpstreamMetrics, AreThoseOfAllEnginesOfAServer) {
  const UpstreamGauges vllm = read_seed("vllm");
  EXPECT_EQ(vllm.waiting, 5) << "a time stands behind one value";
  EXPECT_EQ(vllm.cache_usage, 0.5) << "the mean";
  EXPECT_EQ(vllm.prefix_queries, 1200);
  EXPECT_EQ(vllm.prefix_hits, 400);
  EXPECT_EQ(vllm.preemptions, 1);
  const UpstreamGauges sglang = read_upstream_metrics(
      "sglang:num_running_reqs{model_name=\"m\"} 4\r\nsglang:num_queue_reqs 1\nsglang:token_usage 0.125");
  EXPECT_EQ(sglang.waiting, 1);
  EXPECT_EQ(sglang.cache_usage, 0.125);
}

TEST(UpstreamMetrics, ThatAreMissingOrMakeNoSenseAreAbsent) {
  const UpstreamGauges llama = read_seed("llama-server");
  EXPECT_EQ(llama.waiting, 0);
  EXPECT_EQ(llama.cache_usage, std::nullopt) << "not a number";
  EXPECT_EQ(llama.preemptions, std::nullopt);
  for (const char* text : {"", "vllm:num_requests_waiting", "vllm:num_requests_waiting{",
                           "vllm:num_requests_waiting{a=\"}", "vllm:num_requests_waiting -1",
                           "vllm:num_requests_waiting 1e300", "# vllm:num_requests_waiting 1", "[{\"iter\": 1}]"}) {
    EXPECT_EQ(read_upstream_metrics(text).waiting, std::nullopt) << text;
  }
  EXPECT_EQ(read_upstream_metrics("vllm:kv_cache_usage_perc 45").cache_usage, std::nullopt) << "no share";
}

}  // namespace
}  // namespace yoke::serve

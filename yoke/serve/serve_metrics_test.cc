#include "yoke/serve/serve_metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace yoke::serve {
namespace {

using namespace literals;
using testing::HasSubstr;

TEST(ServeMetrics, CountsTokensRequestsAndTimes) {
  ServeMetrics metrics;
  const Instant now = real_clock().now();
  metrics.count_token(30_ms, true, now);
  metrics.count_token(3_ms, false, now);
  metrics.count_finished(
      {.reason = "stop", .prompt_tokens = 10, .answer_tokens = 2, .total = 2_s, .queued = 500_ms, .first_token = 1_s});
  metrics.count_recovery(400_ms);
  metrics.count_response(200);
  const std::string text = metrics.text({.model = "a\"b", .running = 2, .waiting = 3, .ranks = 2, .is_ready = true});
  EXPECT_THAT(text, HasSubstr("vllm:num_requests_running{model_name=\"a\\\"b\"} 2\n"));
  EXPECT_THAT(text, HasSubstr("vllm:num_requests_waiting{model_name=\"a\\\"b\"} 3\n"));
  EXPECT_THAT(text, HasSubstr("vllm:generation_tokens_total{model_name=\"a\\\"b\"} 2\n"));
  EXPECT_THAT(text, HasSubstr("vllm:prompt_tokens_total{model_name=\"a\\\"b\"} 10\n"));
  EXPECT_THAT(text, HasSubstr("finished_reason=\"stop\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("vllm:time_to_first_token_seconds_bucket{model_name=\"a\\\"b\",le=\"0.02\"} 0\n"));
  EXPECT_THAT(text, HasSubstr("vllm:time_to_first_token_seconds_bucket{model_name=\"a\\\"b\",le=\"0.04\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("yoke_recovery_seconds_count{model_name=\"a\\\"b\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("vllm:request_queue_time_seconds_sum{model_name=\"a\\\"b\"} 0.5\n"));
  EXPECT_THAT(text, HasSubstr("vllm:request_prefill_time_seconds_sum{model_name=\"a\\\"b\"} 0.5\n"));
  EXPECT_THAT(text, HasSubstr("vllm:request_decode_time_seconds_sum{model_name=\"a\\\"b\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("vllm:request_prompt_tokens_bucket{model_name=\"a\\\"b\",le=\"10\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("vllm:request_generation_tokens_sum{model_name=\"a\\\"b\"} 2\n"));
  EXPECT_EQ(metrics.recoveries(), 1U);
}

TEST(ServeMetrics, TellOfEachRankAndEachLink) {
  const GaugeValues gauges{
      .model = "m",
      .links = {{.node = "a", .rail = "A", .interface = "e0", .is_up = true, .sent_bytes = 5, .received_bytes = 6},
                {.node = "a", .rail = "B", .interface = "e1"}},
      .ranks_each = {{.rank = 0, .node = "a", .is_up = true, .weights_bytes = 70, .cache_bytes = 8},
                     {.rank = 1, .node = "b", .restarts = 3}}};
  const std::string text = ServeMetrics().text(gauges);
  for (const char* line :
       {"yoke_link_up{model_name=\"m\",node=\"a\",rail=\"A\",interface=\"e0\"} 1\n",
        "yoke_link_up{model_name=\"m\",node=\"a\",rail=\"B\",interface=\"e1\"} 0\n",
        "yoke_link_sent_bytes_total{model_name=\"m\",node=\"a\",rail=\"A\",interface=\"e0\"} 5\n",
        "yoke_link_received_bytes_total{model_name=\"m\",node=\"a\",rail=\"A\",interface=\"e0\"} 6\n",
        "yoke_rank_up{model_name=\"m\",rank=\"0\",node=\"a\"} 1\n",
        "yoke_rank_up{model_name=\"m\",rank=\"1\",node=\"b\"} 0\n",
        "yoke_rank_restarts_total{model_name=\"m\",rank=\"1\",node=\"b\"} 3\n",
        "yoke_rank_weights_bytes{model_name=\"m\",rank=\"0\",node=\"a\"} 70\n",
        "yoke_rank_cache_bytes{model_name=\"m\",rank=\"0\",node=\"a\"} 8\n"}) {
    EXPECT_THAT(text, HasSubstr(line));
  }
  EXPECT_THAT(ServeMetrics().text({.model = "m"}), testing::Not(HasSubstr("yoke_link"))) << "no family without samples";
}

TEST(ServeMetrics, ACanaryShowsForAMinute) {
  ServeMetrics metrics;
  const auto has = [&](const std::string& line) {
    return metrics.text({.model = "m"}).find(line) != std::string::npos;
  };
  EXPECT_FALSE(has("yoke_canary_up")) << "none was asked for";
  const Instant now = real_clock().now();
  metrics.count_canary(20_ms, now);
  EXPECT_TRUE(has("yoke_canary_up{model_name=\"m\"} 1\n"));
  EXPECT_TRUE(has("yoke_canary_seconds{model_name=\"m\"} 0.02\n"));
  metrics.count_canary(std::nullopt, now);
  EXPECT_TRUE(has("yoke_canary_seconds{model_name=\"m\"} 0.02\n")) << "a busy engine's time is not kept";
  metrics.count_lost_canary(now);
  EXPECT_TRUE(has("yoke_canary_up{model_name=\"m\"} 0\n"));
  metrics.count_lost_canary(now - std::chrono::seconds(70));
  EXPECT_FALSE(has("yoke_canary_up")) << "long ago";
}

// Prometheus refuses a family whose type is told twice.
TEST(ServeMetrics, OfSeveralModelsHaveEachFamilyOnce) {
  const std::string text =
      joined_expositions({ServeMetrics().text({.model = "a", .running = 1}), ServeMetrics().text({.model = "b"})});
  const std::string type = "# TYPE vllm:num_requests_running gauge\n";
  const std::size_t at = text.find(type);
  ASSERT_NE(at, std::string::npos);
  EXPECT_EQ(text.find(type, at + 1), std::string::npos);
  EXPECT_THAT(text, HasSubstr(type + "vllm:num_requests_running{model_name=\"a\"} 1\n"
                                     "vllm:num_requests_running{model_name=\"b\"} 0\n"));
}

TEST(ServeMetrics, CountsStepsPreemptionsAndTheCache) {
  ServeMetrics metrics;
  metrics.count_step(7, 0);
  metrics.count_step(500, 2);
  metrics.count_finished({.reason = "stop", .prompt_tokens = 40, .cached_tokens = 32, .answer_tokens = 1});
  const std::string text = metrics.text({.model = "m"});
  for (const char* line :
       {"vllm:prefix_cache_queries_total{model_name=\"m\"} 40\n", "vllm:prefix_cache_hits_total{model_name=\"m\"} 32\n",
        "vllm:num_preemptions_total{model_name=\"m\"} 2\n",
        "vllm:iteration_tokens_total_bucket{model_name=\"m\",le=\"8\"} 1\n",
        "vllm:iteration_tokens_total_sum{model_name=\"m\"} 507\n"}) {
    EXPECT_THAT(text, HasSubstr(line));
  }
}

// In front of another server: a 0 would look like a fact.
TEST(ServeMetrics, OfAFrontLeaveOutWhatItDoesNotKnow) {
  ServeMetrics metrics;
  metrics.count_tokens(7, real_clock().now());
  metrics.count_finished({.reason = "stop", .answer_tokens = 7, .total = 3_s});
  const std::string silent = metrics.text({.model = "m", .running = 2, .waiting = 1, .upstream = UpstreamGauges{}});
  for (const char* name : {"kv_cache_usage", "preemptions", "iteration_tokens", "prompt_tokens", "prefix_cache",
                           "yoke_ranks", "engine_starts", "canary_seconds"}) {
    EXPECT_THAT(silent, testing::Not(HasSubstr(name)));
  }
  EXPECT_THAT(silent, HasSubstr("vllm:num_requests_running{model_name=\"m\"} 2\n"));
  EXPECT_THAT(silent, HasSubstr("vllm:generation_tokens_total{model_name=\"m\"} 7\n"));
  EXPECT_THAT(silent, HasSubstr("vllm:inter_token_latency_seconds_count{model_name=\"m\"} 0\n")) << "no time is known";
  EXPECT_THAT(silent, HasSubstr("vllm:request_time_per_output_token_seconds_count{model_name=\"m\"} 0\n"));

  metrics.count_finished({.reason = "stop", .prompt_tokens = 40, .cached_tokens = 32, .answer_tokens = 1});
  metrics.count_canary(Seconds{0.5}, real_clock().now());
  metrics.count_resumption();
  const UpstreamGauges said{.waiting = 3, .cache_usage = 0.25};
  const std::string text = metrics.text({.model = "m", .running = 8, .waiting = 1, .upstream = said});
  for (const char* line :
       {"vllm:num_requests_running{model_name=\"m\"} 5\n", "vllm:num_requests_waiting{model_name=\"m\"} 4\n",
        "vllm:kv_cache_usage_perc{model_name=\"m\"} 0.25\n", "vllm:prompt_tokens_total{model_name=\"m\"} 40\n",
        "vllm:prefix_cache_hits_total{model_name=\"m\"} 32\n", "yoke_canary_seconds{model_name=\"m\"} 0.5\n",
        "yoke_canary_up{model_name=\"m\"} 1\n", "yoke_resumptions_total{model_name=\"m\"} 1\n"}) {
    EXPECT_THAT(text, HasSubstr(line));
  }
}

TEST(ServeMetrics, RateIsThatOfTheLastFiveSeconds) {
  ServeMetrics metrics;
  const Instant now = real_clock().now();
  for (int i = 0; i < 50; ++i) metrics.count_token(1_ms, false, now);
  EXPECT_EQ(metrics.tokens_per_second(now + std::chrono::seconds(2)), 10);
  EXPECT_EQ(metrics.tokens_per_second(now + std::chrono::seconds(30)), 0);
}

}  // namespace
}  // namespace yoke::serve

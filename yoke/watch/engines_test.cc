#include "yoke/watch/engines.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "yoke/base/socket.h"
#include "yoke/http/server.h"

namespace yoke::watch {
namespace {

using namespace literals;

TEST(EngineWatch, GoesOnBesideAMetricsEndpointThatHangs) {
  const Socket hanging = listen_tcp({"127.0.0.1", 0});  // connections are made, and nobody answers
  const http::Server engine(
      http::ServerOptions{.listen = {"127.0.0.1", 0}}, [](const std::shared_ptr<http::Exchange>& exchange) {
        exchange->respond({.content_type = "text/plain", .body = "vllm:num_requests_running{model_name=\"m\"} 3\n"});
      });
  const EngineWatch watch({hanging.local().port, engine.local().port}, 0.2_s);
  std::vector<EngineSample> found;
  double longest = 0;
  for (const Deadline deadline = Deadline::after(20_s); found.empty() && !deadline.expired();) {
    const Instant start = real_clock().now();
    found = watch.latest();
    longest = std::max(longest, to_seconds(real_clock().now() - start).value);
    real_clock().sleep(10_ms);
  }
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].kind, "vllm");
  EXPECT_EQ(found[0].port, engine.local().port);
  EXPECT_EQ(found[0].running, 3);
  EXPECT_LT(longest, 0.5) << "a sample does not wait for an engine";
}

}  // namespace
}  // namespace yoke::watch

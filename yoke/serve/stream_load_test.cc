#include "yoke/serve/stream_load.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "yoke/base/json.h"
#include "yoke/http/server.h"

namespace yoke::serve {
namespace {

using namespace literals;
using testing::HasSubstr;

TEST(StreamLoad, AsksEachStreamSomethingElseAndTheSameEveryTime) {
  const StreamLoad load{.prompt = 5, .tokens = 7, .seed = 3};
  const Document first = parse_json(stream_request(load, 0), "body");
  EXPECT_EQ(first.find("prompt")->items.size(), 5U);
  EXPECT_EQ(first.find("max_tokens")->text, "7");
  EXPECT_EQ(stream_request(load, 1), stream_request(load, 1));
  EXPECT_NE(stream_request(load, 0), stream_request(load, 1));
}

TEST(StreamLoad, TakesTextTimesAndTheServersOwnCount) {
  StreamRecord record;
  take_stream_event(R"({"choices":[{"text":"a"}]})", 100_ms, record);
  take_stream_event(R"({"choices":[{"text":""}]})", 200_ms, record);
  take_stream_event(R"({"choices":[{"text":"bc"}]})", 500_ms, record);
  take_stream_event(R"({"choices":[],"usage":{"completion_tokens":5}})", 500_ms, record);
  EXPECT_FALSE(record.is_complete);
  take_stream_event("[DONE]", 500_ms, record);
  EXPECT_TRUE(record.is_complete);
  EXPECT_EQ(record.text, "abc");
  EXPECT_EQ(record.tokens, 5);
  EXPECT_EQ(record.first(), 100_ms);
  EXPECT_DOUBLE_EQ(record.per_token().value, 0.1);
  EXPECT_DOUBLE_EQ(record.longest_pause().value, 0.4);
}

TEST(StreamLoad, IsNotCompleteAfterAnError) {
  StreamRecord record;
  take_stream_event(R"({"error":{"message":"the engine was lost"}})", {}, record);
  take_stream_event("[DONE]", {}, record);
  EXPECT_FALSE(record.is_complete);
  EXPECT_EQ(record.error, "the engine was lost");
}

// A server that answers the first client, refuses the second and leaves the third without an end.
TEST(StreamLoad, TellsOfEachStreamHowItEnded) {
  const auto answer = [](const std::shared_ptr<http::Exchange>& exchange) {
    const std::string seed = parse_json(exchange->request().body, "body").find("seed")->text;
    if (seed == "2") return exchange->respond({.status = 429, .body = "no room"});
    exchange->start_stream({.content_type = "text/event-stream"});
    exchange->write("data: {\"choices\":[{\"text\":\"a\"}]}\n\n");
    if (seed == "1") exchange->write("data: [DONE]\n\n");
    exchange->end();
  };
  http::Server server({}, answer);
  const auto streams = run_streams({.server = server.local(), .streams = 3, .seed = 1, .limit = 20_s});
  ASSERT_EQ(streams.size(), 3U);
  EXPECT_TRUE(streams[0].is_complete) << streams[0].error;
  EXPECT_EQ(streams[0].tokens, 1);
  EXPECT_THAT(streams[1].error, HasSubstr("status 429: no room"));
  EXPECT_THAT(streams[2].error, HasSubstr("without '[DONE]'"));
}

}  // namespace
}  // namespace yoke::serve

// What is said to another server and its clients, without either.
#include "yoke/serve/upstream_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "yoke/base/error_testing.h"
#include "yoke/base/json.h"

namespace yoke::serve {
namespace {

using testing::ElementsAre;

std::string line_of(const Document& document) { return print_json(document, JsonLayout::kOneLine); }

TEST(SseReader, GivesTheDataOfEventsHoweverTheyCome) {
  const std::string bytes = ": waiting\n\ndata: {\"a\":1}\r\n\r\nevent: x\ndata:[DONE]\n\n";
  for (const std::size_t step : {std::size_t{1}, std::size_t{5}, bytes.size()}) {
    SseReader reader;
    std::vector<std::string> all;
    for (std::size_t at = 0; at < bytes.size(); at += step) {
      for (std::string& event : reader.add(std::string_view(bytes).substr(at, step))) all.push_back(std::move(event));
    }
    EXPECT_THAT(all, ElementsAre("{\"a\":1}", "[DONE]"));
  }
}

TEST(UpstreamText, GoesOnAfterTheTokensThatCame) {
  const Document body = parse_json(
      R"({"messages":[],"max_tokens":10,"temperature":0.5,"seed":7,"stream":true,"tool_choice":"none"})", "body");
  const auto resumed = resumed_body(ApiKind::kChat, body, {.prompt = {1, 2}, .answer = {3, 4, 5}});
  ASSERT_TRUE(resumed);
  EXPECT_EQ(line_of(*resumed), R"({"temperature":0.5,"seed":7,"prompt":[1,2,3,4,5],"max_tokens":7,"stream":true})");
  EXPECT_EQ(resumed_body(ApiKind::kChat, body, {.prompt = {1}, .answer = std::vector<std::int64_t>(10)}), std::nullopt);
  const Document unlimited = parse_json(R"({"messages":[]})", "body");
  const auto rest = resumed_body(ApiKind::kChat, unlimited, {.prompt = {1}, .answer = {2}, .context_max = 100});
  EXPECT_EQ(rest->find("max_tokens")->text, "98");
}

TEST(UpstreamText, MakesAChatOfTheCompletionThatGoesOn) {
  UpstreamAnswer answer;
  take_chunk(
      ApiKind::kChat,
      parse_json(R"({"id":"c1","created":5,"prompt_token_ids":[9],"choices":[{"index":0,"delta":{"content":"ab"},)"
                 R"("finish_reason":null,"token_ids":[7]}]})",
                 "chunk"),
      answer);
  const Document later = take_chunk(
      ApiKind::kChat,
      parse_json(R"({"id":"c1","choices":[{"index":0,"delta":{"content":"c"},"finish_reason":null,"token_ids":[]}]})",
                 "chunk"),
      answer);
  EXPECT_EQ(line_of(later), R"({"id":"c1","choices":[{"index":0,"delta":{"content":"c"},"finish_reason":null}]})");
  EXPECT_EQ(answer.text, "abc");
  EXPECT_EQ(answer.settled, 2U);  // "c" is not the whole of its token
  EXPECT_THAT(answer.ids, ElementsAre(7));
  answer.skipped = 1;
  const Document resumed = resumed_chunk(
      ApiKind::kChat,
      parse_json(
          R"({"id":"x","object":"text_completion","created":9,"choices":[{"index":0,"text":"cd","logprobs":null,)"
          R"("finish_reason":"stop"}],"usage":{"prompt_tokens":2,"completion_tokens":1,"total_tokens":3}})",
          "chunk"),
      {.prompt = {9}, .answer = {7}}, answer);
  EXPECT_EQ(line_of(resumed),
            R"({"id":"c1","object":"chat.completion.chunk","created":5,"choices":[{"index":0,"delta":{"content":"d"},)"
            R"("finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":2,"total_tokens":3}})");
  EXPECT_TRUE(answer.is_finished);
}

TEST(UpstreamText, SaysWhatCannotGoOn) {
  const auto why = [](const char* body) { return not_resumable(ApiKind::kChat, parse_json(body, "body")).has_value(); };
  EXPECT_FALSE(why(R"({"n":1,"tools":[],"response_format":{"type":"text"}})"));
  EXPECT_TRUE(why(R"({"n":2})"));
  EXPECT_TRUE(why(R"({"logprobs":true})"));
  EXPECT_TRUE(why(R"({"tools":[{}]})"));
  EXPECT_TRUE(why(R"({"response_format":{"type":"json_object"}})"));
  EXPECT_TRUE(not_resumable(ApiKind::kMessages, Document::map()).has_value());
}

TEST(UpstreamText, ReadsAddresses) {
  EXPECT_EQ(parse_upstream("http://127.0.0.1:8000/v1/").port, 8000);
  EXPECT_EQ(parse_upstream("http://[::1]:8000").host, "::1");
  EXPECT_EQ(parse_upstream("http://engine").port, 80);
  EXPECT_ERROR(parse_upstream("https://engine"), ErrorCode::kUsage, "https://engine");
  EXPECT_ERROR(parse_upstream("http://a:b"), ErrorCode::kUsage, "http://a:b");
}

TEST(UpstreamText, UsageIsReadInEveryShape) {
  const auto read = [](std::initializer_list<const char*> events) {
    UpstreamUsage usage;
    for (const char* event : events) take_usage(parse_json(event, "event"), usage);
    return std::tuple(usage.prompt, usage.cached, usage.answer);
  };
  const auto known = [](std::int64_t prompt, std::optional<std::int64_t> cached, std::int64_t answer) {
    return std::tuple(std::optional(prompt), cached, std::optional(answer));
  };
  EXPECT_EQ(read({R"({"usage":{"prompt_tokens":9,"completion_tokens":4}})"}), known(9, std::nullopt, 4));
  EXPECT_EQ(read({R"({"usage":{"prompt_tokens":9,"completion_tokens":4,"prompt_tokens_details":{"cached_tokens":8}}})",
                  R"({"usage":null})"}),
            known(9, 8, 4));
  EXPECT_EQ(read({R"({"type":"response.completed","response":{"usage":{"input_tokens":7,"output_tokens":2}}})"}),
            known(7, std::nullopt, 2));
  EXPECT_EQ(read({R"({"type":"message_start","message":{"usage":{"input_tokens":3,"cache_read_input_tokens":5}}})",
                  R"({"type":"message_delta","usage":{"output_tokens":6}})"}),
            known(8, 5, 6));
  EXPECT_EQ(read({R"({"usage":{"prompt_tokens":"9","completion_tokens":-1}})"}), decltype(read({}))());
}

TEST(UpstreamText, UsageThatTheClientDidNotAskForIsTakenOut) {
  Document body = parse_json(R"({"stream":true})", "body");
  EXPECT_TRUE(ask_for_usage(body));
  EXPECT_EQ(print_json(body, JsonLayout::kOneLine), R"({"stream":true,"stream_options":{"include_usage":true}})");
  EXPECT_FALSE(ask_for_usage(body)) << "a client asks for it";
  Document refused = parse_json(R"({"stream_options":7})", "body");
  EXPECT_FALSE(ask_for_usage(refused)) << "the server refuses it";
  Document last = parse_json(R"({"choices":[],"usage":{"prompt_tokens":1}})", "chunk");
  EXPECT_FALSE(drop_usage(last));
  Document piece = parse_json(R"({"choices":[{"text":"a"}],"usage":null})", "chunk");
  EXPECT_TRUE(drop_usage(piece));
  EXPECT_EQ(print_json(piece, JsonLayout::kOneLine), R"({"choices":[{"text":"a"}]})");
}

}  // namespace
}  // namespace yoke::serve

// What yoke serve answers besides plain text: JSON of a schema, calls of tools, and the shapes of other APIs. The model
// is the small one that ships with yoke, which knows no tools: that it makes calls and JSON shows that it is held to
// them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/api_schema.h"
#include "tests/served.h"
#include "tests/served_tools.h"

namespace yoke::tests {
namespace {

namespace fs = std::filesystem;
using namespace literals;
using testing::HasSubstr;
using testing::StartsWith;

const std::string kMessages = R"("messages":[{"role":"user","content":"Which cable joins two units?"}])";
const std::string kParameters =
    R"({"type":"object","properties":{"kind":{"type":"string","enum":["QSFP","DAC"]},"ports":{"type":"integer",)"
    R"("minimum":1,"maximum":4},"ok":{"type":"boolean"}},"required":["kind","ports","ok"],)"
    R"("additionalProperties":false})";
const std::string kFormat =
    R"("response_format":{"type":"json_schema","json_schema":{"name":"cable","strict":true,"schema":)" + kParameters +
    "}}";
const std::string kTools =
    R"("tools":[{"type":"function","function":{"name":"find_cable","description":"d","parameters":)" + kParameters +
    R"(}}],"tool_choice":"required","max_tokens":200)";

struct ServeShapes : testing::Test {
  static void SetUpTestSuite() {
    folder = std::make_unique<ScratchDir>("yoke-serve-shapes");
    const fs::path model = model_with_template(folder->path() / "nano", kHermesTemplate);
    served = std::make_unique<Served>(ServedHow{.model = {model.native(), "--threads", "1"}});
    served->wait_until_ready();
  }
  static void TearDownTestSuite() {
    served.reset();
    folder.reset();
  }
  static std::unique_ptr<ScratchDir> folder;
  static std::unique_ptr<Served> served;
  const ApiSchemas schemas;

  Document ask(const std::string& path, const std::string& body, int status = 200) const {
    const http::HttpAnswer answer = served->post(path, "{" + body + "}");
    EXPECT_EQ(answer.status, status) << answer.body;
    return parse_json(answer.body, "answer");
  }
  // The data of a stream's named events.
  std::vector<Document> events(const std::string& path, const std::string& body) const {
    const http::HttpAnswer answer = served->post(path, "{" + body + R"(,"stream":true})");
    EXPECT_EQ(answer.status, 200) << answer.body;
    std::vector<Document> all;
    std::string name;
    for (const std::string& line : split(answer.body, '\n')) {
      if (line.starts_with("event: ")) name = line.substr(7);
      if (!line.starts_with("data: ")) continue;
      all.push_back(parse_json(line.substr(6), "event"));
      EXPECT_EQ(at(all.back(), "type").text, name);
    }
    return all;
  }
  static void expect_cable(const std::string& json) {
    const Document cable = parse_json(json, "cable");
    EXPECT_EQ(cable.fields.size(), 3U) << json;
    EXPECT_TRUE(at(cable, "kind").text == "QSFP" || at(cable, "kind").text == "DAC") << json;
    EXPECT_THAT(at(cable, "ports").text, testing::MatchesRegex("[1-4]"));
    EXPECT_EQ(at(cable, "ok").kind, Document::Kind::kBool);
  }
};
std::unique_ptr<ScratchDir> ServeShapes::folder;
std::unique_ptr<Served> ServeShapes::served;

TEST_F(ServeShapes, AnswersWithJsonOfTheSchema) {
  const Document answer = ask("/v1/chat/completions", kMessages + "," + kFormat);
  EXPECT_EQ(schemas.problem("CreateChatCompletionResponse", answer), std::nullopt);
  const Document& choice = at(answer, "choices").items.at(0);
  const std::string text = at(at(choice, "message"), "content").text;
  expect_cable(text);
  EXPECT_EQ(at(choice, "finish_reason").text, "stop");
  for (const char* seed : {"1", "2", "3"}) {
    const Document drawn =
        ask("/v1/chat/completions", fmt::format(R"({},{},"temperature":2,"seed":{})", kMessages, kFormat, seed));
    expect_cable(at(at(at(drawn, "choices").items.at(0), "message"), "content").text);
  }
  std::string streamed;
  const http::HttpAnswer stream =
      served->post("/v1/chat/completions", "{" + kMessages + "," + kFormat + R"(,"stream":true})");
  for (const Document& event : stream_events(stream.body)) {
    const auto* piece = at(at(event, "choices").items.at(0), "delta").find("content");
    if (piece) streamed += piece->text;
  }
  EXPECT_EQ(streamed, text);
  const Document object =
      ask("/v1/chat/completions", kMessages + R"(,"response_format":{"type":"json_object"},"max_tokens":40)");
  EXPECT_THAT(at(at(at(object, "choices").items.at(0), "message"), "content").text, StartsWith("{"));
}

TEST_F(ServeShapes, SaysWhichKeywordOfASchemaItLacks) {
  const Document refused = ask(
      "/v1/chat/completions",
      kMessages + R"(,"response_format":{"type":"json_schema","json_schema":{"name":"n","schema":{"not":{}}}})", 400);
  EXPECT_THAT(at(at(refused, "error"), "message").text, HasSubstr("'not'"));
  EXPECT_EQ(at(at(refused, "error"), "param").text, "response_format");
}

TEST_F(ServeShapes, CallsAToolThatItMustCall) {
  const Document answer = ask("/v1/chat/completions", kMessages + "," + kTools);
  EXPECT_EQ(schemas.problem("CreateChatCompletionResponse", answer), std::nullopt) << print_json(answer);
  const Document& choice = at(answer, "choices").items.at(0);
  EXPECT_EQ(at(choice, "finish_reason").text, "tool_calls");
  const Document& call = at(at(choice, "message"), "tool_calls").items.at(0);
  EXPECT_EQ(at(at(call, "function"), "name").text, "find_cable");
  const std::string arguments = at(at(call, "function"), "arguments").text;
  expect_cable(arguments);

  std::string streamed, name;
  const http::HttpAnswer stream =
      served->post("/v1/chat/completions", "{" + kMessages + "," + kTools + R"(,"stream":true})");
  for (const Document& event : stream_events(stream.body)) {
    EXPECT_EQ(schemas.problem("CreateChatCompletionStreamResponse", event), std::nullopt) << print_json(event);
    const auto* calls = at(at(event, "choices").items.at(0), "delta").find("tool_calls");
    if (!calls) continue;
    const Document& function = at(calls->items.at(0), "function");
    if (const auto* given = function.find("name")) name += given->text;
    streamed += at(function, "arguments").text;
  }
  EXPECT_EQ(name, "find_cable");
  EXPECT_EQ(streamed, arguments);
  // What came of it goes back to the model by its template.
  const std::string result = fmt::format(
      R"("messages":[{{"role":"user","content":"Which?"}},{{"role":"assistant","content":null,"tool_calls":[{}]}},)"
      R"({{"role":"tool","tool_call_id":"x","content":"QSFP"}}],"max_tokens":3)",
      print_json(call, JsonLayout::kOneLine));
  ask("/v1/chat/completions", result);
}

TEST_F(ServeShapes, SpeaksTheShapeOfResponses) {
  const std::string asked = R"("input":"Which cable joins two units?","instructions":"Be short.")";
  const Document answer = ask("/v1/responses", asked);
  EXPECT_EQ(schemas.problem("Response", answer), std::nullopt) << print_json(answer);
  EXPECT_EQ(at(answer, "status").text, "completed");
  const std::string text = at(at(at(answer, "output").items.at(0), "content").items.at(0), "text").text;
  EXPECT_FALSE(text.empty());
  std::string streamed;
  const auto all = events("/v1/responses", asked);
  for (std::size_t i = 0; i < all.size(); ++i) {
    EXPECT_EQ(schemas.problem("ResponseStreamEvent", all[i]), std::nullopt) << print_json(all[i]);
    EXPECT_EQ(at(all[i], "sequence_number").text, std::to_string(i));
    if (at(all[i], "type").text == "response.output_text.delta") streamed += at(all[i], "delta").text;
  }
  EXPECT_EQ(streamed, text);
  EXPECT_EQ(at(all.front(), "type").text, "response.created");
  EXPECT_EQ(at(all.back(), "type").text, "response.completed");

  const std::string shown = asked + R"(,"include":["message.output_text.logprobs"],"top_logprobs":2)";
  const Document with_logprobs = ask("/v1/responses", shown);
  EXPECT_EQ(schemas.problem("Response", with_logprobs), std::nullopt) << print_json(with_logprobs);
  const Document& logprobs = at(at(at(with_logprobs, "output").items.at(0), "content").items.at(0), "logprobs");
  ASSERT_GT(logprobs.items.size(), 3U);
  EXPECT_EQ(at(logprobs.items[0], "top_logprobs").items.size(), 2U);
  std::size_t streamed_logprobs = 0;
  for (const Document& event : events("/v1/responses", shown)) {
    EXPECT_EQ(schemas.problem("ResponseStreamEvent", event), std::nullopt) << print_json(event);
    if (at(event, "type").text == "response.output_text.delta") streamed_logprobs += at(event, "logprobs").items.size();
  }
  EXPECT_EQ(streamed_logprobs, logprobs.items.size());

  const std::string tool = R"("tools":[{"type":"function","name":"find_cable","strict":true,"parameters":)" +
                           kParameters + R"(}],"tool_choice":{"type":"function","name":"find_cable"})";
  const Document called =
      ask("/v1/responses", R"("max_output_tokens":200,"input":[{"role":"user","content":"Which?"}],)" + tool);
  EXPECT_EQ(schemas.problem("Response", called), std::nullopt) << print_json(called);
  EXPECT_EQ(at(at(called, "output").items.at(0), "type").text, "function_call");
  expect_cable(at(at(called, "output").items.at(0), "arguments").text);
  const Document refused = ask("/v1/responses", R"("input":"a","previous_response_id":"resp_1")", 400);
  EXPECT_EQ(schemas.problem("ErrorResponse", refused), std::nullopt);
}

TEST_F(ServeShapes, SpeaksTheShapeOfMessages) {
  const std::string asked = kMessages + R"(,"max_tokens":60,"system":[{"type":"text","text":"Be short."}])";
  const Document answer = ask("/v1/messages", asked);
  EXPECT_EQ(at(answer, "type").text, "message");
  const std::string text = at(at(answer, "content").items.at(0), "text").text;
  std::string streamed;
  const auto all = events("/v1/messages", asked);
  for (const Document& event : all) {
    if (at(event, "type").text == "content_block_delta") streamed += at(at(event, "delta"), "text").text;
  }
  EXPECT_EQ(streamed, text);
  EXPECT_EQ(at(all.front(), "type").text, "message_start");
  EXPECT_EQ(at(all.back(), "type").text, "message_stop");

  const std::string tool =
      R"("tools":[{"name":"find_cable","input_schema":)" + kParameters + R"(}],"tool_choice":{"type":"any"})";
  const Document called = ask("/v1/messages", kMessages + R"(,"max_tokens":200,)" + tool);
  EXPECT_EQ(at(called, "stop_reason").text, "tool_use");
  const Document& use = at(called, "content").items.at(0);
  EXPECT_EQ(at(use, "name").text, "find_cable");
  expect_cable(print_json(at(use, "input")));
  ask("/v1/messages",
      fmt::format(
          R"("max_tokens":3,"messages":[{{"role":"user","content":"Which?"}},{{"role":"assistant","content":[{}]}},)"
          R"({{"role":"user","content":[{{"type":"tool_result","tool_use_id":"x","content":"QSFP"}}]}}])",
          print_json(use, JsonLayout::kOneLine)));
  const Document stopped = ask("/v1/messages", kMessages + R"(,"max_tokens":60,"stop_sequences":["e"])");
  EXPECT_EQ(at(stopped, "stop_reason").text, "stop_sequence");
  EXPECT_EQ(at(stopped, "stop_sequence").text, "e");
  const Document refused = ask("/v1/messages", kMessages, 400);  // without max_tokens
  EXPECT_EQ(at(refused, "type").text, "error");
  EXPECT_EQ(at(at(refused, "error"), "type").text, "invalid_request_error");
  EXPECT_EQ(at(ask("/v1/messages/count_tokens", kMessages), "input_tokens").kind, Document::Kind::kNumber);
}

// Every rank walks the grammar by itself, for its part of the vocabulary.
TEST(ServeRanks, GiveTheSameJsonAsOne) {
  const std::string body = "{" + kMessages + "," + kFormat + R"(,"seed":3,"temperature":1})";
  std::vector<std::string> texts;
  for (const char* ranks : {"1", "2"}) {
    Served served({"--ranks", ranks, "--backend", "ref"});  // fast arithmetic rounds parts apart from the whole
    served.wait_until_ready();
    const Document answer = parse_json(served.post("/v1/chat/completions", body).body, "answer");
    texts.push_back(at(at(at(answer, "choices").items.at(0), "message"), "content").text);
  }
  EXPECT_EQ(texts[0], texts[1]);
  EXPECT_THAT(texts[0], HasSubstr("ports"));
}

}  // namespace
}  // namespace yoke::tests

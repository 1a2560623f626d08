// yoke serve as clients meet it: answers and streams in OpenAI's shape, errors, limits, and what an unknown client can
// send.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>

#include "tests/api_schema.h"
#include "tests/served.h"
#include "yoke/base/rng.h"

namespace yoke::tests {
namespace {

using namespace literals;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

const std::string kAsked = R"("messages":[{"role":"user","content":"Which cable joins two units?"}])";

// One server for all tests that change nothing.
struct Serve : testing::Test {
  static void SetUpTestSuite() {
    served = std::make_unique<Served>();
    served->wait_until_ready();
  }
  static void TearDownTestSuite() { served.reset(); }
  static std::unique_ptr<Served> served;
  const ApiSchemas schemas;

  Document chat(const std::string& more, int status = 200) const {
    const http::HttpAnswer answer = served->post("/v1/chat/completions", "{" + kAsked + more + "}");
    EXPECT_EQ(answer.status, status) << answer.body;
    const Document document = parse_json(answer.body, "answer");
    const char* const schema = status == 200 ? "CreateChatCompletionResponse" : "ErrorResponse";
    EXPECT_EQ(schemas.problem(schema, document), std::nullopt) << answer.body;
    return document;
  }
  std::vector<Document> stream(const std::string& path, const std::string& body) const {
    const http::HttpAnswer answer = served->post(path, body);
    EXPECT_EQ(answer.status, 200) << answer.body;
    EXPECT_THAT(answer.header("content-type").value_or(""), StartsWith("text/event-stream"));
    return stream_events(answer.body);
  }
  static const Document& first_choice(const Document& answer) { return at(answer, "choices").items.at(0); }
  static std::string content(const Document& answer) { return at(at(first_choice(answer), "message"), "content").text; }
};
std::unique_ptr<Served> Serve::served;

TEST_F(Serve, AnswersAChat) {
  const Document answer = chat("");
  EXPECT_EQ(content(answer), kAnswer);
  EXPECT_EQ(at(first_choice(answer), "finish_reason").text, "stop");
  EXPECT_EQ(at(at(answer, "usage"), "prompt_tokens").text, "10");
  EXPECT_EQ(at(answer, "model").text, "nano");
}

TEST_F(Serve, StreamsTheSameTextInChunksOfTheSchema) {
  const auto events =
      stream("/v1/chat/completions", "{" + kAsked + R"(,"stream":true,"stream_options":{"include_usage":true}})");
  std::string text;
  for (std::size_t i = 0; i + 1 < events.size(); ++i) {
    EXPECT_EQ(schemas.problem("CreateChatCompletionStreamResponse", events[i]), std::nullopt) << print_json(events[i]);
    const Document& delta = at(first_choice(events[i]), "delta");
    if (const auto* piece = delta.find("content")) text += piece->text;
    EXPECT_EQ(at(events[i], "usage").kind, Document::Kind::kNull);
  }
  EXPECT_EQ(text, kAnswer);
  EXPECT_EQ(at(at(first_choice(events.front()), "delta"), "role").text, "assistant");
  EXPECT_EQ(at(first_choice(events[events.size() - 2]), "finish_reason").text, "stop");
  EXPECT_TRUE(at(events.back(), "choices").items.empty());
  EXPECT_EQ(at(at(events.back(), "usage"), "completion_tokens").text, "26");
}

TEST_F(Serve, StreamsToAClientOfHttp10) {
  const std::string body = "{" + kAsked + R"(,"stream":true,"max_tokens":3})";
  const std::string text =
      served->say(fmt::format("POST /v1/chat/completions HTTP/1.0\r\nContent-Length: {}\r\n\r\n{}", body.size(), body));
  EXPECT_THAT(text, AllOf(HasSubstr("data: [DONE]\n\n"), Not(HasSubstr("chunked"))));
}

TEST_F(Serve, StopsAtATextThatIsNotGivenOut) {
  const Document answer = chat(R"(,"stop":["direct-"])");
  EXPECT_EQ(content(answer), kAnswer.substr(0, kAnswer.find("direct-")));
  EXPECT_EQ(at(first_choice(answer), "finish_reason").text, "stop");
  EXPECT_EQ(at(first_choice(chat(R"(,"max_tokens":3)")), "finish_reason").text, "length");
}

TEST_F(Serve, GivesTheSameChoicesForTheSameSeed) {
  // Token 5 is no beginning that the model was trained on, so that it is not sure what follows.
  const std::string body = R"({"prompt":[5],"n":3,"seed":5,"temperature":2,"max_tokens":12})";
  const auto texts = [&] {
    std::vector<std::string> all;
    const http::HttpAnswer answer = served->post("/v1/completions", body);
    EXPECT_EQ(answer.status, 200) << answer.body;
    const Document document = parse_json(answer.body, "answer");
    for (const Document& choice : at(document, "choices").items) all.push_back(at(choice, "text").text);
    return all;
  };
  const auto first = texts();
  ASSERT_EQ(first.size(), 3U);
  EXPECT_EQ(first, texts());
  EXPECT_TRUE(first[0] != first[1] || first[1] != first[2]) << first[0];
}

TEST_F(Serve, TellsLogProbabilities) {
  const Document answer = chat(R"(,"logprobs":true,"top_logprobs":2,"max_tokens":4)");
  const Document& tokens = at(at(first_choice(answer), "logprobs"), "content");
  ASSERT_EQ(tokens.items.size(), 4U);
  EXPECT_EQ(at(tokens.items[0], "token").text, "One");
  EXPECT_EQ(at(tokens.items[0], "top_logprobs").items.size(), 2U);
}

TEST_F(Serve, ForbidsAndForcesTokensByBias) {
  const Document ids =
      parse_json(served->post("/tokenize", R"({"prompt":"One","add_special_tokens":false})").body, "ids");
  const std::string one = at(ids, "tokens").items.at(0).text;
  EXPECT_THAT(content(chat(fmt::format(R"(,"logit_bias":{{"{}":-100}},"max_tokens":3)", one))), Not(StartsWith("One")));
  EXPECT_EQ(content(chat(fmt::format(R"(,"logit_bias":{{"{}":100}},"max_tokens":3)", one))), "OneOneOne");
}

TEST_F(Serve, CompletesTextsAndIds) {
  const http::HttpAnswer answer =
      served->post("/v1/completions", R"({"prompt":["A cable","Two"],"max_tokens":4,"echo":true,"n":2})");
  const Document document = parse_json(answer.body, "answer");
  EXPECT_EQ(schemas.problem("CreateCompletionResponse", document), std::nullopt) << answer.body;
  ASSERT_EQ(at(document, "choices").items.size(), 4U);
  EXPECT_THAT(at(at(document, "choices").items[0], "text").text, StartsWith("A cable"));
  EXPECT_THAT(at(at(document, "choices").items[3], "text").text, StartsWith("Two"));
  EXPECT_EQ(at(at(document, "choices").items[3], "index").text, "3");

  const Document logprobs = parse_json(
      served->post("/v1/completions", R"({"prompt":[2043,32,617],"max_tokens":3,"logprobs":2})").body, "answer");
  EXPECT_EQ(schemas.problem("CreateCompletionResponse", logprobs), std::nullopt);
  EXPECT_EQ(at(at(first_choice(logprobs), "logprobs"), "tokens").items.size(), 3U);

  const Document nothing =
      parse_json(served->post("/v1/completions", R"({"prompt":"A","max_tokens":0})").body, "answer");
  EXPECT_EQ(at(first_choice(nothing), "text").text, "");
  EXPECT_EQ(at(first_choice(nothing), "finish_reason").text, "length");

  std::string text;
  for (const Document& event : stream("/v1/completions", R"({"prompt":"A cable","max_tokens":4,"stream":true})")) {
    text += at(first_choice(event), "text").text;
    // As OpenAI sends it, and not in its document: no reason before the last chunk.
    Document chunk = event;
    const bool is_open = at(first_choice(event), "finish_reason").kind == Document::Kind::kNull;
    for (auto& [key, choices] : chunk.fields) {
      if (key != "choices" || !is_open) continue;
      for (auto& [name, value] : choices.items[0].fields) {
        if (name == "finish_reason") value = Document::string("stop");
      }
    }
    EXPECT_EQ(schemas.problem("CreateCompletionResponse", chunk), std::nullopt) << print_json(event);
  }
  EXPECT_EQ("A cable" + text, at(at(document, "choices").items[0], "text").text);
}

TEST_F(Serve, TellsWhatWasInTheCache) {
  const auto cached = [&] {
    std::string prompt;
    for (int i = 0; i < 60; ++i) prompt += fmt::format("cable {} ", i);
    const http::HttpAnswer answer =
        served->post("/v1/completions", fmt::format(R"({{"prompt":"{}","max_tokens":2,"ignore_eos":true}})", prompt));
    const Document document = parse_json(answer.body, "answer");
    EXPECT_EQ(schemas.problem("CreateCompletionResponse", document), std::nullopt) << answer.body;
    const Document& usage = at(document, "usage");
    const auto found = std::stol(at(at(usage, "prompt_tokens_details"), "cached_tokens").text);
    EXPECT_LT(found, std::stol(at(usage, "prompt_tokens").text));
    return found;
  };
  EXPECT_EQ(cached(), 0);
  const auto second = cached();
  EXPECT_GT(second, 100);
  EXPECT_EQ(second % 16, 0) << "whole pages";
  const std::string metrics = served->get("/metrics").body;
  EXPECT_THAT(metrics, testing::ContainsRegex("vllm:prefix_cache_hits_total.model_name=\"nano\". [1-9][0-9]+\n"));
  EXPECT_THAT(metrics, testing::ContainsRegex("vllm:iteration_tokens_total_count.model_name=\"nano\". [1-9]"));
  EXPECT_THAT(metrics, HasSubstr("vllm:num_preemptions_total{model_name=\"nano\"} 0\n"));
}

TEST_F(Serve, NamesItsModel) {
  const Document models = parse_json(served->get("/v1/models").body, "models");
  EXPECT_EQ(schemas.problem("ListModelsResponse", models), std::nullopt);
  EXPECT_EQ(at(at(models, "data").items.at(0), "id").text, "nano");
  EXPECT_EQ(schemas.problem("Model", parse_json(served->get("/v1/models/nano").body, "model")), std::nullopt);
  EXPECT_EQ(served->get("/v1/models/other").status, 404);
}

TEST_F(Serve, RefusesWithAStatusAndAnErrorOfTheSchema) {
  chat(R"(,"temperature":"hot")", 400);
  chat(R"(,"unknown":1)", 400);
  chat(R"(,"model":"gpt-4")", 404);
  const Document too_long = chat(R"(,"max_tokens":5000)", 400);
  EXPECT_THAT(at(at(too_long, "error"), "message").text, AllOf(HasSubstr("2048 tokens"), HasSubstr("5010")));
  for (const auto& [path, status] : {std::pair{"/v1/nothing", 404}, {"/v1/chat/completions", 405}}) {
    const http::HttpAnswer answer = served->get(path);
    EXPECT_EQ(answer.status, status);
    EXPECT_EQ(schemas.problem("ErrorResponse", parse_json(answer.body, "error")), std::nullopt) << answer.body;
  }
  for (const char* body : {"", "{", "[]", "\"x\"", "{\"messages\":[{\"role\":\"user\",\"content\":\"\xff\"}]}"}) {
    EXPECT_EQ(served->post("/v1/chat/completions", body).status, 400) << body;
  }
  const std::string large =
      served->say("POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1073741824\r\n\r\n" +
                  std::string(1000, ' '));
  EXPECT_THAT(large, StartsWith("HTTP/1.1 413 "));
}

// With status 429 clients, and 'yoke batch', would send it again and again.
TEST_F(Serve, WhatCostsTooMuchIsAMistakeOfTheRequest) {
  std::string definitions = R"("a30":{"type":"string"})";
  for (int i = 0; i < 30; ++i) {
    const std::string next = fmt::format(R"({{"$ref":"#/$defs/a{}"}})", i + 1);
    definitions += fmt::format(R"(,"a{}":{{"anyOf":[{},{}]}})", i, next, next);
  }
  const Document complex =
      chat(R"(,"response_format":{"type":"json_schema","json_schema":{"name":"x","schema":{"$defs":{)" + definitions +
               R"(},"$ref":"#/$defs/a0"}}})",
           400);
  EXPECT_THAT(at(at(complex, "error"), "message").text, HasSubstr("the schema of the answer is too complex"));
}

TEST_F(Serve, GoesOnAfterWhatNobodyShouldSend) {
  const std::string good =
      "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: 30\r\n\r\n"
      R"({"prompt":"a","max_tokens": 1})";
  for (std::uint64_t i = 0; i < 300; ++i) {
    std::string mutated = good;
    const PhiloxBlock numbers = philox(7, i);
    mutated[numbers[0] % mutated.size()] = static_cast<char>(numbers[1]);
    mutated.resize(mutated.size() - numbers[2] % 40);
    Socket socket = connect_tcp(served->endpoint(), {}, Deadline::after(2_s));
    socket.send_all(mutated, Deadline::after(2_s));
    if (numbers[3] % 4 == 0) shutdown(socket.fd(), SHUT_WR);  // and the others leave
  }
  EXPECT_EQ(served->get("/health").status, 200);
  EXPECT_EQ(served->get("/ready").status, 200);
}

TEST_F(Serve, RefusesPagesOfOtherSites) {
  const auto asked = [](const std::string& headers) {
    return served->say("GET /v1/models HTTP/1.1\r\nConnection: close\r\n" + headers + "\r\n").substr(9, 3);
  };
  EXPECT_EQ(asked("Host: localhost\r\n"), "200");
  EXPECT_EQ(asked("Host: localhost:80\r\nOrigin: http://localhost:80\r\n"), "200");
  EXPECT_EQ(asked("Host: localhost\r\nOrigin: https://evil.example\r\n"), "403");
  EXPECT_EQ(asked("Host: evil.example\r\nOrigin: http://evil.example\r\n"), "403");  // a name that leads here
  EXPECT_EQ(asked("Host: evil.example\r\nSec-Fetch-Site: same-origin\r\n"), "403");
}

TEST_F(Serve, CancelsWhatAClientLeaves) {
  const std::string body = R"({"prompt":"A","max_tokens":1000,"ignore_eos":true,"stream":)";
  for (const char* streams : {"true}", "false}"}) {
    {
      Socket socket = connect_tcp(served->endpoint(), {}, Deadline::after(2_s));
      socket.send_all(fmt::format("POST /v1/completions HTTP/1.1\r\nHost: h\r\nContent-Length: {}\r\n\r\n{}{}",
                                  body.size() + std::strlen(streams), body, streams),
                      Deadline::after(2_s));
      while (at(parse_json(served->get("/v1/cluster").body, "view"), "running").text == "0") {
      }
    }
    const Deadline deadline = Deadline::after(3_s);  // far from the time of a thousand tokens
    std::string running;
    do {
      running = at(parse_json(served->get("/v1/cluster").body, "view"), "running").text;
    } while (running != "0" && !deadline.expired());
    EXPECT_EQ(running, "0") << streams;
  }
}

TEST_F(Serve, TokenizesBothWays) {
  const Document ids = parse_json(served->post("/tokenize", R"({"prompt":"A cable"})").body, "ids");
  EXPECT_EQ(at(ids, "count").text, "3");
  const std::string body = print_json(Document::map({{"tokens", at(ids, "tokens")}}), JsonLayout::kOneLine);
  EXPECT_EQ(at(parse_json(served->post("/detokenize", body).body, "text"), "prompt").text, "A cable");
  EXPECT_EQ(served->post("/detokenize", R"({"tokens":[99999]})").status, 400);
}

TEST_F(Serve, ShowsThePlanBesideWhatItMeasures) {
  const Document view = parse_json(served->get("/v1/cluster").body, "view");
  EXPECT_GT(std::stod(at(at(view, "plan"), "tokens_per_second").text), 1);
  EXPECT_EQ(at(view, "tokens_per_second").kind, Document::Kind::kNumber);
}

TEST_F(Serve, ShowsMetricsAndThePage) {
  chat(R"(,"max_tokens":2)");
  EXPECT_THAT(served->get("/metrics").body,
              AllOf(HasSubstr("vllm:generation_tokens_total{model_name=\"nano\"}"), HasSubstr("yoke_ranks")));
  const http::HttpAnswer page = served->get("/");
  EXPECT_THAT(page.body, StartsWith("<!doctype html>"));
  EXPECT_THAT(page.header("content-security-policy").value_or(""), StartsWith("default-src 'none'; script-src 'self'"));
  for (const char* file : {"/page.css", "/chat.js", "/cluster.js", "/markdown.js"}) {
    EXPECT_EQ(served->get(file).status, 200) << file;
  }
  EXPECT_THAT(page.body, AllOf(Not(HasSubstr("onclick")), Not(HasSubstr("style=")), Not(HasSubstr("https://"))));
}

TEST_F(Serve, PageIsShownByARealBrowserWithoutAComplaint) {
  if (!find_program("chromium")) GTEST_SKIP() << "chromium is not installed";
  const Outcome shown =
      run({.argv = {"chromium", "--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=4000",
                    "--enable-logging=stderr", "--dump-dom", fmt::format("http://127.0.0.1:{}/", served->port)},
           .environment = {{"HOME", served->scratch.path()}},
           .timeout = 60_s});
  ASSERT_TRUE(shown.ok()) << shown.describe();
  EXPECT_EQ(shown.err.find(":CONSOLE"), std::string::npos) << shown.err;
  EXPECT_THAT(shown.out, AllOf(HasSubstr("<span id=\"model\">nano</span>"), HasSubstr(">ready</span>")));
}

TEST(ServeAlone, RefusesWhatDoesNotFitIntoTheQueue) {
  Served served({"--max-running", "1", "--max-queue", "1"});
  served.wait_until_ready();
  const std::string long_one = R"({"prompt":"A","max_tokens":900,"ignore_eos":true})";
  std::vector<Socket> asking;
  for (int i = 0; i < 2; ++i) {
    asking.push_back(connect_tcp(served.endpoint(), {}, Deadline::after(2_s)));
    asking.back().send_all(fmt::format("POST /v1/completions HTTP/1.1\r\nHost: h\r\nContent-Length: {}\r\n\r\n{}",
                                       long_one.size(), long_one),
                           Deadline::after(2_s));
  }
  http::HttpAnswer answer;
  for (const Deadline deadline = Deadline::after(5_s); answer.status != 429 && !deadline.expired();) {
    answer = served.post("/v1/completions", R"({"prompt":"A","max_tokens":1})");
  }
  EXPECT_EQ(answer.status, 429);
  EXPECT_EQ(answer.header("retry-after"), "5");
  EXPECT_EQ(ApiSchemas().problem("ErrorResponse", parse_json(answer.body, "error")), std::nullopt);
}

// One client has all places and waits with nine more; another comes, and gets the next free place.
TEST(ServeAlone, LetsClientsTakeTurns) {
  const ScratchDir scratch;
  const auto file = scratch.path() / "keys";
  write_file_atomically(file, fmt::format("many {}\nfew {}\n", sha256_hex("m"), sha256_hex("f")), {.mode = 0600});
  // On `ref` an answer of 900 tokens takes many seconds.
  Served served({"--api-key-file", file.native(), "--max-running", "2", "--backend", "ref"});
  served.wait_until_ready();
  const auto figure = [&](const char* name) {
    return std::atoi(
        at(parse_json(http::ask(served.endpoint(), {.path = "/v1/cluster", .headers = {{"x-api-key", "f"}}},
                                Deadline::after(30_s))
                          .body,
                      "view"),
           name)
            .text.c_str());
  };
  std::vector<Socket> asking;
  for (int i = 0; i < 11; ++i) {
    const std::string body = fmt::format(R"({{"prompt":"A","max_tokens":{},"ignore_eos":true}})", i == 0 ? 30 : 900);
    asking.push_back(connect_tcp(served.endpoint(), {}, Deadline::after(2_s)));
    asking.back().send_all(
        fmt::format("POST /v1/completions HTTP/1.1\r\nHost: h\r\nx-api-key: m\r\nContent-Length: {}\r\n\r\n{}",
                    body.size(), body),
        Deadline::after(2_s));
    for (const Deadline deadline = Deadline::after(10_s);
         figure("running") + figure("waiting") < std::min(i + 1, 10) && !deadline.expired();) {
    }
  }
  const http::HttpAnswer answer = http::ask(served.endpoint(),
                                            {.method = "POST",
                                             .path = "/v1/completions",
                                             .body = R"({"prompt":"A","max_tokens":2})",
                                             .headers = {{"x-api-key", "f"}}},
                                            Deadline::after(60_s));
  EXPECT_EQ(answer.status, 200) << answer.body;
  EXPECT_GE(figure("waiting"), 7) << "the others are still to come";
}

TEST(ServeAlone, NeedsAKeyWhereThereIsAFileOfKeys) {
  const ScratchDir scratch;
  const auto file = scratch.path() / "keys";
  write_file_atomically(file, "alice " + sha256_hex("secret") + "\n", {.mode = 0600});
  Served served({"--api-key-file", file.native(), "--cors", "https://app.example"});
  served.wait_until_ready();  // needs none
  const auto asked = [&](const std::string& header) {
    return served.say("GET /v1/models HTTP/1.1\r\nHost: h\r\nConnection: close\r\n" + header + "\r\n").substr(9, 3);
  };
  EXPECT_EQ(asked(""), "401");
  EXPECT_EQ(asked("Authorization: Bearer wrong\r\n"), "401");
  EXPECT_EQ(asked("Authorization: Bearer secret\r\n"), "200");
  EXPECT_EQ(asked("x-api-key: secret\r\n"), "200");
  // The one site that --cors names may read all answers: streams, whole ones, refusals, and the question before them.
  const std::string site = "Host: h\r\nConnection: close\r\nOrigin: https://app.example\r\n";
  const std::string allowed = "\r\nAccess-Control-Allow-Origin: https://app.example\r\n";
  EXPECT_THAT(served.say("OPTIONS /v1/completions HTTP/1.1\r\n" + site + "\r\n"),
              AllOf(StartsWith("HTTP/1.1 204 "), HasSubstr(allowed)));
  for (const char* body : {R"({"prompt":"A","max_tokens":1})", R"({"prompt":"A","max_tokens":1,"stream":true})", "{"}) {
    EXPECT_THAT(served.say(fmt::format("POST /v1/completions HTTP/1.1\r\n{}x-api-key: secret\r\nContent-Length: {}\r\n"
                                       "\r\n{}",
                                       site, std::strlen(body), body)),
                HasSubstr(allowed))
        << body;
  }
}

TEST(ServeAlone, LimitsTheTimeOfAnAnswerAndTheRequestsOfAClient) {
  // On `ref` an answer of 900 tokens takes many seconds.
  Served served({"--request-timeout", "1s", "--max-per-client", "1", "--backend", "ref"});
  served.wait_until_ready();
  const std::string long_one = R"({"prompt":"A","max_tokens":900,"ignore_eos":true)";
  const http::HttpAnswer whole = served.post("/v1/completions", long_one + "}");
  EXPECT_EQ(whole.status, 504) << whole.body;
  EXPECT_EQ(ApiSchemas().problem("ErrorResponse", parse_json(whole.body, "error")), std::nullopt);
  http::HttpAnswer second;
  std::string streamed;
  // The stream ends after a second: where this machine is too busy to come with another request meanwhile, once more.
  for (int attempt = 0; attempt < 5 && second.status != 429; ++attempt) {
    auto asked = std::async(std::launch::async,
                            [&] { return served.post("/v1/completions", long_one + R"(,"stream":true})").body; });
    while (asked.wait_for(std::chrono::milliseconds(1)) != std::future_status::ready &&
           at(parse_json(served.get("/v1/cluster").body, "view"), "running").text == "0") {
    }
    second = served.post("/v1/completions", R"({"prompt":"A","max_tokens":1})");
    streamed = asked.get();
  }
  EXPECT_EQ(second.status, 429) << second.body;
  EXPECT_THAT(second.body, HasSubstr("rate_limit_exceeded"));
  const auto events = stream_events(streamed);
  EXPECT_THAT(at(at(events.back(), "error"), "message").text, HasSubstr("too long"));
}

TEST(ServeAlone, TalksToTheTerminal) {
  Served served;
  served.wait_until_ready();
  const Outcome chat =
      run_yoke({"chat", "--server", fmt::format("http://127.0.0.1:{}", served.port)},
               {.folder = served.scratch.path(), .input = "Which cable joins two units?\n", .timeout = 60_s});
  EXPECT_EQ(chat.exit_status, 0) << chat.err;
  EXPECT_THAT(chat.out, HasSubstr(kAnswer));
}

TEST(ServeAlone, FinishesAnswersAfterSigterm) {
  Served served;
  served.wait_until_ready();
  auto asked = std::async(std::launch::async, [&] {
    return served.post("/v1/completions", R"({"prompt":"A","max_tokens":150,"ignore_eos":true,"stream":true})");
  });
  while (at(parse_json(served.get("/v1/cluster").body, "view"), "running").text == "0") {
  }
  EXPECT_EQ(served.end(), 0) << served.err;
  const http::HttpAnswer answer = asked.get();
  EXPECT_EQ(at(at(stream_events(answer.body).back(), "choices").items.at(0), "finish_reason").text, "length");
}

}  // namespace
}  // namespace yoke::tests

// yoke serve in front of another server, which here is yoke itself: a real engine behind a real API.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <future>

#include "tests/served.h"

namespace yoke::tests {
namespace {

using namespace literals;
using testing::HasSubstr;

ServedHow in_front_of(const Served& upstream, std::vector<std::string> more = {}) {
  return {.model = {"--upstream", fmt::format("http://127.0.0.1:{}", upstream.port)}, .more = std::move(more)};
}

std::string chat_text(const std::string& body) {
  std::string text;
  for (const Document& event : stream_events(body)) {
    if (const auto* error = event.find("error")) return print_json(*error);
    for (const Document& choice : at(event, "choices").items) {
      if (const auto* piece = at(choice, "delta").find("content")) text += piece->text;
    }
  }
  return text;
}

// As the front counts them: what has reached clients.
std::string generated_tokens(const Served& front) {
  const std::string text = front.get("/metrics").body;
  const std::string name = "\nvllm:generation_tokens_total{";
  const std::size_t at = text.find("} ", text.find(name));
  return text.substr(at + 2, text.find('\n', at) - at - 2);
}

void wait_for_tokens(const Served& front, int count) {
  for (const Deadline deadline = Deadline::after(30_s); !deadline.expired();) {
    if (std::atoi(generated_tokens(front).c_str()) >= count) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  ADD_FAILURE() << "there are not " << count << " tokens: " << front.get("/metrics").body;
}

TEST(ServeUpstream, PassesAnswersAndRefusalsOn) {
  Served upstream;
  upstream.wait_until_ready();
  Served front(in_front_of(upstream));
  front.err_until("answers", 20_s);
  front.wait_until_ready();
  const std::string asked = R"({"messages":[{"role":"user","content":"Which cable joins two units?"}])";
  const Document whole = parse_json(front.post("/v1/chat/completions", asked + "}").body, "answer");
  EXPECT_EQ(at(at(at(whole, "choices").items.at(0), "message"), "content").text, kAnswer);
  EXPECT_EQ(chat_text(front.post("/v1/chat/completions", asked + R"(,"stream":true})").body), kAnswer);
  EXPECT_EQ(front.post("/v1/chat/completions", asked + R"(,"temperature":"hot"})").status, 400);
  EXPECT_EQ(front.post("/v1/chat/completions", asked + R"(,"temperature":"hot","stream":true})").status, 400);
  EXPECT_EQ(front.post("/v1/chat/completions", asked + R"(,"model":"gpt-4"})").status, 404);
  EXPECT_THAT(front.post("/v1/responses", R"({"input":"Which?","stream":true})").body, HasSubstr("response.completed"));
  EXPECT_EQ(front.post("/v1/messages", R"({"messages":[{"role":"user","content":"a"}],"max_tokens":3})").status, 200);
  EXPECT_EQ(at(parse_json(front.post("/tokenize", R"({"prompt":"A cable"})").body, "ids"), "count").text, "3");
  for (const Served* server : {&upstream, &front}) {
    EXPECT_EQ(server->get("/ready").status, 200);
    EXPECT_THAT(server->get("/metrics").body, HasSubstr("\nyoke_canary_up{model_name=\"nano\"} 1\n"));
  }
  EXPECT_EQ(at(parse_json(front.get("/v1/cluster").body, "view"), "state").text, "ready");
  EXPECT_EQ(front.end(), 0) << front.err;
}

double metric(const std::string& text, const std::string& series) {
  const std::size_t at = text.find("\n" + series + " ");
  return at == std::string::npos ? -1 : std::stod(text.substr(at + series.size() + 2));
}

// Under the names of an engine of our own: what the front counts, and what the server behind it says.
TEST(ServeUpstream, MetricsOfAFrontAreThoseOfAnEngine) {
  Served upstream;
  upstream.wait_until_ready();
  Served front(in_front_of(upstream));
  front.err_until("answers", 20_s);
  front.wait_until_ready();
  const std::string asked = R"({"messages":[{"role":"user","content":"Which cable joins two units?"}],"stream":true})";
  EXPECT_THAT(front.post("/v1/chat/completions", asked).body, testing::Not(HasSubstr("usage")))
      << "nobody asked for it";
  front.post("/v1/responses", R"({"input":"Which?","stream":true,"max_output_tokens":5})");
  const std::string own = upstream.get("/metrics").body;
  std::string text;
  const std::string m = "{model_name=\"nano\"}";
  for (const Deadline deadline = Deadline::after(20_s); !deadline.expired();) {
    text = front.get("/metrics").body;
    if (metric(text, "vllm:kv_cache_usage_perc" + m) >= 0 && metric(text, "vllm:num_requests_running" + m) == 0) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  for (const char* name : {"vllm:num_requests_running", "vllm:num_requests_waiting"}) {
    EXPECT_EQ(metric(text, name + m), 0) << name << text;
  }
  EXPECT_GE(metric(text, "vllm:kv_cache_usage_perc" + m), 0) << "as it says itself";
  // The server has answered the canaries too, of one token each.
  for (const char* name : {"vllm:prompt_tokens_total", "vllm:generation_tokens_total"}) {
    EXPECT_GT(metric(text, name + m), 4) << name;
    EXPECT_LT(metric(text, name + m), metric(own, name + m)) << name;
  }
  EXPECT_EQ(metric(text, "vllm:time_to_first_token_seconds_count" + m), 2);
  EXPECT_GT(metric(text, "vllm:inter_token_latency_seconds_count" + m), 4);
  EXPECT_EQ(metric(text, "vllm:request_time_per_output_token_seconds_count" + m), 2);
  EXPECT_EQ(metric(text, "yoke_canary_up{model_name=\"nano\"}"), 1);
  EXPECT_GT(metric(text, "yoke_canary_seconds" + m), 0);
  EXPECT_EQ(metric(text, "yoke_engine_ready" + m), 1);
  EXPECT_EQ(metric(text, "yoke_ranks" + m), -1) << "the front does not know them";
}

// The server behind a front dies in the middle of four streams and is started again: each ends as if nothing had
// happened.
void expect_streams_go_on(const Served& front, const std::string& sampling, const std::function<void()>& die) {
  const auto ask = [&](int i) {
    const std::string body = fmt::format(
        R"({{"messages":[{{"role":"user","content":"What is node {}?"}}],"max_tokens":60,"ignore_eos":true,)"
        R"("stream":true,"seed":{},"stream_options":{{"include_usage":true}},{}}})",
        i, i, sampling);
    return front.post("/v1/chat/completions", body).body;
  };
  constexpr int kStreams = 4;
  const auto all = [&](const std::function<void()>& meanwhile) {
    std::vector<std::future<std::string>> asked;
    for (int i = 0; i < kStreams; ++i) asked.push_back(std::async(std::launch::async, ask, i));
    meanwhile();
    std::vector<std::string> bodies;
    for (auto& one : asked) bodies.push_back(one.get());
    return bodies;
  };
  const auto undisturbed = all([] {});
  const int before = std::atoi(generated_tokens(front).c_str());
  const auto disturbed = all([&] {
    wait_for_tokens(front, before + 8 * kStreams);
    die();
  });
  int resumed = 0;
  for (int i = 0; i < kStreams; ++i) {
    const auto place = static_cast<std::size_t>(i);
    EXPECT_EQ(chat_text(disturbed[place]), chat_text(undisturbed[place])) << i;
    resumed += disturbed[place].find(": resumed") != std::string::npos ? 1 : 0;
    EXPECT_THAT(disturbed[place], HasSubstr("\"completion_tokens\":60"));
  }
  EXPECT_GT(resumed, 0);
  const std::string metrics = front.get("/metrics").body;
  const std::string name = at(at(parse_json(front.get("/v1/models").body, "models"), "data").items.at(0), "id").text;
  EXPECT_GE(metric(metrics, "yoke_resumptions_total{model_name=\"" + name + "\"}"), resumed);
  EXPECT_GE(metric(metrics, "yoke_recovery_seconds_count{model_name=\"" + name + "\"}"), 1);
}

TEST(ServeUpstream, GoesOnWithStreamsWhoseServerDies) {
  const std::vector<std::string> slow = {"--backend", "ref"};
  auto upstream = std::make_unique<Served>(slow);
  upstream->wait_until_ready();
  Served front(in_front_of(*upstream));
  front.err_until("answers", 20_s);
  expect_streams_go_on(front, R"("temperature":0.8)", [&] {
    const int port = upstream->port;
    upstream->kill();
    upstream = std::make_unique<Served>(ServedHow{.port = port, .more = slow});
  });
}

// llama.cpp's server has its own tokenizer, templates and shape of events, and gives no token ids. Its sampler draws
// again after the death, so the streams are compared greedily.
TEST(ServeUpstream, GoesOnWithStreamsOfLlamaServer) {
  const char* const program = std::getenv("YOKE_LLAMA_SERVER");
  const char* const model = std::getenv("YOKE_LLAMA_MODEL");
  if (!program || !model) GTEST_SKIP() << "YOKE_LLAMA_SERVER and YOKE_LLAMA_MODEL do not name llama.cpp's server";
  const int port = listen_tcp({"127.0.0.1", 0}, {}).local().port;
  const Command command{.argv = {program, "-m", model, "--port", std::to_string(port), "-t", "1", "-c", "4096", "-np",
                                 "4", "--no-warmup"}};
  std::optional<Process> llama(std::in_place, command);
  Served front(ServedHow{.model = {"--upstream", fmt::format("http://127.0.0.1:{}", port)}});
  front.err_until("answers", 60_s);
  front.wait_until_ready();
  expect_streams_go_on(front, R"("temperature":0)", [&] {
    ::kill(llama->pid(), SIGKILL);
    llama.reset();
    llama.emplace(command);
  });
}

// It takes connections and says nothing: what waits for it does not keep others waiting.
TEST(ServeUpstream, AnswersOthersWhileItsServerHangs) {
  const Socket silent = listen_tcp({"127.0.0.1", 0}, {});
  Served front(ServedHow{.model = {"--upstream", fmt::format("http://127.0.0.1:{}", silent.local().port)}});
  std::vector<Socket> asking;
  for (const char* text : {"GET /ready HTTP/1.1\r\nHost: h\r\n\r\n", "GET /ready HTTP/1.1\r\nHost: h\r\n\r\n",
                           "POST /tokenize HTTP/1.1\r\nHost: h\r\nContent-Length: 14\r\n\r\n{\"prompt\":\"a\"}"}) {
    asking.push_back(connect_tcp(front.endpoint(), {}, Deadline::after(2_s)));
    asking.back().send_all(text, Deadline::after(2_s));
  }
  for (int i = 0; i < 3; ++i) EXPECT_EQ(front.get("/health").status, 200);
  const std::string metrics = front.get("/metrics").body;
  EXPECT_THAT(metrics, HasSubstr("yoke_engine_ready{model_name=\"upstream\"} 0\n"));
  EXPECT_THAT(metrics, testing::Not(HasSubstr("kv_cache_usage"))) << "not known";
  for (const Socket& one : asking) {
    pollfd waited{.fd = one.fd(), .events = POLLIN, .revents = 0};
    EXPECT_EQ(poll(&waited, 1, 0), 0) << "it was answered before /health was";
  }
  front.kill();  // it would wait for the answer
}

TEST(ServeUpstream, EndsStreamsWithAnErrorWhereItMustNotGoOn) {
  auto upstream = std::make_unique<Served>(std::vector<std::string>{"--backend", "ref"});
  upstream->wait_until_ready();
  Served front(in_front_of(*upstream, {"--no-resume"}));
  front.err_until("answers", 20_s);
  auto asked = std::async(std::launch::async, [&] {
    return front.post("/v1/completions", R"({"prompt":"A","max_tokens":900,"ignore_eos":true,"stream":true})").body;
  });
  wait_for_tokens(front, 5);
  upstream->kill();
  EXPECT_THAT(asked.get(), HasSubstr("the engine was lost"));
  EXPECT_EQ(front.get("/health").status, 200);
  EXPECT_EQ(front.get("/ready").status, 503);
}

TEST(ServeUpstream, RefusesAnAddressThatIsNone) {
  for (const char* url : {"https://a", "127.0.0.1:8000", "http://", "http://a:0", "http://a:99999", "http://a/b?c"}) {
    EXPECT_EQ(run_yoke({"serve", "--upstream", url}, {.timeout = 20_s}).exit_status,
              info(ErrorCode::kUsage).exit_status)
        << url;
  }
}

}  // namespace
}  // namespace yoke::tests

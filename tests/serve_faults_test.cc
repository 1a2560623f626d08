// A server whose ranks die while clients stream: every stream ends with the tokens that would have come.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <future>

#include "tests/long_run.h"
#include "tests/served.h"

namespace yoke::tests {
namespace {

using namespace literals;
using testing::HasSubstr;

constexpr int kClients = 8;
// Of a node's rails: heartbeats alone are far less, eight streams far more.
constexpr double kStreamingBytes = 30e3;

std::string question_of(int client, int tokens) {
  return fmt::format(
      R"({{"prompt":"Node {} and","max_tokens":{},"ignore_eos":true,"stream":true,"seed":{},"temperature":0.8}})",
      client, tokens, client);
}

std::string text_of(const std::string& body) {
  std::string text;
  for (const Document& event : stream_events(body)) {
    for (const Document& choice : at(event, "choices").items) text += at(choice, "text").text;
  }
  return text;
}

std::vector<std::string> ask_all(const Served& served, int tokens, const std::function<void()>& meanwhile) {
  std::vector<std::future<std::string>> asked;
  for (int i = 0; i < kClients; ++i) {
    asked.push_back(std::async(std::launch::async, [&served, i, tokens] {
      return served.post("/v1/completions", question_of(i, tokens)).body;
    }));
  }
  meanwhile();
  std::vector<std::string> texts;
  for (auto& one : asked) texts.push_back(text_of(one.get()));
  return texts;
}

pid_t rank_process(const std::string& mark, int number) {
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const pid_t pid = std::atoi(entry.path().filename().c_str());
    if (pid <= 0) continue;
    const auto environment = try_to([&] { return read_file(entry.path() / "environ"); });
    const auto line = try_to([&] { return read_file(entry.path() / "cmdline"); });
    if (!environment || !line || line->find(std::string("rank\0engine", 11)) == std::string::npos) continue;
    if (environment->find("YOKE_TEST_MARK=" + mark) == std::string::npos) continue;
    if (environment->find(fmt::format("YOKE_RANK={}", number)) != std::string::npos) return pid;
  }
  return -1;
}

// On `ref` answers take seconds: a rank is killed in the middle of them on any machine.
const std::vector<std::string> kSlowRanks = {"--ranks", "2", "--backend", "ref"};

TEST(ServeFaults, StreamsGoOnWithTheSameTokensAfterEachRankIsKilled) {
  Served served(kSlowRanks);
  served.wait_until_ready();
  const std::vector<std::string> expected = ask_all(served, 60, [] {});
  for (const int rank : {0, 1}) {
    const auto texts = ask_all(served, 60, [&] {
      for (const Deadline deadline = Deadline::after(20_s); !deadline.expired();) {
        if (at(parse_json(served.get("/v1/cluster").body, "view"), "running").text != "0") break;
      }
      const pid_t process = rank_process(served.mark, rank);
      ASSERT_GT(process, 0);
      kill(process, SIGKILL);
    });
    EXPECT_EQ(texts, expected) << "rank " << rank;
    EXPECT_EQ(served.get("/ready").status, 200);
  }
  const Document view = parse_json(served.get("/v1/cluster").body, "view");
  EXPECT_EQ(at(view, "recoveries").text, "2");
  EXPECT_EQ(at(view, "engine_starts").text, "1");
  const std::string metrics = served.get("/metrics").body;
  for (const char* rank : {"0", "1"}) {
    EXPECT_THAT(metrics, testing::ContainsRegex(fmt::format("yoke_rank_restarts_total.*rank=\"{}\".* 1\n", rank)));
    EXPECT_THAT(metrics, testing::ContainsRegex(fmt::format("yoke_rank_up.*rank=\"{}\".* 1\n", rank)));
  }
}

// A client that reads its stream as it comes, and does something once it has so many bytes of the answer.
std::string read_answer(const Served& served, const std::string& body, std::size_t from_length,
                        const std::function<void()>& happen) {
  http::AnswerStream stream(served.endpoint(), {.method = "POST", .path = "/v1/chat/completions", .body = body},
                            Deadline::after(10_s));
  std::string all;
  const auto text = [&] {
    std::string content;
    for (const std::string& line : split(all.substr(0, all.rfind('\n') + 1), '\n')) {
      if (!line.starts_with("data: {")) continue;
      const Document event = parse_json(line.substr(6), "event");
      if (const auto* piece = at(at(event, "choices").items.at(0), "delta").find("content")) content += piece->text;
    }
    return content;
  };
  bool has_happened = false;
  for (const Deadline deadline = Deadline::after(120_s); !stream.is_complete() && !deadline.expired();) {
    if (!stream.head(0.1_s)) continue;
    all += stream.read(0.1_s);
    if (text().size() < from_length || std::exchange(has_happened, true)) continue;
    happen();
  }
  EXPECT_TRUE(stream.is_complete()) << all;
  all += stream.read({});
  EXPECT_THAT(all, HasSubstr("data: [DONE]"));
  return text();
}

// The new rank walks the grammar over the answer so far: what follows is held to the same schema.
TEST(ServeFaults, JsonStaysValidAndTheSameAfterEachRankIsKilled) {
  Served served(kSlowRanks);
  served.wait_until_ready();
  const std::string schema =
      R"({"type":"array","minItems":6,"maxItems":6,"items":{"type":"object","properties":{"kind":{"enum":["QSFP",)"
      R"("DAC"]},"ports":{"type":"integer","minimum":1,"maximum":4}},"required":["kind","ports"],)"
      R"("additionalProperties":false}})";
  const std::string body =
      R"({"messages":[{"role":"user","content":"Which cables?"}],"stream":true,"seed":4,"temperature":1,)"
      R"("max_tokens":600,"response_format":{"type":"json_schema","json_schema":{"name":"cables","schema":)" +
      schema + "}}}";
  const std::string expected = read_answer(served, body, 0, [] {});
  const Document cables = parse_json(expected, "cables");
  EXPECT_EQ(cables.items.size(), 6U) << expected;
  for (const int rank : {0, 1}) {
    const std::string text = read_answer(served, body, 20, [&] {
      const pid_t process = rank_process(served.mark, rank);
      ASSERT_GT(process, 0);
      kill(process, SIGKILL);
    });
    EXPECT_EQ(text, expected) << "rank " << rank;
  }
  EXPECT_EQ(at(parse_json(served.get("/v1/cluster").body, "view"), "recoveries").text, "2");
}

// In a lab the head has a network of its own: its clients run there too.
TEST(LabServe, StreamsOfTwoNodesGoOnAfterARankIsKilled) {
  if (const auto why = why_no_labs({"curl"})) GTEST_SKIP() << *why;
  const TestLab lab({"--nodes", "2"});
  Process server({.argv = {YOKE_PROGRAM, "serve", kNano, "--port", "8000", "--threads", "1", "--backend", "ref"},
                  .folder = lab.folder});
  const auto ask = [&](int client) {
    return lab.exec("1", {"curl", "-sN", "http://127.0.0.1:8000/v1/completions", "-d", question_of(client, 30)}, {120})
        .out;
  };
  std::string ready;
  for (const Deadline deadline = Deadline::after(60_s); ready != "200" && !deadline.expired();) {
    ready = lab.exec("1", {"curl", "-s", "-o", "/dev/null", "-w", "%{http_code}", "http://127.0.0.1:8000/ready"}).out;
  }
  ASSERT_EQ(ready, "200") << server.read_bytes(OutputStream::kErr, 4096, Deadline::after(1_s));
  const auto ask_everyone = [&](const std::function<void()>& meanwhile) {
    std::vector<std::future<std::string>> asked;
    for (int i = 0; i < kClients; ++i) asked.push_back(std::async(std::launch::async, ask, i));
    meanwhile();
    std::vector<std::string> texts;
    for (auto& one : asked) texts.push_back(text_of(one.get()));
    return texts;
  };
  const auto view = [&] {
    return parse_json(lab.exec("1", {"curl", "-s", "http://127.0.0.1:8000/v1/cluster"}).out, "view");
  };
  // What the rails of the other node receive, in bytes a second, as its supervisor reports it.
  const auto received = [&] {
    const Document now = view();
    double sum = 0;
    for (const Document& rail : at(at(now, "nodes").items.at(1), "rails").items) {
      if (const auto* const rate = rail.find("received_bytes_per_second")) sum += std::stod(rate->text);
    }
    return sum;
  };
  double fastest = 0;
  const auto expected = ask_everyone([&] {
    for (const Deadline deadline = Deadline::after(20_s); fastest < kStreamingBytes && !deadline.expired();) {
      fastest = std::max(fastest, received());
    }
  });
  EXPECT_GE(fastest, kStreamingBytes) << "bytes a second while tokens flow";
  const auto texts = ask_everyone([&] {
    for (const Deadline deadline = Deadline::after(20_s); !deadline.expired();) {
      if (at(view(), "running").text != "0") break;
    }
    const Outcome killed = lab.exec("2", {"sh", "-c", "kill -9 $(pgrep -f 'rank engine' | head -1)"});
    EXPECT_TRUE(killed.ok()) << killed.err;
  });
  EXPECT_EQ(texts, expected);
  const Document after = view();
  EXPECT_EQ(at(after, "recoveries").text, "1");
  EXPECT_GT(std::stod(at(at(after, "plan"), "tokens_per_second").text), 1);
  ASSERT_EQ(at(after, "nodes").items.size(), 2U);
  EXPECT_EQ(at(at(after, "nodes").items[1], "ranks").items.size(), 1U);
  EXPECT_FALSE(at(at(after, "nodes").items[1], "rails").items.empty());
  const Document& other = at(after, "nodes").items[1];
  EXPECT_GT(std::stod(at(other, "memory_available_bytes").text), 1e6);
  EXPECT_GT(std::stod(at(other, "memory_bytes").text), std::stod(at(other, "memory_available_bytes").text));
  const std::string metrics = lab.exec("1", {"curl", "-s", "http://127.0.0.1:8000/metrics"}).out;
  EXPECT_THAT(metrics, testing::ContainsRegex("yoke_link_up.*node=\"spark-1\",rail=\"A\".* 1\n"));
  for (const char* node : {"spark-1", "spark-2"}) {
    EXPECT_THAT(metrics, testing::ContainsRegex(fmt::format("yoke_link_sent_bytes_total.*node=\"{}"
                                                            "\",rail=\"A\".* [1-9][0-9]+\n",
                                                            node)));
  }
  EXPECT_THAT(metrics, testing::ContainsRegex("yoke_rank_restarts_total.*rank=\"1\",node=\"spark-2\".* 1\n"));
}

}  // namespace
}  // namespace yoke::tests

// yoke why with real runs: of the history, of an engine that serves, and in a lab under faults that slow a run. More
// faults and rounds: scripts/soak-why.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/lab_fixture.h"
#include "tests/served.h"
#include "yoke/base/json.h"

namespace yoke::tests {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

struct WhyCommand : testing::Test {
  ScratchDir scratch{"yoke-why-test"};
  Outcome yoke(std::vector<std::string> arguments) const {
    return run_yoke(std::move(arguments), {.environment = {{"XDG_DATA_HOME", scratch.path().native()}},
                                           .folder = scratch.path(),
                                           .timeout = Seconds{120}});
  }
};

TEST_F(WhyCommand, ExplainsTheNewestRunOfTheHistory) {
  EXPECT_THAT(yoke({"why"}).err, HasSubstr("nothing was run or measured yet"));
  ASSERT_TRUE(yoke({"run", kNano, "-p", "Which cable?", "--raw", "-n", "60", "--threads", "1", "--ranks", "2",
                    "--logit-bias", "2044=-inf"})
                  .ok());
  const Outcome text = yoke({"why"});
  EXPECT_THAT(text.out, HasSubstr("a step that makes tokens"));
  EXPECT_THAT(text.out, HasSubstr("weights"));
  EXPECT_THAT(text.out, HasSubstr("all-reduce"));
  const Outcome outcome = yoke({"why", "last", "--json"});
  const Document why = parse_json(outcome.out, "why");
  double sum = 0;
  for (const Document& term : at(at(why, "steps").items.at(0), "terms").items)
    sum += std::stod(at(term, "measured").text);
  EXPECT_NEAR(sum / std::stod(at(at(why, "steps").items.at(0), "seconds").text), 1, 0.02) << "terms are the step";
  EXPECT_EQ(outcome.exit_status, at(why, "blames").items.empty() ? 0 : 1);
  // On one machine there is no rail to blame.
  for (const Document& blame : at(why, "blames").items) EXPECT_NE(at(blame, "term").text, "all-reduce") << outcome.out;
  EXPECT_EQ(yoke({"why", "77"}).exit_status, info(ErrorCode::kNotFound).exit_status);
  EXPECT_EQ(yoke({"why", "last", "--engine"}).exit_status, info(ErrorCode::kUsage).exit_status);
  EXPECT_THAT(yoke({"bench", "compare", "last", "last"}).out, Not(HasSubstr("why:")));
}

TEST_F(WhyCommand, ExplainsABenchmark) {
  ASSERT_TRUE(yoke({"bench", "all-reduce", "-b", "8K", "-e", "8K", "-n", "5", "--ranks", "2"}).ok());
  const Outcome outcome = yoke({"why"});
  EXPECT_EQ(outcome.exit_status, 0) << outcome.out << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("all-reduce 1"));
  ASSERT_TRUE(yoke({"bench", "model", kNano, "--prompt", "16", "-n", "16", "--rounds", "1", "--threads", "1"}).ok());
  EXPECT_THAT(yoke({"why"}).out, HasSubstr("weights"));
}

TEST_F(WhyCommand, WatchesAnEngineThatServes) {
  Served served;
  served.wait_until_ready();
  std::jthread asking([&](const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      served.post("/v1/completions", R"({"prompt":"MTU","max_tokens":200,"ignore_eos":true})");
    }
  });
  const Outcome outcome = yoke(
      {"why", "--engine", "--engine-port", std::to_string(served.port), "--for", "3s", "--model", kNano, "--json"});
  asking.request_stop();
  asking.join();
  const Document why = parse_json(outcome.out, "why");
  EXPECT_THAT(at(why, "subject").text, HasSubstr("yoke with nano watched for"));
  EXPECT_GT(std::stod(at(at(why, "steps").items.at(0), "seconds").text), 0);
}

// A rank that computes in a lab of two nodes. Rails of 200 Mb/s make the exchange of a prompt the longest part.
struct WhyLab : testing::Test {
  void SetUp() override {
    if (const auto why = why_no_labs()) GTEST_SKIP() << *why;
    lab.emplace(std::vector<std::string>{"--rail-rate", "200Mb/s"});
  }
  Document ask(const std::string& prompt) const {
    const Outcome outcome =
        lab->yoke({"run", kNano, "--raw", "-p", prompt, "-n", "16", "--why", "--no-history", "--json"});
    EXPECT_EQ(outcome.exit_status, 0) << outcome.err;
    return at(parse_json(outcome.out, "run"), "why");
  }
  // "rail-slow spark-1 spark-2 rail B", of what concerns the exchange.
  static std::vector<std::string> blamed(const Document& why) {
    std::vector<std::string> found;
    for (const Document& blame : at(why, "blames").items) {
      if (at(blame, "term").text != "all-reduce") continue;  // other programs of this machine may run
      std::string line = at(blame, "cause").text;
      for (const Document& place : at(blame, "where").items) line += " " + place.text;
      found.push_back(line);
    }
    return found;
  }
  void fault(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), {"lab", "fault"});
    arguments.insert(arguments.end(), {"--name", lab->name});
    ASSERT_TRUE(lab->yoke(arguments).ok());
  }

  std::optional<TestLab> lab;
};
struct LabTimingWhy : WhyLab {};

TEST_F(WhyLab, NamesARailThatIsDownARouteAndSmallPackets) {
  const std::string prompt = "The cable has two rails.";
  EXPECT_THAT(blamed(ask(prompt)), IsEmpty());
  fault({"rail-down", "--node", "2", "--rail", "B"});
  EXPECT_THAT(blamed(ask(prompt)), testing::ElementsAre("rail-unused spark-1 spark-2 rail B"));
  fault({"clear"});
  fault({"management-only", "--node", "2"});
  EXPECT_THAT(blamed(ask(prompt)), testing::ElementsAre("rail-route spark-2"));
  fault({"clear"});
  fault({"mtu-mismatch", "--node", "2", "--rail", "A"});
  EXPECT_THAT(blamed(ask(prompt)), testing::ElementsAre("small-packets spark-1 spark-2 rail A"));
}

TEST_F(LabTimingWhy, NamesTheSlowRail) {
  std::string prompt;
  for (int i = 0; i < 60; ++i) prompt += "MTU 9000 on both rails of the cable. ";  // 784 tokens
  EXPECT_THAT(blamed(ask(prompt)), IsEmpty());
  fault({"slow-rail", "--node", "2", "--rail", "B"});
  EXPECT_THAT(blamed(ask(prompt)), testing::ElementsAre(testing::MatchesRegex("rail-slow .* rail B")));
}

}  // namespace
}  // namespace yoke::tests

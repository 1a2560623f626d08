// yoke serve with several models, of which only one fits at a time.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/served.h"

namespace yoke::tests {
namespace {

using namespace literals;
using testing::HasSubstr;

std::string content_of(const http::HttpAnswer& answer) {
  EXPECT_EQ(answer.status, 200) << answer.body;
  if (answer.status != 200) return {};
  return at(at(at(parse_json(answer.body, "answer"), "choices").items.at(0), "message"), "content").text;
}

std::string model_states(const Served& served) {
  std::string all;
  const Document view = parse_json(served.get("/v1/cluster").body, "view");
  for (const Document& model : at(view, "models").items) all += at(model, "state").text + "|";
  return all;
}

TEST(ServePool, LoadsTheModelThatIsAskedForAndEndsTheOther) {
  const ScratchDir folder;
  const auto file = folder.path() / "models.yaml";
  write_file_atomically(file,
                        fmt::format("loaded_max: 1\nmodels:\n  - {{ name: a, model: {0} }}\n"
                                    "  - {{ name: b, model: {0}, context: 256 }}\n",
                                    kNano),
                        {});
  Served served(ServedHow{.model = {"--config", file.native()}});
  EXPECT_EQ(served.get("/ready").status, 200);
  EXPECT_EQ(model_states(served), "not loaded|not loaded|");
  EXPECT_THAT(served.get("/v1/models").body, testing::AllOf(HasSubstr("\"a\""), HasSubstr("\"b\"")));
  const std::string asked = R"("messages":[{"role":"user","content":"Which cable joins two units?"}]})";
  EXPECT_EQ(content_of(served.post("/v1/chat/completions", R"({"model":"b",)" + asked)), kAnswer);
  EXPECT_EQ(model_states(served), "not loaded|ready|");
  EXPECT_EQ(content_of(served.post("/v1/chat/completions", "{" + asked)), kAnswer);
  EXPECT_EQ(model_states(served), "ready|not loaded|");
  const http::HttpAnswer streamed = served.post("/v1/chat/completions", R"({"model":"b","stream":true,)" + asked);
  EXPECT_THAT(streamed.body, HasSubstr("data: [DONE]"));
  EXPECT_EQ(served.post("/v1/chat/completions", R"({"model":"c",)" + asked).status, 404);
  const std::string metrics = served.get("/metrics").body;
  EXPECT_THAT(metrics, HasSubstr("vllm:num_requests_running{model_name=\"a\"} 0\n"
                                 "vllm:num_requests_running{model_name=\"b\"} 0\n"));
  EXPECT_EQ(served.end(), 0) << served.err;
}

TEST(ServePool, SaysWhatIsWrongWithItsFile) {
  const ScratchDir folder;
  const auto file = folder.path() / "models.yaml";
  for (const auto& [text, words] : {std::pair{"models: []\n", "one model at least"},
                                    {"models:\n  - { name: a, modle: x }\n", "modle"},
                                    {"models:\n  - { name: a }\n", "either"},
                                    {"models:\n  - { name: a, model: x }\n  - { name: a, model: y }\n", "two models"},
                                    {"models:\n  - { name: a, upstream: 'https://x' }\n", "https://x"}}) {
    write_file_atomically(file, text, {});
    const Outcome outcome = run_yoke({"serve", "--config", file.native()}, {.timeout = 20_s});
    EXPECT_NE(outcome.exit_status, 0);
    EXPECT_THAT(outcome.err, HasSubstr(words));
  }
}

}  // namespace
}  // namespace yoke::tests

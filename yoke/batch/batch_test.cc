#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>

#include "yoke/base/error_testing.h"
#include "yoke/base/files.h"
#include "yoke/base/json.h"
#include "yoke/base/text.h"
#include "yoke/batch/run_batch.h"

namespace yoke::batch {
namespace {

using testing::HasSubstr;

class Batch : public testing::Test {
 protected:
  std::string path(const std::string& name) const { return scratch.path() / name; }
  BatchInput input(const std::string& text) const {
    write_file_atomically(path("in"), text);
    return read_batch_input(path("in"));
  }
  static std::string request(int number) {
    return fmt::format(R"({{"custom_id": "r{0}", "method": "POST", "url": "/v1/completions", )"
                       R"("body": {{"model": "m", "prompt": "{0}"}}}})"
                       "\n",
                       number);
  }
  static std::string requests(int count) {
    std::string text;
    for (int i = 0; i < count; ++i) text += request(i);
    return text;
  }
  std::vector<std::string> ids() const {
    std::vector<std::string> found;
    for (const std::string& line : split(read_file(path("out")), '\n')) {
      if (!line.empty()) found.push_back(parse_json(line, "out").find("custom_id")->text);
    }
    return found;
  }
  const ScratchDir scratch;
};

const AskServer kEcho = [](const std::string&, const std::string& body) {
  return http::HttpAnswer{.status = 200, .headers = {{"x-request-id", "q"}}, .body = body};
};

TEST_F(Batch, WritesTheAnswersInTheOrderOfTheRequests) {
  const BatchInput asked = input(requests(100));
  BatchOutput output(path("out"), asked);
  const BatchReport report = run_batch(asked, output, kEcho, {.parallel = 8, .drop_model = true});
  output.finish();
  EXPECT_EQ(report.requests, 100U);
  EXPECT_EQ(report.failed, 0U);
  const auto found = ids();
  ASSERT_EQ(found.size(), 100U);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(found[static_cast<std::size_t>(i)], fmt::format("r{}", i));
  const Document first = parse_json(split(read_file(path("out")), '\n')[0], "out");
  EXPECT_EQ(first.find("response")->find("status_code")->text, "200");
  EXPECT_EQ(first.find("response")->find("request_id")->text, "q");
  EXPECT_EQ(first.find("response")->find("body")->find("prompt")->text, "0");
  EXPECT_EQ(first.find("response")->find("body")->find("model"), nullptr) << "the engine has one model";
  EXPECT_EQ(first.find("error")->kind, Document::Kind::kNull);
  EXPECT_FALSE(std::filesystem::exists(path("out.partial")));
  EXPECT_ERROR(BatchOutput(path("out"), asked), ErrorCode::kConflict, "is there already");
}

TEST_F(Batch, ContinuesAfterATornLineAndAsksNothingTwice) {
  const BatchInput asked = input(requests(10));
  {
    BatchOutput output(path("out"), asked);
    for (const int done : {7, 2, 4})
      output.add(fmt::format("r{}", done), answer_line(fmt::format("r{}", done), {.status = 200, .body = "{}"}));
    EXPECT_ERROR(BatchOutput(path("out"), asked), ErrorCode::kConflict, "another batch writes");
  }
  const std::string whole = read_file(path("out.partial"));
  write_file_atomically(path("out.partial"), whole + "{\"id\": \"x\", \"custom_id\": \"r5\", \"resp");
  BatchOutput output(path("out"), asked);
  EXPECT_EQ(output.size(), 3U);
  std::atomic<int> questions = 0;
  const BatchReport report = run_batch(asked, output,
                                       [&](const std::string& url, const std::string& body) {
                                         ++questions;
                                         return kEcho(url, body);
                                       },
                                       {.parallel = 3});
  output.finish();
  EXPECT_EQ(questions, 7);
  EXPECT_EQ(report.before, 3U);
  EXPECT_EQ(ids().size(), 10U);
  const BatchInput other =
      input("{\"custom_id\": \"z\", \"method\": \"POST\", \"url\": \"/v1/completions\", \"body\": {}}\n");
  write_file_atomically(path("out2.partial"), whole);
  EXPECT_ERROR(BatchOutput(path("out2"), other), ErrorCode::kConflict, "answers to other requests");
}

TEST_F(Batch, BusyAndAbsentServersAreAskedAgainAndRefusalsAreAnswers) {
  const BatchInput asked = input(requests(6));
  BatchOutput output(path("out"), asked);
  std::atomic<int> questions = 0;
  const AskServer moody = [&](const std::string& url, const std::string& body) -> http::HttpAnswer {
    const int number = questions++;
    if (number % 3 == 0) throw Error(ErrorCode::kUnavailable, "nobody listens");
    if (number % 3 == 1) return {.status = 503, .headers = {}, .body = "{}"};
    if (body.find("\"4\"") != std::string::npos) return {.status = 400, .headers = {}, .body = "{\"error\": {}}"};
    return kEcho(url, body);
  };
  const BatchReport report = run_batch(asked, output, moody, {.parallel = 2, .first_pause = Seconds{0.001}});
  EXPECT_EQ(report.failed, 1U);
  output.finish();
  EXPECT_EQ(ids().size(), 6U);
  BatchOutput second(path("second"), asked);
  EXPECT_ERROR(run_batch(asked, second,
                         [](const std::string&, const std::string&) -> http::HttpAnswer {
                           throw Error(ErrorCode::kUnavailable, "nobody listens");
                         },
                         {.patience = Seconds{0.05}, .first_pause = Seconds{0.01}}),
               ErrorCode::kUnavailable, "nobody listens");
  EXPECT_THAT(answer_line("a", {.status = 200, .headers = {}, .body = "<html>"}),
              HasSubstr("the server's answer is no JSON"));
}

TEST_F(Batch, RefusesWhatIsNoBatch) {
  EXPECT_ERROR(input("{\n"), ErrorCode::kInvalid, "in:1: is no JSON object");
  EXPECT_ERROR(input(request(1) + "\n" + request(1)), ErrorCode::kInvalid, "in:3: custom_id 'r1' is there twice");
  EXPECT_ERROR(input(""), ErrorCode::kInvalid, "has no request");
  const std::string good = request(1);
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    return text.replace(text.find(from), from.size(), to);
  };
  EXPECT_ERROR(input(with("POST", "GET")), ErrorCode::kInvalid, "must be POST");
  EXPECT_ERROR(input(with("/v1/completions", "/etc/passwd")), ErrorCode::kInvalid, "is none of a batch");
  EXPECT_ERROR(input(with("\"prompt\"", "\"stream\": true, \"prompt\"")), ErrorCode::kInvalid, "asks for a stream");
  EXPECT_ERROR(input(with("\"custom_id\"", "\"extra\": 1, \"custom_id\"")), ErrorCode::kInvalid, "unknown key 'extra'");
  EXPECT_ERROR(input(with("\"custom_id\": \"r1\", ", "")), ErrorCode::kInvalid, "has no custom_id");
  EXPECT_ERROR(read_batch_input(path("none")), ErrorCode::kNotFound, "cannot open");
  EXPECT_ERROR(read_batch_input("/dev/zero"), ErrorCode::kInvalid, "/dev/zero is no regular file");
}

TEST_F(Batch, ALineWithoutEndIsRefusedBeforeItFillsMemory) {
  write_file_atomically(path("in"), request(1));
  std::filesystem::resize_file(path("in"), std::uintmax_t{1} << 40);  // takes no room on disk
  EXPECT_ERROR(read_batch_input(path("in")), ErrorCode::kInvalid, "in:2: is longer than 16 MiB");
}

}  // namespace
}  // namespace yoke::batch

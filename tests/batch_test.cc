// yoke batch with a real engine: killed, continued, refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <set>

#include "tests/lab_fixture.h"
#include "tests/program.h"
#include "yoke/base/clock.h"
#include "yoke/base/error.h"
#include "yoke/base/files.h"
#include "yoke/base/json.h"
#include "yoke/base/text.h"

namespace yoke::tests {
namespace {

using testing::HasSubstr;

std::string batch_requests(int count) {
  std::string text;
  for (int i = 0; i < count; ++i) {
    text += fmt::format(
        "{{\"custom_id\": \"line-{0}\", \"method\": \"POST\", \"url\": \"/v1/completions\", \"body\": {{\"model\": "
        "\"any\", \"prompt\": \"Cable {0} joins\", \"max_tokens\": 8, \"temperature\": 0}}}}\n",
        i);
  }
  return text;
}

std::size_t lines_of(const std::filesystem::path& file) {
  const auto text = try_to([&] { return read_file(file); });
  return text ? static_cast<std::size_t>(std::count(text->begin(), text->end(), '\n')) : 0;
}

TEST(BatchCommand, AKilledBatchLosesNoLineAndAnswersNoneTwice) {
  const ScratchDir scratch;
  const std::string model = kSourceFolder / "models/nano";
  write_file_atomically(scratch.path() / "in.jsonl", batch_requests(40));
  const std::vector<std::string> arguments = {"batch", model, "in.jsonl", "-o", "out.jsonl", "--parallel", "4"};
  for (std::size_t kills = 1; kills <= 2; ++kills) {
    Process batch({.argv = joined({YOKE_PROGRAM}, arguments), .folder = scratch.path()});
    const Deadline deadline = Deadline::after(Seconds{60});
    while (lines_of(scratch.path() / "out.jsonl.partial") < 8 * kills && !deadline.expired()) {
      real_clock().sleep(Seconds{0.005});
    }
    kill(batch.pid(), SIGKILL);
    batch.wait(Deadline::after(Seconds{10}));
  }
  EXPECT_FALSE(std::filesystem::exists(scratch.path() / "out.jsonl"));
  const std::size_t kept = lines_of(scratch.path() / "out.jsonl.partial");
  EXPECT_GE(kept, 16U);
  const Outcome rest = run_yoke(arguments, {.folder = scratch.path(), .timeout = Seconds{120}});
  ASSERT_TRUE(rest.ok()) << rest.err;
  EXPECT_THAT(rest.out, HasSubstr(fmt::format("40 answers, {} of them from an earlier run", kept)));
  std::set<std::string> ids;
  for (const std::string& line : split(read_file(scratch.path() / "out.jsonl"), '\n')) {
    if (line.empty()) continue;
    const Document answer = parse_json(line, "out.jsonl");
    EXPECT_EQ(answer.find("response")->find("status_code")->text, "200") << line;
    EXPECT_TRUE(ids.insert(answer.find("custom_id")->text).second) << "answered twice: " << line;
  }
  EXPECT_EQ(ids.size(), 40U);
  const Outcome again = run_yoke(arguments, {.folder = scratch.path()});
  EXPECT_EQ(again.exit_status, info(ErrorCode::kConflict).exit_status);
}

// On the head node of a lab, whose files are its own: the rank of the other node is killed once an answer is there.
TEST(BatchLab, AKilledRankOfAClusterCostsNoLine) {
  if (const auto why = why_no_labs()) GTEST_SKIP() << *why;
  const TestLab lab;
  std::string requests;
  for (int i = 0; i < 10; ++i) {
    requests +=
        fmt::format(R"({{"custom_id":"line-{0}","method":"POST","url":"/v1/completions","body":{{"model":"any",)"
                    R"("prompt":"Cable {0} joins","max_tokens":300,"temperature":0,"ignore_eos":true}}}})"
                    "\n",
                    i);
  }
  write_file_atomically(lab.folder / "in.jsonl", requests);
  ASSERT_TRUE(lab.put("1", lab.folder / "in.jsonl", "/root/in.jsonl").ok());
  ASSERT_TRUE(lab.put("1", lab.folder / "cluster.yaml", "/root/cluster.yaml").ok());
  const std::string script = fmt::format(
      "cd /root; yoke batch {} in.jsonl -o out.jsonl --parallel 2 --cluster cluster.yaml & batch=$!; "
      "for i in $(seq 1200); do [ -s out.jsonl.partial ] && break; sleep 0.05; done; "
      "ssh spark-2 pkill -KILL -f '[r]ank.engine' && echo killed >&2; wait $batch && cat out.jsonl",
      (kSourceFolder / "models/nano").native());
  const Outcome outcome = lab.exec("1", {"sh", "-c", script}, Seconds{120});
  ASSERT_TRUE(outcome.ok()) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("killed"));
  EXPECT_THAT(outcome.err, HasSubstr("restarting the lost ranks"));
  std::set<std::string> ids;
  int answers = 0;
  for (const std::string& line : split(outcome.out, '\n')) {
    if (!line.starts_with("{")) continue;
    const Document answer = parse_json(line, "out.jsonl");
    EXPECT_EQ(answer.find("response")->find("status_code")->text, "200") << line;
    ids.insert(answer.find("custom_id")->text);
    ++answers;
  }
  EXPECT_EQ(ids.size(), 10U) << outcome.out << outcome.err;
  EXPECT_EQ(answers, 10);
}

TEST(BatchCommand, MistakesAreNamedBeforeAnythingStarts) {
  const ScratchDir scratch;
  write_file_atomically(scratch.path() / "twice", batch_requests(1) + batch_requests(1));
  write_file_atomically(scratch.path() / "good", batch_requests(1));
  const auto batch = [&](std::vector<std::string> arguments) {
    return run_yoke(joined({"batch"}, arguments), {.folder = scratch.path()});
  };
  EXPECT_THAT(batch({"nano", "twice", "-o", "out"}).err, HasSubstr("twice:2: custom_id 'line-0' is there twice"));
  EXPECT_THAT(batch({"nano", "none", "-o", "out"}).err, HasSubstr("cannot open none"));
  EXPECT_THAT(batch({"nano", "good"}).err, HasSubstr("there is no file for the answers"));
  EXPECT_THAT(batch({"good", "-o", "out", "--server", "ftp://x"}).err, HasSubstr("is no address of a server"));
  EXPECT_THAT(batch({"good", "-o", "out", "--server", "http://127.0.0.1:1", "--patience", "0.1s"}).err,
              HasSubstr("start the same command again: 0 answers are kept"));
  EXPECT_THAT(batch({"nothing-here", "good", "-o", "out"}).err, HasSubstr("nothing-here"));
}

}  // namespace
}  // namespace yoke::tests

// What yoke serve says before it starts and while it runs: its check, its unit, its log.
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/lab_fixture.h"
#include "tests/served.h"
#include "yoke/base/json.h"

namespace yoke::tests {
namespace {

using namespace literals;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

TEST(ServeAlone, SaysWhatKeepsItFromStarting) {
  Served first;
  const Outcome second = run_yoke({"serve", kNano, "--port", std::to_string(first.port)},
                                  {.folder = first.scratch.path(), .timeout = 60_s});
  EXPECT_EQ(second.exit_status, info(ErrorCode::kConflict).exit_status) << second.err;
  const Outcome taken = run_yoke({"serve", kNano, "--check", "--port", std::to_string(first.port)},
                                 {.folder = first.scratch.path(), .timeout = 60_s});
  EXPECT_EQ(taken.exit_status, info(ErrorCode::kConflict).exit_status) << taken.out << taken.err;
  const auto keys = first.scratch.path() / "keys";
  write_file_atomically(keys, "alice nonsense\n", {.mode = 0600});
  const Outcome bad_keys = run_yoke({"serve", kNano, "--check", "--port", "0", "--api-key-file", keys.native()},
                                    {.folder = first.scratch.path(), .timeout = 60_s});
  EXPECT_EQ(bad_keys.exit_status, info(ErrorCode::kInvalid).exit_status) << bad_keys.out;
  EXPECT_THAT(bad_keys.err, HasSubstr("NAME SHA256"));
  const Outcome checked =
      run_yoke({"serve", kNano, "--check", "--json", "--port", "0"}, {.folder = first.scratch.path(), .timeout = 60_s});
  const Document found = parse_json(checked.out, "check");
  EXPECT_EQ(at(found, "context").text, "2048");
  EXPECT_GT(std::stod(at(found, "memory_needed_bytes").text), 1e6) << checked.out;
  ASSERT_EQ(at(found, "memory_available_bytes").fields.size(), 1U);
  EXPECT_GT(std::stod(at(found, "memory_available_bytes").fields.front().second.text),
            std::stod(at(found, "memory_needed_bytes").text));
  const Outcome behind = run_yoke({"serve", "--check", "--port", "0", "--upstream",
                                   fmt::format("http://127.0.0.1:{}", first.wait_until_ready().port)},
                                  {.folder = first.scratch.path(), .timeout = 60_s});
  EXPECT_THAT(behind.out, AllOf(HasSubstr("upstream_models: nano\n"), HasSubstr("upstream_state: answers\n")));
}

TEST(ServeAlone, PrintsAUnitWithAllThatWasGiven) {
  const ScratchDir scratch;
  const std::vector<std::string> given = {"serve",
                                          kNano,
                                          "--name",
                                          "my model 100%",
                                          "--port",
                                          "8123",
                                          "--max-running",
                                          "4",
                                          "--max-queue",
                                          "9",
                                          "--cors",
                                          "https://a.example",
                                          "--backend",
                                          "ref",
                                          "--threads",
                                          "1",
                                          "--context",
                                          "512",
                                          "--cluster",
                                          "c d.yaml",
                                          "--request-timeout",
                                          "90s",
                                          "--drain-time",
                                          "10s",
                                          "--cache-type",
                                          "f32",
                                          "--ranks",
                                          "2",
                                          "--transport",
                                          "direct",
                                          "--json"};
  write_file_atomically(scratch.path() / "c d.yaml", "name: x\nnodes: [{ name: a, address: 127.0.0.1 }]\n");
  std::vector<std::string> asked = given;
  asked.insert(asked.begin() + 4, "--unit");
  const Outcome unit = run_yoke(asked, {.folder = scratch.path(), .timeout = 60_s});
  ASSERT_TRUE(unit.ok()) << unit.err;
  EXPECT_THAT(unit.out, HasSubstr("Type=notify"));
  EXPECT_THAT(unit.out, HasSubstr(fmt::format("WorkingDirectory={}\n", scratch.path().native())));
  std::string line = std::filesystem::canonical(YOKE_PROGRAM).native();
  for (const std::string& word : given) {
    line += word == "my model 100%" ? " \"my model 100%%\"" : word == "c d.yaml" ? " \"c d.yaml\"" : " " + word;
  }
  EXPECT_THAT(unit.out, HasSubstr("\nExecStart=" + line + "\n"));
  for (const std::vector<std::string>& more :
       {std::vector<std::string>{"--config", "models.yaml"}, {"--upstream", "http://127.0.0.1:8001", "--no-resume"}}) {
    EXPECT_THAT(run_yoke(joined({"serve", "--unit"}, more), {.folder = scratch.path()}).out,
                HasSubstr(fmt::format(" serve {}\n", fmt::join(more, " "))));
  }
  if (!is_installed("systemd-analyze")) GTEST_SKIP() << "systemd-analyze is not installed";
  const std::string file = scratch.path() / "yoke-serve.service";
  const std::vector<std::string> verify = {"systemd-analyze", "verify", "--recursive-errors=one", file};
  write_file_atomically(file, unit.out);
  const Outcome verified = run({.argv = verify});
  EXPECT_TRUE(verified.ok()) << verified.err << unit.out;
  write_file_atomically(file, unit.out + "[Service]\nRestrat=always\n");
  EXPECT_FALSE(run({.argv = verify}).ok()) << "a wrong key is seen";
}

TEST(ServeAlone, WritesALineForEachRequest) {
  Served served;
  served.wait_until_ready();
  served.post("/v1/completions", R"({"prompt":"A","max_tokens":3,"ignore_eos":true})");
  EXPECT_THAT(served.err_until("(cmpl-", Seconds{10}),
              testing::ContainsRegex("127.0.0.1 POST /v1/completions 200 in [0-9.]+ [mu]?s: [0-9]+ tokens in, 3 out, "
                                     "the first after [0-9.]+ s \\(cmpl-"));
  served.get("/no/such");
  EXPECT_THAT(served.err_until("/no/such", Seconds{10}), HasSubstr("GET /no/such 404 in "));
  EXPECT_THAT(served.err, Not(HasSubstr("GET /ready 200"))) << "what looks every few seconds is not logged";
}

TEST(ServeAlone, ChecksTheMemoryOfEveryNode) {
  if (const auto why = why_no_labs()) GTEST_SKIP() << *why;
  const TestLab lab({"--nodes", "2"});
  const Outcome checked = lab.yoke({"serve", kNano, "--check", "--port", "0"});
  ASSERT_TRUE(checked.ok()) << checked.out << checked.err;
  EXPECT_THAT(checked.out,
              AllOf(HasSubstr("ranks: 2\n"), HasSubstr("memory needed on each node: "),
                    HasSubstr("memory available on spark-1: "), HasSubstr("memory available on spark-2: ")));
}

}  // namespace
}  // namespace yoke::tests

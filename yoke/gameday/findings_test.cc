// Looking for what is wrong, by a program that answers as its first word says.
#include "yoke/gameday/findings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "yoke/base/error.h"
#include "yoke/base/files.h"
#include "yoke/base/result.h"

namespace yoke::gameday {
namespace {

using testing::HasSubstr;

struct Findings : testing::Test {
  // 'clean', 'broken' and 'fails', which gives no answer at all.
  void SetUp() override {
    write_file_atomically(
        scratch.path() / "program",
        fmt::format("#!/bin/sh\n"
                    "broken='{{\"findings\": [{{\"rule\": \"rail-slow\", \"severity\": \"error\", \"what\": \"rail B "
                    "between a and b is slow\", \"fix\": \"new cable\"}}]}}'\n"
                    "clean='{{\"findings\": []}}'\n"
                    "case $1 in\n"
                    "clean) echo \"$clean\"; exit 3 ;;\n"
                    "broken) echo \"$broken\"; exit 1 ;;\n"
                    "fails) echo '{{\"error\": {{\"message\": \"nobody there\"}}}}'; exit 7 ;;\nesac\n"),
        {.mode = 0755});
  }

  ScratchDir scratch;
  std::string written;
  Environment environment{{.program = scratch.path() / "program"}};
  PhaseRun phase_run{environment, {.name = "a", .title = "A"}, [&](std::string_view text) { written += text; }};
};

TEST_F(Findings, AreAnAnswerAndReported) {
  const Document answer = look(phase_run, {"broken"});
  EXPECT_FALSE(is_clean(answer));
  EXPECT_THAT(written, HasSubstr("error rail-slow: rail B between a and b is slow"));
  EXPECT_THAT(written, HasSubstr("fix: new cable"));
  EXPECT_TRUE(is_clean(look(phase_run, {"clean"}))) << "clean without a measurement is an answer too";
}

TEST_F(Findings, NameANodeAndARail) {
  const Document answer = look(phase_run, {"broken"});
  EXPECT_TRUE(all_name(answer, "a", "B"));
  EXPECT_FALSE(all_name(answer, "spark-9", "B"));
  EXPECT_FALSE(all_name(answer, "a", "A"));
  EXPECT_FALSE(all_name(look(phase_run, {"clean"}), "a", "B")) << "nothing found names nothing";
}

TEST_F(Findings, AreNotWhatACommandFailsWith) {
  const auto answer = try_to([&] { return look(phase_run, {"fails"}); });
  ASSERT_FALSE(answer);
  EXPECT_THAT(answer.error().message(), HasSubstr("nobody there"));
}

}  // namespace
}  // namespace yoke::gameday

#include "yoke/gameday/dcgm_answer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "yoke/base/clock.h"
#include "yoke/base/files.h"
#include "yoke/base/process.h"

namespace yoke::gameday {
namespace {

using namespace literals;

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// The form of DCGM 3, with a line before the JSON and the nulls that it leaves in lists.
TEST(DcgmAnswer, OfVersion3IsRead) {
  const DcgmAnswer answer = read_dcgm(R"(Warning: the host engine is older
{ "DCGM GPU Diagnostic" : { "test_categories" : [
  { "category" : "Deployment", "tests" : [
      { "name" : "Denylist", "results" : [ { "gpu_ids" : "0,1,2,3,4,5,6,7", "status" : "PASS" } ] }, null ] },
  { "category" : "Integration", "tests" : [
      { "name" : "PCIe", "results" : [ { "gpu_id" : "0", "status" : "Pass" },
                                       { "gpu_id" : "5", "status" : "Fail", "warnings" : [ "12 replays" ] } ] },
      { "name" : "EUD Test", "results" : [ { "gpu_id" : "0", "status" : "Skip" } ] } ] } ] } })");
  EXPECT_EQ(answer.problem, "");
  EXPECT_FALSE(answer.passed());
  ASSERT_EQ(answer.tests.size(), 3U);
  EXPECT_EQ(answer.tests[1].status, DcgmStatus::kFail);
  EXPECT_THAT(answer.tests[1].says, ElementsAre("GPU 5: 12 replays"));
  EXPECT_EQ(answer.count(DcgmStatus::kSkip), 1);
}

TEST(DcgmAnswer, OfVersion4IsRead) {
  const DcgmAnswer answer =
      read_dcgm(R"({ "DCGM Diagnostic" : { "test_categories" : [ { "category" : "Hardware", "tests" : [
      { "name" : "memory", "results" : [ { "entity_group" : "GPU", "entity_id" : 3, "status" : "Warn",
          "warnings" : [ { "error_id" : 7, "warning" : "one row was remapped" } ] } ],
        "test_summary" : { "status" : "Warn" } },
      { "name" : "software", "results" : [], "test_summary" : { "status" : "Pass" } } ] } ] },
    "entity_groups" : [] })");
  EXPECT_TRUE(answer.passed());
  EXPECT_EQ(answer.count(DcgmStatus::kWarn), 1);
  EXPECT_THAT(answer.tests.at(0).says, ElementsAre("GPU 3: one row was remapped"));
}

// What ran nothing has not passed.
TEST(DcgmAnswer, WithoutAResultSaysWhy) {
  EXPECT_THAT(read_dcgm("").problem, HasSubstr("nothing"));
  EXPECT_THAT(read_dcgm("Error: unable to establish a connection to the specified host: localhost\n").problem,
              HasSubstr("unable to establish a connection"));
  EXPECT_THAT(read_dcgm(R"({"DCGM Diagnostic":{"test_categories":[{"tests":[{"name":"memo)").problem,
              HasSubstr("memo"));
  EXPECT_THAT(read_dcgm(R"({"DCGM Diagnostic":{"runtime_error":"a GPU is lost","test_categories":[]}})").problem,
              HasSubstr("a GPU is lost"));
  EXPECT_THAT(read_dcgm(R"({"DCGM Diagnostic":{}})").problem, HasSubstr("no test"));
  const DcgmAnswer skipped =
      read_dcgm(R"({"DCGM Diagnostic":{"test_categories":[{"tests":[{"name":"a","results":[{"status":"Skip"}]}]}]}})");
  EXPECT_EQ(skipped.problem, "");
  EXPECT_FALSE(skipped.passed());
  EXPECT_FALSE(read_dcgm("[1]").passed());
  EXPECT_FALSE(read_dcgm(R"({"DCGM Diagnostic":[{"tests":7}]})").passed());
}

// A stand-in for dcgmi that prints a whole result in which all has passed, and then does what it is given.
std::string answer_of_dcgmi(const std::string& then) {
  const ScratchDir scratch("dcgmi");
  write_file_atomically(scratch.path() / "dcgmi", "#!/bin/sh\n" + then + "\n", {.mode = 0755});
  const Outcome outcome = run({.argv = {"sh", "-c", dcgm_script({.level = 1, .limit = 1_s, .grace = 1_s})},
                               .environment = {{"PATH", scratch.path().native() + ":" + std::getenv("PATH")}},
                               .timeout = 60_s});
  EXPECT_EQ(outcome.exit_status, 0) << outcome.err;
  return outcome.out;
}
constexpr const char* kPassed =
    R"sh(echo '{"DCGM Diagnostic":{"tests":[{"name":"PCIe","results":[{"status":"Pass"}]}]}}'; )sh";

TEST(DcgmAnswer, OfADiagnosticThatHangsIsThatItDidNotEnd) {
  EXPECT_TRUE(read_dcgm(answer_of_dcgmi(kPassed)).passed());
  for (const std::string hang : {"exec sleep 600", "trap '' TERM; while :; do sleep 0.1; done"}) {
    const Instant start = real_clock().now();
    const DcgmAnswer answer = read_dcgm(answer_of_dcgmi(kPassed + hang));
    EXPECT_THAT(answer.problem, HasSubstr("did not end within 1 s")) << hang;
    EXPECT_FALSE(answer.passed()) << hang;
    EXPECT_LT(to_seconds(real_clock().now() - start).value, 30) << hang;
  }
}

TEST(DcgmAnswer, LinesOfAJobAreSortedByNode) {
  const auto nodes = lines_by_node("b300-1/0 | {\nb300-2/1 | no\nb300-1/0 | a | b\nyoke: something else\n");
  EXPECT_EQ(nodes.at("b300-1"), "{\na | b\n");
  EXPECT_EQ(nodes.at("b300-2"), "no\n");
  EXPECT_THAT(lines_by_node("nothing of it\n"), IsEmpty());
}

}  // namespace
}  // namespace yoke::gameday

#include "yoke/rank/rank_part.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <new>
#include <stdexcept>
#include <string>

#include "yoke/base/check.h"
#include "yoke/base/error.h"

namespace yoke::rank {
namespace {

struct PartEnd {
  int exit_status = 0;
  std::string said;
};

PartEnd end_of(const std::function<void()>& work) {
  testing::internal::CaptureStderr();
  const int status = run_rank_frame(work);
  return {status, testing::internal::GetCapturedStderr()};
}

TEST(RankPart, EndsWithTheStatusAndTheWordsOfWhatWentWrong) {
  const PartEnd good = end_of([] {});
  EXPECT_EQ(good.exit_status, 0);
  EXPECT_EQ(good.said, "");
  const PartEnd lost = end_of([] { throw Error(ErrorCode::kUnavailable, "rank 1 is gone", "a hint"); });
  EXPECT_EQ(lost.exit_status, 7);
  EXPECT_EQ(lost.said, "yoke: rank 1 is gone\n  hint: a hint\n");
  const PartEnd full = end_of([] { throw std::bad_alloc(); });
  EXPECT_EQ(full.exit_status, 9);
  EXPECT_EQ(full.said, "out of memory\n");
  const PartEnd bug = end_of([] { throw std::logic_error("not so"); });
  EXPECT_EQ(bug.exit_status, 70);
  EXPECT_EQ(bug.said, "not so\n");
}

int seen_rank = -1;
std::string seen_task;

struct FarEnd {
  explicit FarEnd(const std::map<std::string, std::string>& environment) {
    for (const auto& [name, value] : environment) setenv(name.c_str(), value.c_str(), 1);
    names = environment;
  }
  ~FarEnd() {
    for (const auto& [name, value] : names) unsetenv(name.c_str());
  }
  PartEnd run(const std::vector<std::string>& arguments) const {
    const RankKind kinds[] = {
        {.name = "look", .started_by = "yoke look", .run = [](const job::RankPlace& place, const Document& task) {
           seen_rank = place.rank;
           seen_task = task.find("colour")->text;
         }}};
    testing::internal::CaptureStderr();
    const int status = run_rank_part(kinds, arguments);
    return {status, testing::internal::GetCapturedStderr()};
  }
  std::map<std::string, std::string> names;
};

TEST(RankPart, RunsTheKindThatItsArgumentNamesWithPlaceAndTask) {
  const FarEnd end({{"RANK", "1"}, {"WORLD_SIZE", "3"}, {kRankTaskVariable, R"({"colour": "blue"})"}});
  const PartEnd good = end.run({"look"});
  EXPECT_EQ(good.exit_status, 0) << good.said;
  EXPECT_EQ(seen_rank, 1);
  EXPECT_EQ(seen_task, "blue");
  const PartEnd wrong = end.run({"lok"});
  EXPECT_EQ(wrong.exit_status, 2);
  EXPECT_EQ(wrong.said, "yoke: there is no kind of rank 'lok'\n  hint: did you mean 'look'?\n");
  EXPECT_EQ(end.run({}).exit_status, 2);
}

TEST(RankPart, SaysWhoStartsItWhereNothingDid) {
  const PartEnd by_hand = FarEnd({}).run({"look"});
  EXPECT_EQ(by_hand.exit_status, 2);
  EXPECT_EQ(by_hand.said, "yoke: 'yoke look' starts rank look, nobody else does\n");
}

TEST(RankPartDeathTest, AFailedCheckNamesItsRank) {
  const FarEnd end({{"RANK", "2"}, {"WORLD_SIZE", "3"}, {kRankTaskVariable, "{}"}});
  const RankKind kinds[] = {{.name = "break",
                             .started_by = "yoke break",
                             .run = [](const job::RankPlace&, const Document&) { YOKE_CHECK_EQ(1, 2); }}};
  EXPECT_DEATH(run_rank_part(kinds, {"break"}), "check failed: 1 == 2: 1 against 2 .*, rank 2\\]");
}

}  // namespace
}  // namespace yoke::rank

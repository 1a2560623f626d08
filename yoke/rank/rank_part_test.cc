#include "yoke/rank/rank_part.h"

#include <gtest/gtest.h>

#include <new>
#include <stdexcept>
#include <string>

#include "yoke/base/error.h"

namespace yoke {
namespace {

struct PartEnd {
  int exit_status = 0;
  std::string said;
};

PartEnd end_of(const std::function<void()>& work) {
  testing::internal::CaptureStderr();
  const int status = run_rank_part(work);
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

}  // namespace
}  // namespace yoke

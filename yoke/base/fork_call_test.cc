#include "yoke/base/fork_call.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "yoke/base/error_testing.h"

namespace yoke {
namespace {

TEST(ForkCall, ExitsWithTheResultOfTheFunction) {
  int here = 0;
  const int status = run_forked([&] {
    here = 1;
    return 7;
  });
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 7);
  EXPECT_EQ(here, 0) << "the function ran in this process";
}

TEST(ForkCall, AnExceptionStaysInTheChild) {
  const pid_t us = getpid();
  const int status = run_forked([]() -> int { throw Error(ErrorCode::kInvalid, "of the child"); });
  EXPECT_EQ(getpid(), us);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 1);
  EXPECT_ERROR(wait_for_child(us), ErrorCode::kInvalid, "cannot wait for process");  // nobody is a child of its own
}

}  // namespace
}  // namespace yoke

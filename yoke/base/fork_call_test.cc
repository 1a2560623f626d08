#include "yoke/base/fork_call.h"

#include <gtest/gtest.h>
#include <signal.h>
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

// As a signal that came before the wait would have it: nothing interrupts a system call, and the child is ended.
TEST(ForkCall, WhoWaitsLooksAgainWithoutASignalToo) {
  const pid_t child = fork_call([] {
    while (true) pause();
    return 0;
  });
  int looks = 0;
  const int status = wait_for_child(child, [&] {
    if (++looks == 3) kill(child, SIGKILL);
  });
  EXPECT_TRUE(WIFSIGNALED(status));
  EXPECT_GE(looks, 3);
  EXPECT_ERROR(wait_for_child(child, [] {}), ErrorCode::kInvalid, "cannot wait for process");
}

}  // namespace
}  // namespace yoke

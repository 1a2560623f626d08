// The entry of all test programs.
#include <gtest/gtest.h>

#include <csignal>

int main(int argc, char** argv) {
  // As in the program itself: a closed pipe or socket is an error to report, not a death.
  std::signal(SIGPIPE, SIG_IGN);
  testing::InitGoogleTest(&argc, argv);
#ifndef YOKE_EMULATED  // "threadsafe" executes the test program again, which an emulator cannot
  testing::GTEST_FLAG(death_test_style) = "threadsafe";
#endif
  return RUN_ALL_TESTS();
}

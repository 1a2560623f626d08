// The entry of all test programs.
#include <gtest/gtest.h>

#include <csignal>
#include <cstdlib>

#include "tests/emulation.h"

int main(int argc, char** argv) {
  // As in the program itself: a closed pipe or socket is an error to report, not a death.
  std::signal(SIGPIPE, SIG_IGN);
  // The captured machines of the tests include parts of each other; captures from elsewhere may not (base/tree_file.h).
  setenv("YOKE_CAPTURE_PARTS", YOKE_SOURCE_DIR "/tests/fixtures", 0);
  testing::InitGoogleTest(&argc, argv);
  // "threadsafe" executes the test program again, and does not know that this may take an emulator.
  if (!yoke::tests::kEmulated) testing::GTEST_FLAG(death_test_style) = "threadsafe";
  return RUN_ALL_TESTS();
}

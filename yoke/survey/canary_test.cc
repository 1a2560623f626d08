#include "yoke/survey/canary.h"

#include <gtest/gtest.h>

namespace yoke::survey {
namespace {

TEST(Canary, ReadsMemoryAtARateThatAMachineCanHave) {
  const spec::MemoryCanary canary = measure_canary();
  if (!canary.read) GTEST_SKIP() << "less than 2 GiB are free";
  EXPECT_GT(canary.read->value, 50e6) << "a sanitizer on a loaded machine is the slowest";
  EXPECT_LT(canary.read->value, 5e12);
  EXPECT_GE(canary.taken, 0);
  EXPECT_LE(canary.taken, 1);
  EXPECT_FALSE(canary.record) << "only the caller keeps records";
}

}  // namespace
}  // namespace yoke::survey

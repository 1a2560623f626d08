#include "yoke/comm/interface_choice.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace yoke::comm {
namespace {

TEST(InterfaceChoice, NamesWhatIsSetAndElseWhoChooses) {
  const char* const first = "YOKE_TEST_IFNAME";
  const char* const second = "YOKE_TEST_HCA";
  EXPECT_EQ(describe_interfaces("NCCL", {first, second}), "interfaces as NCCL chooses");
  setenv(first, "", 1);
  setenv(second, "rocep1s0f0", 1);
  EXPECT_EQ(describe_interfaces("NCCL", {first, second}), "YOKE_TEST_HCA=rocep1s0f0");
  setenv(first, "enp1s0f0np0,enp1s0f1np1", 1);
  EXPECT_EQ(describe_interfaces("NCCL", {first, second}),
            "YOKE_TEST_IFNAME=enp1s0f0np0,enp1s0f1np1, YOKE_TEST_HCA=rocep1s0f0");
  unsetenv(first);
  unsetenv(second);
}

}  // namespace
}  // namespace yoke::comm

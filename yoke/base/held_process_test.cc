#include "yoke/base/held_process.h"

#include <gtest/gtest.h>
#include <signal.h>

#include "yoke/base/error.h"
#include "yoke/base/process.h"

namespace yoke {
namespace {

using namespace literals;

TEST(HeldProcess, IsSignalledAndWaitedFor) {
  Process process({.argv = {"sleep", "60"}});
  const std::optional<ProcessId> id = living_process(process.pid());
  ASSERT_TRUE(id);
  const std::optional<HeldProcess> held = HeldProcess::open(*id);
  ASSERT_TRUE(held);
  EXPECT_EQ(held->pid(), process.pid());
  EXPECT_FALSE(held->has_ended());
  EXPECT_FALSE(held->wait_until_ended(Deadline::after(20_ms)));
  EXPECT_TRUE(held->send(SIGTERM));
  EXPECT_TRUE(held->wait_until_ended(Deadline::after(10_s)));
  EXPECT_EQ(process.wait(Deadline::after(10_s))->signal, SIGTERM);
  EXPECT_FALSE(held->send(SIGTERM)) << "a process that was reaped cannot be signalled";
  EXPECT_FALSE(HeldProcess::open(*id));
}

TEST(HeldProcess, WithAnotherStartIsAnotherProcess) {
  const Process process({.argv = {"sleep", "60"}});
  const std::optional<ProcessId> id = living_process(process.pid());
  ASSERT_TRUE(id);
  EXPECT_FALSE(HeldProcess::open({id->pid, id->started + 1}));
}

}  // namespace
}  // namespace yoke

// What waits on the head of a job, between its nodes' threads and its loop.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "yoke/job/node_channel.h"

namespace yoke::job {
namespace {

using namespace literals;

// A node that sends faster than the head takes in must not fill its memory.
TEST(JobInbox, ASenderWaitsWhileItIsFullAndNothingIsLost) {
  constexpr int kEvents = 100;  // of 1 MiB each, the most that a message has
  Inbox inbox;
  std::atomic<int> pushed = 0;
  std::thread sender([&] {
    for (int i = 0; i < kEvents; ++i) {
      inbox.push(
          {.node = i, .message = {.type = MessageType::kOutput, .payload = std::string(kMaxMessagePayload, 'x')}});
      ++pushed;
    }
  });
  for (const Deadline deadline = Deadline::after(3_s); pushed < 64 && !deadline.expired();) real_clock().sleep(1_ms);
  real_clock().sleep(50_ms);
  EXPECT_LE(pushed, 64) << "64 MiB are the most";
  for (int i = 0; i < kEvents; ++i) {
    const auto event = inbox.pop(Deadline::after(10_s));
    ASSERT_TRUE(event);
    EXPECT_EQ(event->node, i);
  }
  sender.join();
  EXPECT_FALSE(inbox.pop(Deadline::after(0_s)));
}

}  // namespace
}  // namespace yoke::job

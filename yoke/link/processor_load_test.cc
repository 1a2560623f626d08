#include "yoke/link/processor_load.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <thread>

namespace yoke::link {
namespace {

using namespace literals;

TEST(ProcessorLoad, IsReadFromTheKernelsTable) {
  const auto hz = static_cast<double>(sysconf(_SC_CLK_TCK));
  ProcessorTimes times;
  parse_processor_times("cpu  200 100 50 9000 10 7 8 30 0 0\ncpu0 1 2 3\ncpu1 1 2 3\nintr 5\nctxt 7\n", times);
  EXPECT_DOUBLE_EQ(times.busy.value, 350 / hz) << "interrupts are not among it: traffic makes them";
  EXPECT_DOUBLE_EQ(times.stolen.value, 30 / hz);
  EXPECT_EQ(times.cores, 2);
  parse_processor_times("", times);
  parse_processor_times("cpu", times);
  EXPECT_EQ(times.cores, 2);
  parse_processor_times("cpu  5\n", times);
  EXPECT_DOUBLE_EQ(times.busy.value, 5 / hz) << "an older kernel's, cut short";
}

TEST(ProcessorLoad, WhatOthersTakeIsWithoutOurOwn) {
  const ProcessorLoad load{.busy = 3, .stolen = 0.5, .throttled = 0, .cores = 4, .machine = "m"};
  EXPECT_DOUBLE_EQ(taken_share(load, 1), 0.625);
  EXPECT_DOUBLE_EQ(taken_share(load, 9), 0.125) << "never below none";
  EXPECT_DOUBLE_EQ(taken_share({.busy = 1, .throttled = 0.4, .cores = 1}, 1), 0.4);
  EXPECT_DOUBLE_EQ(taken_share({.busy = 9, .cores = 2}, 0), 1);
}

TEST(ProcessorLoad, ThisMachineSeesAProgramThatSpins) {
  std::atomic<bool> enough{false};
  const ProcessorTimes before = read_processor_times();
  std::jthread spinning([&] {
    while (!enough) {
    }
  });
  real_clock().sleep(300_ms);
  const ProcessorLoad load = load_between(before, read_processor_times());
  enough = true;
  EXPECT_GT(load.busy + load.stolen, 0.3);
  EXPECT_GE(load.cores, 1);
  EXPECT_FALSE(load.machine.empty());
}

}  // namespace
}  // namespace yoke::link

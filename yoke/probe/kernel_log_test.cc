#include "yoke/probe/kernel_log.h"

#include <gtest/gtest.h>

#include <fstream>

#include "yoke/base/files.h"
#include "yoke/probe/system_facts.h"

namespace yoke::probe {
namespace {

TEST(KernelLog, EachNumberOfAGpuIsOneEntryWithItsLastLine) {
  const auto xids = parse_xids(
      "[ 8911.2] NVRM: Xid (PCI:0000:1b:00): 79, pid='<unknown>', GPU has fallen off the bus.\n"
      "Nov 18 08:11:02 b300-1 kernel: NVRM: Xid (PCI:0000:2c:00): 13, pid=4711, first\n"
      "Nov 18 08:11:03 b300-1 kernel: NVRM: Xid (PCI:0000:2c:00): 13, pid=4711, second\n"
      "NVRM: Xid (PCI:0000:2c:00): \nNVRM: Xid (PC");
  ASSERT_EQ(xids.size(), 2U);
  EXPECT_EQ(xids[0].number, 79);
  EXPECT_EQ(xids[0].pci_address, "0000:1b:00");
  EXPECT_EQ(xids[1].count, 2);
  EXPECT_NE(xids[1].line.find("second"), std::string::npos);
}

TEST(KernelLog, AHundredMegabytesAreReadAtOnce) {
  std::string log;
  const std::string other = "[ 1.0] usb 1-1: new high-speed device, and many more words about what nobody asked for\n";
  while (log.size() < 100U << 20U) {
    for (int i = 0; i < 500; ++i) log += other;
    log += "[ 1.0] NVRM: Xid (PCI:0000:1b:00): 13, pid=1, name=python3\n";
  }
  const auto xids = parse_xids(log);
  ASSERT_EQ(xids.size(), 1U);
  EXPECT_GT(xids[0].count, 2000);
}

// Marks without a line's end: what is looked at for each of them has a bound.
TEST(KernelLog, AHundredMegabytesInOneLineAreReadAtOnce) {
  std::string log;
  while (log.size() < 100U << 20U) log += "NVRM: Xid (PCI:0000:1b:00): 13, ";
  const auto xids = parse_xids(log);
  ASSERT_EQ(xids.size(), 1U);
  EXPECT_GT(xids[0].count, 3'000'000);
}

// kern.log is kept over restarts, and can be of any size.
TEST(KernelLog, OfALargeFileOnlyTheEndSinceTheLastStartCounts) {
  const ScratchDir scratch("kernel-log");
  const std::string other = "Nov 18 08:11:02 b300-1 kernel: [ 1.0] usb 1-1: new high-speed device, and many words\n";
  const auto xid = [](int number) {
    return "Nov 18 08:11:02 b300-1 kernel: [ 9.0] NVRM: Xid (PCI:0000:1b:00): " + std::to_string(number) + ", pid=1\n";
  };
  for (const std::string start : {"kernel: [    0.000000] Linux version 6.8.0-71-generic (build@host)\n",
                                  "Nov 18 08:11:02 b300-1 kernel: Linux version 6.8.0-71-generic (build@host)\n"}) {
    std::string end = xid(48) + start;
    for (int i = 0; i < 1000; ++i) end += other;
    end += xid(79);
    std::ofstream file(scratch.path() / "kern.log", std::ios::binary);
    file.seekp(std::streamoff{100} << 20);  // 100 MB of zeros, which take no room on the disk
    file << end << std::flush;
    const auto xids = read_xids_of(scratch.path() / "kern.log");
    ASSERT_EQ(xids.size(), 1U) << start;
    EXPECT_EQ(xids[0].number, 79) << start;
  }
  EXPECT_TRUE(read_xids_of(scratch.path() / "none").empty());
  EXPECT_TRUE(read_xids_of(scratch.path()).empty());
}

// A configuration space as lspci -xxxx shows it: ACS behind another extended capability.
TEST(Acs, TheControlRegisterIsFoundInTheConfigurationSpace) {
  std::string space(4096, '\0');
  const auto put = [&](std::size_t at, unsigned value) {
    space[at] = static_cast<char>(value & 0xFFU);
    space[at + 1] = static_cast<char>(value >> 8U);
  };
  put(0x100, 0x0001);  // advanced error reporting
  put(0x102, 0x1482);  // version 2, the next at 0x148
  put(0x148, 0x000d);
  put(0x14a, 0x0001);
  put(0x14e, 0x001d);
  EXPECT_EQ(parse_acs_control(space), 0x1d);
  EXPECT_EQ(parse_acs_control(space.substr(0, 64)), std::nullopt) << "what a user who is not root gets";
  put(0x102, 0x1002);  // the next is itself
  EXPECT_EQ(parse_acs_control(space), std::nullopt);
}

}  // namespace
}  // namespace yoke::probe

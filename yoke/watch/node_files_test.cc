#include "yoke/watch/node_files.h"

#include <gtest/gtest.h>

#include "yoke/watch/engines.h"

namespace yoke::watch {
namespace {

TEST(NodeFiles, GiveProcessorsMemoryAndPressure) {
  MemoryTree tree;
  tree.add_file("/proc/stat",
                "cpu  10 1 5 100 4 0 2 0 0 0\ncpu0 5 0 2 50 2 0 1 0 0 0\ncpu1 5 1 3 50 2 0 1 0\nintr 1\n");
  tree.add_file("/proc/loadavg", "1.25 1.0 0.5 2/300 77\n");
  tree.add_file("/proc/meminfo", "MemTotal:  1000 kB\nMemFree: 10 kB\nMemAvailable: 600 kB\nSwapTotal: 0 kB\n");
  tree.add_file("/proc/pressure/memory",
                "some avg10=0.00 avg60=0.00 avg300=0.00 total=1234\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=99\n");
  CpuSample cpu;
  read_cpu(tree, cpu);
  EXPECT_EQ(cpu.cores, 2);
  EXPECT_EQ(cpu.total, 122);
  EXPECT_EQ(cpu.busy, 18);
  EXPECT_EQ(cpu.load, 1.25);
  MemorySample memory;
  read_memory(tree, memory);
  EXPECT_EQ(memory.available, Bytes{600 * 1024});
  EXPECT_EQ(memory.swap_total, Bytes{0});
  EXPECT_FALSE(memory.swap_free);
  EXPECT_EQ(memory.pressure_some_us, 1234);
  EXPECT_EQ(memory.pressure_full_us, 99);
}

TEST(NodeFiles, OfAnEmptyMachineLeaveEverythingAbsent) {
  const MemoryTree tree;
  MemorySample memory;
  read_memory(tree, memory);
  EXPECT_EQ(memory, MemorySample());
  CpuSample cpu;
  read_cpu(tree, cpu);
  EXPECT_FALSE(cpu.load);
  EXPECT_TRUE(read_disks(tree).empty());
  EXPECT_TRUE(read_interface_counters(tree).empty());
  EXPECT_FALSE(read_tcp_retransmits(tree));
  EXPECT_TRUE(SensorFiles(tree).read(tree).empty());
  EXPECT_TRUE(listening_ports(tree).empty());
}

TEST(NodeFiles, GiveInterfacesWithoutLoopback) {
  MemoryTree tree;
  tree.add_file("/proc/net/dev",
                "Inter-|   Receive                                                |  Transmit\n"
                " face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop ...\n"
                "    lo: 1 1 0 0 0 0 0 0 1 1 0 0 0 0 0 0\n"
                "enp1s0f0np0:123456789 10 1 2 0 0 0 0 987 9 3 4 0 0 0 0\n"
                " broken: 1 2 x\n");
  const std::vector<RailSample> rails = read_interface_counters(tree);
  ASSERT_EQ(rails.size(), 1U);
  EXPECT_EQ(rails[0].interface, "enp1s0f0np0");
  EXPECT_EQ(rails[0].rx_bytes, 123456789);
  EXPECT_EQ(rails[0].rx_errors, 1);
  EXPECT_EQ(rails[0].rx_dropped, 2);
  EXPECT_EQ(rails[0].tx_bytes, 987);
  EXPECT_EQ(rails[0].tx_errors, 3);
  EXPECT_EQ(rails[0].tx_dropped, 4);
}

TEST(NodeFiles, GiveTheRdmaPortInBytes) {
  MemoryTree tree;
  const std::string port = "/sys/class/infiniband/rocep1s0f0/ports/1/";
  tree.add_file(port + "state", "4: ACTIVE\n");
  tree.add_file(port + "rate", "200 Gb/sec (4X HDR)\n");
  tree.add_file(port + "counters/port_rcv_data", "1000\n");
  tree.add_file(port + "counters/symbol_error", "2\n");
  tree.add_file(port + "counters/port_rcv_errors", "3\n");
  tree.add_file(port + "hw_counters/out_of_sequence", "7\n");
  tree.add_file(port + "hw_counters/implied_nak_seq_err", "4\n");
  tree.add_file(port + "counters/port_xmit_wait", "99\n");
  tree.add_file(port + "phys_state", "5: LinkUp\n");
  tree.add_file("/sys/bus/pci/devices/0000:01:00.0/current_link_width", "4\n");
  const RailPlace place{.interface = "x", .rdma_device = "rocep1s0f0", .pci_address = "0000:01:00.0"};
  RailSample rail;
  read_rdma_port(tree, place, rail);
  read_pcie_width(tree, place, rail);
  RailSample slow;
  read_rdma_counters(tree, place, slow);
  copy_rdma_counters(slow, rail);
  EXPECT_EQ(rail.rdma_physical_state, 5);
  EXPECT_EQ(rail.out_of_sequence, 7);
  EXPECT_EQ(rail.implied_naks, 4);
  EXPECT_EQ(rail.transmit_waits, 99);
  EXPECT_EQ(rail.receive_errors, 3);
  EXPECT_FALSE(rail.receive_discards);
  EXPECT_EQ(rail.rdma_state, "ACTIVE");
  EXPECT_EQ(rail.rdma_rate, BitsPerSecond{200e9});
  EXPECT_EQ(rail.rdma_rx_bytes, 4000);
  EXPECT_FALSE(rail.rdma_tx_bytes);
  EXPECT_EQ(rail.rdma_errors, 5);
  EXPECT_EQ(rail.rdma_retransmits, 7);
  EXPECT_EQ(rail.pcie_width, 4);
}

TEST(NodeFiles, GiveSensorsByTheirLabels) {
  MemoryTree tree;
  tree.add_file("/sys/class/hwmon/hwmon0/name", "spbm\n");
  tree.add_file("/sys/class/hwmon/hwmon0/power1_input", "42000000\n");
  tree.add_file("/sys/class/hwmon/hwmon0/power1_label", "gpu\n");
  tree.add_file("/sys/class/hwmon/hwmon1/name", "nvme\n");
  tree.add_file("/sys/class/hwmon/hwmon1/temp1_input", "38850\n");
  tree.add_file("/sys/class/hwmon/hwmon1/temp2_input", "sleeps\n");
  const std::vector<SensorSample> sensors = SensorFiles(tree).read(tree);
  ASSERT_EQ(sensors.size(), 2U);
  EXPECT_EQ(sensors[0].name, "gpu");
  EXPECT_EQ(sensors[0].watts, 42);
  EXPECT_FALSE(sensors[0].celsius);
  EXPECT_NEAR(*sensors[1].celsius, 38.85, 1e-9);
}

TEST(NodeFiles, GiveWholeDisksAndRetransmits) {
  MemoryTree tree;
  tree.add_file(
      "/proc/diskstats",
      " 259 0 nvme0n1 1 0 100 0 1 0 200 0 0 0 0\n 259 1 nvme0n1p1 1 0 50 0 1 0 60 0 0 0 0\n"
      " 8 0 sda 1 0 8 0 1 0 16 0 0 0 0\n 8 1 sda1 1 0 8 0 1 0 16 0 0 0 0\n 7 0 loop0 1 0 8 0 1 0 16 0 0 0 0\n");
  const std::vector<DiskSample> disks = read_disks(tree);
  ASSERT_EQ(disks.size(), 2U);
  EXPECT_EQ(disks[0].read_bytes, 51'200);
  EXPECT_EQ(disks[0].written_bytes, 102'400);
  EXPECT_EQ(disks[1].name, "sda");
  tree.add_file("/proc/net/snmp", "Ip: A B\nIp: 1 2\nTcp: RtoMin RetransSegs OutRsts\nTcp: 200 31 5\n");
  EXPECT_EQ(read_tcp_retransmits(tree), 31);
}

TEST(NodeFiles, GiveThePortsThatAreListenedOn) {
  MemoryTree tree;
  tree.add_file("/proc/net/tcp",
                "  sl  local_address rem_address   st tx_queue\n"
                "   0: 0100007F:1F40 00000000:0000 0A 00000000:00000000\n"
                "   1: 0100007F:D431 0100007F:1F40 01 00000000:00000000\n");
  tree.add_file("/proc/net/tcp6",
                "  sl  local_address                         remote_address                        st\n"
                "   0: 00000000000000000000000000000000:238C 00000000000000000000000000000000:0000 0A 0\n");
  EXPECT_EQ(listening_ports(tree), (std::vector<int>{8000, 9100}));
}

}  // namespace
}  // namespace yoke::watch

// Keeps the hardware that a node shows in step with what is really there: RDMA ports and GIDs with the interfaces of
// the calling thread's network namespace, /proc/meminfo with the node's cgroup, and both with the faults that the lab
// asked for (hardware_faults.h). One runs in every node of a lab.
//
//   watch_hardware({.memory_limit = 512_MiB, .memory_usage_file = …, .meminfo_file = "/run/yoke-lab/meminfo"});
//
// What goes wrong in a pass (a file that cannot be written, a fault file that makes no sense) is logged at debug and
// tried again at the next; the last good faults stay in force. A change arrives in the tree after about 20 ms. The one
// that must know that it has arrived sends SIGHUP and waits until the number in run/yoke-lab/hardware-looks is another.
#pragma once
#include <filesystem>
#include <stop_token>
#include <string_view>

#include "yoke/base/units.h"

namespace yoke::lab {

// Below the node's root: how many times SIGHUP has made the watcher look.
inline constexpr std::string_view kHardwareLooksPath = "/run/yoke-lab/hardware-looks";

enum class WatcherSignals {
  kTake,   // SIGTERM and SIGINT end it, SIGHUP makes it look at once; blocked in this thread meanwhile
  kLeave,  // somebody else's matter; only the stop token ends it
};

struct WatcherOptions {
  std::filesystem::path root = "/";  // the tree is in its sys/, the faults in its run/
  // Memory is looked after where both files are named.
  Bytes memory_limit{};
  std::filesystem::path memory_usage_file = {};  // memory.current or memory.usage_in_bytes, memory.stat beside it
  // What is mounted over /proc/meminfo, written in place. The kernel's own text is read from /proc/meminfo once at the
  // start: the file must hold that, or not be mounted yet.
  std::filesystem::path meminfo_file = {};
  bool split_ports = false;  // breakout optics: each port's links agree on 100 Gb/s
  std::stop_token stop = {};
  WatcherSignals signals = WatcherSignals::kTake;
  Seconds link_period{1};      // besides the kernel's messages; also that of the counters
  Seconds fault_period{0.15};  // how often the fault file is looked at
  Seconds memory_period{0.1};  // a rank that takes a dead one's place asks after about that time
};

// Returns when told to stop. Throws only where it cannot begin (no route socket).
void watch_hardware(const WatcherOptions& options);

}  // namespace yoke::lab

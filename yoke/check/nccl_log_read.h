// How the lines of an NCCL log are read: for nccl_log.cc alone, and the files beside it that share its work. Pure.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "yoke/check/nccl_log.h"

namespace yoke::check {

// What lines are known by. A log may have millions of lines: one pass over a line finds all of these at once.
enum class LogWord {
  kVersion,        // "NCCL version "
  kRanks,          // " nranks "
  kNodes,          // " nNodes "
  kInitStart,      // "Init START"
  kInitComplete,   // "Init COMPLETE"
  kPluginPath,     // "Plugin Path : "
  kOverriding,     // "Subnet-aware routing: overriding dev"
  kListener,       // "ListenerRouting"
  kTreeConnect,    // "ncclTransportTreeConnect"
  kNet,            // "NET/"
  kNetIb,          // "NET/IB"
  kUsingList,      // " : Using ["
  kBootstrap,      // "Bootstrap"
  kRank,           // " rank "
  kNoDevice,       // "NET/IB : No device found"
  kSockets,        // "NET/Socket : Using ["
  kNetwork,        // "Using network "
  kProvider,       // "NET/OFI Selected "
  kVirtualDevice,  // "Made virtual device"
  kPciPath,        // "pciPath="
  kDirectOn,       // "GPU Direct RDMA Enabled"
  kDirectOff,      // "GPU Direct RDMA Disabled"
  kNvls,           // "NVLS multicast support is "
  kCollChannels,   // " coll channels"
  kTrees,          // "Trees ["
  kSetting,        // " set by environment to "
  kPluginFailed,   // what NCCL says when it cannot load a plugin
  kChannel,        // "Channel "
  kRing,           // "Ring "
  kVia,            // " via "
  kQueueNumber,    // " qpn "
  kGid,            // " GID "
  kJobFailed,      // what programs say when a call of NCCL failed or a wait for others was in vain
};
struct LogWords {
  std::uint64_t bits = 0;
  bool has(LogWord word) const { return (bits >> static_cast<unsigned>(word) & 1U) != 0; }
};
LogWords words_in(std::string_view line);

// A line as the job printed it: out of the JSON in which containers keep it, without the colours of a terminal. What it
// returns is a part of the line, or of `made`, which holds it where it had to be made.
std::string_view plain_line(std::string_view line, std::string& made);

// The host of "spark-fb97:23491:23491 [0] NCCL INFO …", given what is before "NCCL": also behind anything that a
// launcher put there ("[1,0]<stdout>:", "[default0]:", "worker-1 | "). "an unnamed host" where there is none.
std::string_view host_before(std::string_view before);

// What a host says of itself: its devices, networks, channels and queues. The words are those of the line.
void read_host(std::string_view line, LogWords words, spec::NcclHost& host);

// How the ranks are joined: rings and trees.
void read_graph(std::string_view line, LogWords words, spec::NcclHost& host, spec::NcclLog& log);

// What nccl-tests prints: its ranks, the rows of its table, its average. Whether the line is one of them.
bool read_nccl_tests(std::string_view line, spec::NcclTestsResult& tests);

// What a job prints that failed in a call of NCCL, or waited for others in vain.
std::vector<std::string_view> failure_words();

// What stands between two texts, or from the first to the end of the line; nothing where `before` is not there.
std::optional<std::string_view> between(std::string_view line, std::string_view before, std::string_view after);
std::optional<int> number_behind(std::string_view line, std::string_view before);

}  // namespace yoke::check

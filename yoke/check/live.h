// Rules over what is happening now: rates of rails, clocks of GPUs, memory as it goes. Those of rule.h look at facts
// and at measurements; `yoke watch` runs the part of them that samples fill in, and these beside. Pure functions: what
// lasts how long before it is shown is the watch's matter (live_pace).
#pragma once
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "yoke/base/units.h"
#include "yoke/spec/finding.h"

namespace yoke::check {

struct LiveRail {
  std::string interface;
  std::string title;  // "rail B of port 0 (enP2p1s0f0np0)"
  std::string group;  // rails of a node that lead to the same peers have the same
  bool works = false;
  std::optional<BitsPerSecond> carried = {};  // in the busier direction
  std::optional<BitsPerSecond> expected = {};
  std::optional<double> errors = {}, retransmits = {};  // since the last sample
  std::optional<double> discards_received = {};         // by the NIC, since the last sample
  std::optional<double> pauses_sent = {};               // pause frames per second
};

struct LiveGpu {
  int index = 0;
  std::optional<int> clock_mhz = {}, temperature_c = {};
  std::vector<std::string> clock_limits = {};
  std::optional<double> thermal_share = {};  // of the time in which heat held the clock down
  std::optional<double> xids = {}, ecc_uncorrected = {};
  std::optional<std::int64_t> xid_last = {};
};

struct LiveEngine {
  std::string kind;
  int port = 0;
  std::optional<std::int64_t> running = {}, waiting = {};
  std::optional<double> tokens_per_second = {};
  std::optional<bool> answers = {};  // the engine's own request for one token, the last that it made
  int restarts = 0;                  // within the last 10 minutes
};

struct LiveNode {
  std::string name;
  std::vector<LiveRail> rails = {};
  std::vector<LiveGpu> gpus = {};
  std::vector<LiveEngine> engines = {};
  bool unified = false, has_gpus = false;
  std::optional<Bytes> memory_available = {};
  std::optional<BytesPerSecond> memory_change = {};  // negative: it is going
  std::optional<double> memory_some = {};            // share of the time in which tasks waited for memory
  std::optional<Bytes> disk_free = {};
};

std::vector<spec::Finding> evaluate_live(const std::vector<LiveNode>& nodes);

// How long something must last before it is a finding, and how long it must be gone before that ends.
struct LivePace {
  std::string_view rule;
  Seconds raise, clear;
  std::string_view about = {};  // empty: a rule of rule.h's table, which says it
};
LivePace live_pace(std::string_view rule);
// Every rule that a watch runs: of rule.h's table, then those of this file.
std::span<const LivePace> live_paces();
bool is_live_rule(std::string_view rule);  // of the table of rule.h

}  // namespace yoke::check

#include "yoke/check/live.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

namespace yoke::check {
namespace {

using namespace literals;

// A rail that moves this part of what it should is busy, one below the other part of its busiest twin is idle.
constexpr double kLiveBusy = 0.2;
constexpr double kLiveIdle = 0.01;
constexpr double kMaxRetransmits = 10;  // of a sample: a lossless fabric has none
constexpr double kMaxDiscards = 10;     // of a sample: likewise
// Guo et al., RDMA over Commodity Ethernet at Scale (SIGCOMM 2016): a slow receiver sends thousands of pause frames a
// second, and a server at a switch that is not overloaded none. A busy fabric pauses all rails alike.
constexpr double kMaxPausesPerSecond = 1000;
constexpr double kMorePausesThanOthers = 10;
constexpr double kMaxThermalShare = 0.1;
constexpr double kMaxPressure = 0.1;
// 34 to 12.7 GiB in 1.5 s was seen on a Spark before it froze.
constexpr double kFallingFast = 1024.0 * 1024 * 1024;  // bytes per second
constexpr double kSecondsLeft = 15;
constexpr Bytes kMinDisk = 10_GiB;
constexpr Bytes kMinModelDisk{50'000'000'000};  // of a machine with GPUs: one model or checkpoint more
constexpr int kMaxRestarts = 2;

// Rules of rule.h's table that samples fill in, with their pace; then those of this file. State that devices report is
// believed at once; what follows from rates must last. A link test moves data over one rail alone for two seconds.
constexpr std::array kPaces = {
    LivePace{"node-unreachable", {0}, {0}},
    LivePace{"ssh-asks", {0}, {0}},
    LivePace{"port-down", {0.9}, {0.9}},
    LivePace{"rail-down", {0.9}, {0.9}},
    LivePace{"interface-missing", {0.9}, {0.9}},
    LivePace{"rdma-down", {1.5}, {0.9}},
    LivePace{"pcie-narrow", {0.9}, {0.9}},
    LivePace{"port-slow", {0.9}, {0.9}},
    LivePace{"memory-low", {0.9}, {1.9}},
    LivePace{"swap-used", {1.9}, {5}},
    LivePace{"clock-skew", {9}, {4}},
    LivePace{"gpu-dead", {0.9}, {0.9}},
    LivePace{"gpu-stuck", {10}, {2}},
    LivePace{"rail-idle", {4}, {1.9}},
    LivePace{"rail-lossy", {1.9}, {5}},
    LivePace{"errors-counted", {0}, {10}},
    LivePace{"rail-losses", {0}, {10}},
    LivePace{"rail-pauses", {0}, {10}},
    LivePace{"gpu-throttled", {1.9}, {1.9}, "heat, a brake or a hardware slowdown holds a GPU's clock down"},
    LivePace{"gpu-xid", {0}, {60}, "the driver reports an error of a GPU (Xid)"},
    LivePace{"gpu-ecc", {0}, {60}, "a GPU counts uncorrectable memory errors"},
    LivePace{"memory-falling", {1.9}, {1.9}, "memory goes so fast that it ends within 15 s"},
    LivePace{"memory-pressure", {9}, {4}, "programs wait for memory more than 10% of the time"},
    LivePace{"disk-full", {4}, {10}, "less than 10 GiB are free on the disk, or 50 GB of a machine with GPUs"},
    LivePace{"engine-silent", {30}, {1.9}, "an engine has requests and makes no token"},
    LivePace{"engine-restarts", {0}, {1.9}, "an engine was started again three times within 10 minutes"},
};
constexpr std::size_t kOfTheTable = 13;  // the first so many are rules of rule.h

bool pauses_more_than_others(const LiveNode& node, const LiveRail& rail) {
  bool has_other = false;
  double least = 0;
  for (const LiveRail& other : node.rails) {
    if (&other == &rail || !other.pauses_sent) continue;
    least = has_other ? std::min(least, *other.pauses_sent) : *other.pauses_sent;
    has_other = true;
  }
  return has_other && rail.pauses_sent.value_or(0) > kMaxPausesPerSecond &&
         *rail.pauses_sent > kMorePausesThanOthers * least;
}

void inspect_nic(const LiveNode& node, const LiveRail& rail, std::vector<spec::Finding>& list) {
  if (rail.discards_received.value_or(0) > kMaxDiscards) {
    list.push_back({.rule = "rail-losses",
                    .severity = spec::Severity::kWarning,
                    .node = node.name,
                    .subject = rail.interface,
                    .what = fmt::format("{} on {} discards packets that arrive", rail.title, node.name),
                    .evidence = fmt::format("{:.0f} packets found no buffer in the NIC (rx_discards_phy) since the "
                                            "last sample",
                                            *rail.discards_received),
                    .consequence = "RDMA sends whole windows again: large all-reduces are slow and uneven",
                    .fix = "PFC and ECN on the same priority on host and switch: 'yoke check' shows them"});
  }
  if (pauses_more_than_others(node, rail)) {
    list.push_back({.rule = "rail-pauses",
                    .severity = spec::Severity::kWarning,
                    .node = node.name,
                    .subject = rail.interface,
                    .what = fmt::format("{} on {} cannot take packets as fast as they come", rail.title, node.name),
                    .evidence = fmt::format("it sends {:.0f} pause frames a second, another rail of the node not a "
                                            "tenth of that",
                                            *rail.pauses_sent),
                    .consequence = "the switch passes the pauses on: ranks of other nodes wait too",
                    .fix = "look for what slows this NIC down: its PCIe link ('yoke probe'), the IOMMU, a busy NUMA "
                           "node"});
  }
}

void inspect_rails(const LiveNode& node, std::vector<spec::Finding>& list) {
  for (const LiveRail& rail : node.rails) {
    if (rail.errors.value_or(0) > 0) {
      list.push_back({.rule = "errors-counted",
                      .severity = spec::Severity::kError,
                      .node = node.name,
                      .subject = rail.interface,
                      .what = fmt::format("{} on {} counts errors", rail.interface, node.name),
                      .evidence = fmt::format("{:.0f} since the last sample", *rail.errors),
                      .consequence = "packets are damaged or lost: slow now and then, and a hang sooner or later",
                      .fix = "clean or replace the cable, and look at the transceivers"});
    }
    if (rail.retransmits.value_or(0) > kMaxRetransmits) {
      list.push_back(
          {.rule = "rail-lossy",
           .severity = spec::Severity::kError,
           .node = node.name,
           .subject = rail.interface,
           .what = fmt::format("{} on {} sends packets again", rail.title, node.name),
           .evidence = fmt::format("{:.0f} sequence errors and timeouts since the last sample", *rail.retransmits),
           .consequence = "RDMA stalls whenever a packet is lost: collectives are slow, and may fail",
           .fix = "look for full queues and pause frames; 'yoke link test' measures the loss"});
    }
    inspect_nic(node, rail, list);
    if (!rail.works || !rail.carried) continue;
    for (const LiveRail& other : node.rails) {
      if (&other == &rail || other.group != rail.group || !other.carried || !other.expected) continue;
      if (other.carried->value < kLiveBusy * other.expected->value) continue;
      if (rail.carried->value >= kLiveIdle * other.carried->value) continue;
      list.push_back({.rule = "rail-idle",
                      .severity = spec::Severity::kError,
                      .node = node.name,
                      .subject = rail.interface,
                      .what = fmt::format("{} on {} is idle while the other rail is busy", rail.title, node.name),
                      .evidence = fmt::format("{} here, {} on {}", yoke::to_string(*rail.carried),
                                              yoke::to_string(*other.carried), other.interface),
                      .consequence = "the cable gives half of what it could",
                      .fix = "does the program use both rails? 'yoke launch env' prints the variables that name them; "
                             "'yoke check' measures both"});
      break;
    }
  }
}

void inspect_gpus(const LiveNode& node, std::vector<spec::Finding>& list) {
  const auto add = [&](const LiveGpu& gpu, const char* rule, spec::Severity severity, std::string what,
                       std::string evidence, std::string consequence, std::string fix) {
    list.push_back({.rule = rule,
                    .severity = severity,
                    .node = node.name,
                    .subject = fmt::format("GPU {}", gpu.index),
                    .what = std::move(what),
                    .evidence = std::move(evidence),
                    .consequence = std::move(consequence),
                    .fix = std::move(fix)});
  };
  for (const LiveGpu& gpu : node.gpus) {
    // A power cap is how a GPU under full load looks; these are not.
    const auto held = std::find_if(gpu.clock_limits.begin(), gpu.clock_limits.end(), [](const std::string& limit) {
      return limit == "thermal" || limit == "hardware slowdown" || limit == "power brake";
    });
    if (held != gpu.clock_limits.end() || gpu.thermal_share.value_or(0) > kMaxThermalShare) {
      std::string evidence = held != gpu.clock_limits.end() ? fmt::format("clock limit: {}", *held) : "";
      if (gpu.thermal_share.value_or(0) > 0) {
        evidence += fmt::format("{}slowed {:.0f}% of the time", evidence.empty() ? "" : "; ", *gpu.thermal_share * 100);
      }
      if (gpu.clock_mhz) evidence += fmt::format("; {} MHz", *gpu.clock_mhz);
      if (gpu.temperature_c) evidence += fmt::format("; {} C", *gpu.temperature_c);
      add(gpu, "gpu-throttled", spec::Severity::kWarning,
          fmt::format("GPU {} of {} is slowed down", gpu.index, node.name), std::move(evidence),
          "the slowest GPU sets the pace of all ranks",
          "clear the air inlets, look at the fans and the room; 'nvidia-smi -q -d PERFORMANCE' lists the reasons");
    }
    if (gpu.xids.value_or(0) > 0) {
      add(gpu, "gpu-xid", spec::Severity::kError,
          fmt::format("the driver reports an error of GPU {} of {}", gpu.index, node.name),
          fmt::format("Xid {}", gpu.xid_last.value_or(0)), "the program that used it has failed, or will",
          "look for the Xid in dmesg and in NVIDIA's list; end the job, then reset the GPU or reboot");
    }
    if (gpu.ecc_uncorrected.value_or(0) > 0) {
      add(gpu, "gpu-ecc", spec::Severity::kError,
          fmt::format("GPU {} of {} counts uncorrectable memory errors", gpu.index, node.name),
          fmt::format("{:.0f} since the last sample", *gpu.ecc_uncorrected), "results may be wrong",
          "end the job; reset the GPU ('nvidia-smi --gpu-reset'); if they come again, the board needs service");
    }
  }
}

void inspect_memory(const LiveNode& node, std::vector<spec::Finding>& list) {
  const auto add = [&](const char* rule, std::string subject, std::string what, std::string evidence,
                       std::string consequence, std::string fix) {
    list.push_back({.rule = rule,
                    .severity = spec::Severity::kWarning,
                    .node = node.name,
                    .subject = std::move(subject),
                    .what = std::move(what),
                    .evidence = std::move(evidence),
                    .consequence = std::move(consequence),
                    .fix = std::move(fix)});
  };
  if (node.memory_available && node.memory_change && node.memory_change->value < -kFallingFast) {
    const double left = static_cast<double>(node.memory_available->value) / -node.memory_change->value;
    if (left < kSecondsLeft) {
      add("memory-falling", "memory", fmt::format("the memory of {} is about to end", node.name),
          fmt::format("{} available, {} less each second: {:.0f} s left", yoke::to_string(*node.memory_available),
                      yoke::to_string(Bytes{static_cast<std::int64_t>(-node.memory_change->value)}), left),
          node.unified ? "the machine freezes until its power is cut" : "the kernel ends some process",
          "end the load that is starting; plan a smaller model or context");
    }
  }
  if (node.memory_some.value_or(0) > kMaxPressure) {
    add("memory-pressure", "memory pressure", fmt::format("programs on {} wait for memory", node.name),
        fmt::format("{:.0f}% of the time (PSI)", *node.memory_some * 100),
        "everything stalls while the kernel looks for pages",
        "end what is not needed; plan a smaller model or context");
  }
  if (node.disk_free && *node.disk_free < (node.has_gpus ? kMinModelDisk : kMinDisk)) {
    add("disk-full", "disk", fmt::format("the disk of {} is nearly full", node.name),
        fmt::format("{} free", yoke::to_string(*node.disk_free)), "downloads, checkpoints and logs fail",
        "remove models or images that are not used ('du -xh / | sort -h | tail')");
  }
}

void inspect_engines(const LiveNode& node, std::vector<spec::Finding>& list) {
  for (const LiveEngine& engine : node.engines) {
    if (engine.restarts > kMaxRestarts) {
      list.push_back({.rule = "engine-restarts",
                      .severity = spec::Severity::kWarning,
                      .node = node.name,
                      .subject = fmt::format("{} at port {}", engine.kind, engine.port),
                      .what = fmt::format("{} on {} is started again and again", engine.kind, node.name),
                      .evidence = fmt::format("{} starts within 10 minutes", engine.restarts),
                      .consequence = "requests fail, and each start may leave memory behind",
                      .fix = "stop what restarts it, and look at the end of its log"});
    }
    if (engine.answers == false) {
      list.push_back({.rule = "engine-silent",
                      .severity = spec::Severity::kError,
                      .node = node.name,
                      .subject = fmt::format("{} at port {}", engine.kind, engine.port),
                      .what = fmt::format("{} on {} does not answer", engine.kind, node.name),
                      .evidence = "no token came for yoke's own request (canary)",
                      .consequence = "clients wait or are refused",
                      .fix = "look at its log; start the engine again"});
      continue;
    }
    if (engine.running.value_or(0) == 0 || engine.tokens_per_second.value_or(1) > 0) continue;
    list.push_back(
        {.rule = "engine-silent",
         .severity = spec::Severity::kError,
         .node = node.name,
         .subject = fmt::format("{} at port {}", engine.kind, engine.port),
         .what = fmt::format("{} on {} has requests and makes no token", engine.kind, node.name),
         .evidence = fmt::format("{} running, {} waiting, 0 tokens/s", *engine.running, engine.waiting.value_or(0)),
         .consequence = "clients wait for ever: a rank hangs, although the server answers /health",
         .fix = "look at its log; start the engine again"});
  }
}

}  // namespace

std::vector<spec::Finding> evaluate_live(const std::vector<LiveNode>& nodes) {
  std::vector<spec::Finding> list;
  for (const LiveNode& node : nodes) {
    inspect_rails(node, list);
    inspect_gpus(node, list);
    inspect_memory(node, list);
    inspect_engines(node, list);
  }
  return list;
}

std::span<const LivePace> live_paces() { return kPaces; }

LivePace live_pace(std::string_view rule) {
  for (const LivePace& pace : kPaces) {
    if (pace.rule == rule) return pace;
  }
  return {rule, {0.9}, {1.9}};
}

bool is_live_rule(std::string_view rule) {
  return std::any_of(kPaces.begin(), kPaces.begin() + kOfTheTable,
                     [&](const LivePace& pace) { return pace.rule == rule; });
}

}  // namespace yoke::check

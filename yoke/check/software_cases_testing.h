// Made machines for the rules about software and settings: see machine_cases_testing.h.
#pragma once
#include "yoke/check/machine_cases_testing.h"

namespace yoke::check {

inline std::vector<RuleCase> software_cases() {
  return {
      {"rail-dead", "NothingPasses",
       [](spec::Survey& f) {
         measure(f, [](spec::RailMeasurement& rail) {
           rail.alone = rail.together = rail.both_ways = {};
           rail.failure = "no connection within 5 s";
         });
       },
       "spark-1", kRailB},
      {"rail-lossy", "OneWay",
       [](spec::Survey& f) {
         measure(f, [](spec::RailMeasurement& rail) {
           rail.messages = 6300;
           rail.resent = rail.from == "spark-2" ? 31 : 2;
           rail.alone = rail.together = rail.both_ways = BitsPerSecond{20e9};
         });
         f.measurement->all_reduce->large_bus_bandwidth = BytesPerSecond{1e9};
       },
       "spark-2", kRailB},
      {"rail-late", "AMillisecond",
       [](spec::Survey& f) {
         measure(f, [](spec::RailMeasurement& rail) {
           rail.latency = Seconds{1e-3};
           rail.alone = rail.together = rail.both_ways = BitsPerSecond{20e9};
         });
       },
       "spark-1", kRailB},
      {"rail-unstable", "SlowEveryOtherTime",
       [](spec::Survey& f) {
         measure(f, [](spec::RailMeasurement& rail) {
           rail.alone = BitsPerSecond{52e9};
           rail.alone_again = BitsPerSecond{96e9};
         });
       },
       "spark-1", kRailB},
      {"rail-unstable", "Collective",
       [](spec::Survey& f) {
         ensure_measured(f);
         f.measurement->all_reduce->large_bus_bandwidth = BytesPerSecond{5e9};
         f.measurement->all_reduce->large_bus_bandwidth_again = BytesPerSecond{20e9};
       },
       ""},
      {"rail-idle", "BesideTheOther",
       [](spec::Survey& f) { measure(f, [](spec::RailMeasurement& rail) { rail.together = BitsPerSecond{1e9}; }); },
       "spark-1", kRailB},
      {"rail-degraded", "ThirteenGigabit",
       [](spec::Survey& f) {
         measure(f, [](spec::RailMeasurement& rail) {
           rail.alone = rail.together = rail.both_ways = BitsPerSecond{13.1e9};
         });
       },
       "spark-1", kRailB},
      {"rail-slow", "SixtyPercent",
       [](spec::Survey& f) {
         measure(
             f, [](spec::RailMeasurement& rail) { rail.alone = rail.together = rail.both_ways = BitsPerSecond{60e9}; });
       },
       "spark-1", kRailB},
      {"rails-share", "OnePathForBoth",
       [](spec::Survey& f) {
         measure(
             f,
             [](spec::RailMeasurement& rail) {
               // Only what spark-2 sends: one node, one finding.
               if (rail.from == "spark-2") rail.together = BitsPerSecond{50e9};
             },
             false);
       }},
      {"collective-failed", "NoResult",
       [](spec::Survey& f) {
         ensure_measured(f);
         f.measurement->all_reduce.reset();
         f.measurement->all_reduce_failure = "rank 1 was lost";
       },
       ""},
      {"collective-slow", "ThreeGigabytes",
       [](spec::Survey& f) {
         ensure_measured(f);
         f.measurement->all_reduce->large_bus_bandwidth = BytesPerSecond{3e9};
       },
       ""},
      {"errors-counted", "Symbols",
       [](spec::Survey& f) {
         ensure_measured(f);
         f.measurement->counters = {{"spark-2", kRailA, "rx_errors", 7}, {"spark-2", kRailA, "rx_dropped", 9}};
       },
       "spark-2", kRailA},
      {"nccl-architecture", "OnlyHopper",
       [](spec::Survey& f) {
         for (spec::SurveyedNode& node : f.nodes) {
           node.machine->nccl.push_back(node.machine->nccl[0]);
         }
         f.nodes[1].machine->nccl[1].architectures = {"sm_90", "sm_100"};
         f.nodes[1].machine->nccl[1].ptx.clear();
       }},
      {"nccl-bad-build", "FromPip",
       [](spec::Survey& f) {
         f.nodes.erase(f.nodes.begin());
         f.nodes[0].paths.clear();
         f.nodes[0].machine->nccl[0].build_id = "a7f420a1beef";
       }},
      {"nccl-no-ring", "RingBefore2307",
       [](spec::Survey& f) {
         f.cluster->fabric->topology = spec::Topology::kRing;
         f.nodes[0].machine->nccl[0].version = f.nodes[1].machine->nccl[0].version = "2.30.7";
         f.nodes[1].machine->nccl[0].version = "2.30.4";
         f.nodes[0].machine->nccl.clear();
       }},
      {"nccl-differs", "OtherBuild", [](spec::Survey& f) { f.nodes[1].machine->nccl[0].build_id = "0123456789"; }},
      {"kernel-no-cma", "Kernel7",
       [](spec::Survey& f) {
         for (spec::SurveyedNode& node : f.nodes) node.machine->kernel = "7.0.0-31-generic";
         f.nodes[0].machine->memory.cma_total = f.nodes[0].machine->memory.cma_free = Bytes{0};  // cured by kho=off
         f.nodes[1].machine->memory.cma_total = Bytes{0};
       }},
      {"kernel-differs", "OneUpdated", [](spec::Survey& f) { f.nodes[1].machine->kernel = "6.17.0-1004-nvidia"; }, ""},
      {"driver-differs", "OneUpdated", [](spec::Survey& f) { f.nodes[1].machine->driver = "580.142"; }, ""},
      {"clock-skew", "Behind", [](spec::Survey& f) { f.nodes[1].clock_ahead = Seconds{-40}; }},
      {"container-no-rdma", "NoDevices", [](spec::Survey& f) { f.nodes[1].machine->containers.inside = "docker"; }},
      {"memlock-low", "EightMebibytes",
       [](spec::Survey& f) {
         f.nodes[1].machine->memlock_unlimited = false;
         f.nodes[1].machine->memlock = Bytes{8 << 20};
       }},
      {"memory-low", "ThreeGibibytes",
       [](spec::Survey& f) { f.nodes[1].machine->memory.available = Bytes{3LL << 30}; }},
      {"swap-used", "NineGibibytes", [](spec::Survey& f) { f.nodes[1].machine->memory.swap_free = Bytes{7LL << 30}; }},
      {"memory-slower", "RailOfItsRecord",
       [](spec::Survey& f) {
         const BytesPerSecond record{212e9};
         f.nodes[0].canary =
             spec::MemoryCanary{.read = BytesPerSecond{205e9}, .record = record, .record_date = "2026-11-02"};
         f.nodes[1].canary =
             spec::MemoryCanary{.read = BytesPerSecond{101e9}, .record = record, .record_date = "2026-11-02"};
       }},
      {"page-cache-held", "ModelJustCopied",
       [](spec::Survey& f) { f.nodes[1].machine->memory.cached = Bytes{90LL << 30}; }},
  };
}

}  // namespace yoke::check

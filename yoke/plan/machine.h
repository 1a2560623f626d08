// The machines of a plan as numbers: per GPU, per node, and what joins them.
//
//   const Machines machines = parse_machines("2xspark");
//   machines.nodes == 2, machines.gpu.bandwidth == 273e9
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "yoke/plan/calibration.h"
#include "yoke/spec/cluster.h"
#include "yoke/spec/hardware_facts.h"
#include "yoke/spec/machine.h"
#include "yoke/spec/memory_fit.h"

namespace yoke::plan {

enum class HardwareClass { kGb10, kHopper, kBlackwell, kBlackwellUltra, kOtherGpu, kCpu };

// How ranks of different nodes exchange.
enum class Exchange { kNccl, kOneShot, kNcclTests, kTcp, kBonded };

struct GpuModel {
  double memory = 0;     // bytes that programs can use
  double bandwidth = 0;  // bytes/s
  double bf16 = 0;       // dense FLOP/s
  double fp8 = 0;
  double fp4 = 0;
  double nvlink = 0;  // bytes/s, one way
  spec::MemoryKind kind = spec::MemoryKind::kGpu;
};

struct Machines {
  std::string text;      // as asked for: "2xspark"
  std::string hardware;  // catalogue name
  const spec::HardwareFacts* facts = nullptr;
  HardwareClass kind = HardwareClass::kOtherGpu;
  int nodes = 1;
  int gpus_per_node = 1;
  GpuModel gpu;
  double link = 0;  // bytes/s of one node into the fabric, all rails, each direction
  double link_latency = 5e-6;
  int rails = 1;
  Exchange exchange = Exchange::kNccl;
  spec::Topology topology = spec::Topology::kDirect;
  double oversubscription = 1;
  std::vector<std::string> notes;            // which figures come from the cluster file or from probed facts
  std::optional<Calibration> measured = {};  // by 'yoke bench calibrate' on these machines
  int gpus() const { return nodes * gpus_per_node; }
};

inline constexpr int kNodesMax = 4096;

// "2xspark", "spark", "2 x xe9780". Error(kUsage) suggests the nearest name.
Machines parse_machines(std::string_view text);
Machines machines_of(const spec::HardwareFacts& facts, int nodes);
// A cluster file's machines: its hardware, its fabric's rates, its compute.
Machines machines_of(const yoke::spec::Cluster& cluster);
// What `yoke probe` said of each node: what is available is what can be used. `nodes` is not empty.
Machines machines_of(const std::vector<yoke::spec::Machine>& nodes);

// Replaces the catalogue's figures by those measured on these machines; make_plan() replaces the constants.
void calibrate(const Calibration& calibration, Machines& machines);

// A link of another rate than the catalogue's. Below 20 Gb/s there is no RoCE: ranks speak TCP.
void set_link_rate(Machines& machines, BitsPerSecond rate);

}  // namespace yoke::plan

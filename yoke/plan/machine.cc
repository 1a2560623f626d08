#include "yoke/plan/machine.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "yoke/base/error.h"
#include "yoke/base/text.h"

namespace yoke::plan {
namespace {

constexpr double kTcpBelow = 20e9 / 8;  // bytes/s
constexpr double kTcpLatency = 150e-6;  // one message over kernel TCP with copies through the host; yoke alone: 60 us

HardwareClass class_of(std::string_view name) {
  if (name == "spark") return HardwareClass::kGb10;
  if (name == "h100" || name == "h200" || name == "h800" || name == "h20") return HardwareClass::kHopper;
  if (name == "b200" || name == "rtx-pro-6000") return HardwareClass::kBlackwell;
  if (name == "b300" || name == "gb300") return HardwareClass::kBlackwellUltra;
  if (name == "cpu") return HardwareClass::kCpu;
  return HardwareClass::kOtherGpu;
}

[[noreturn]] void refuse_name(std::string_view name) {
  const std::vector<std::string> names = spec::hardware_fact_names();
  throw Error(ErrorCode::kUsage, fmt::format("--on: no machine is called '{}'", printable(name, 40)),
              suggest(name, names, "names") + "; 'yoke plan hardware' lists them");
}

}  // namespace

Machines machines_of(const spec::HardwareFacts& facts, int nodes) {
  Machines machines;
  machines.hardware = std::string(facts.hardware->name);
  machines.text = fmt::format("{}x{}", nodes, machines.hardware);
  machines.facts = &facts;
  machines.kind = class_of(facts.hardware->name);
  machines.nodes = nodes;
  machines.gpus_per_node = std::max(facts.hardware->gpus, 1);
  machines.gpu = {.memory = facts.memory.value,
                  .bandwidth = facts.bandwidth.value,
                  .bf16 = facts.bf16.value,
                  .fp8 = facts.fp8.value,
                  .fp4 = facts.fp4.value,
                  .nvlink = facts.nvlink.value / 2,
                  .kind = facts.hardware->gpus == 0 ? spec::MemoryKind::kHost
                          : facts.hardware->unified ? spec::MemoryKind::kUnified
                                                    : spec::MemoryKind::kGpu};
  machines.link = facts.nic_limit.value;
  machines.rails = facts.rails;
  const bool is_spark = machines.kind == HardwareClass::kGb10;
  machines.topology = nodes <= 2 && is_spark   ? spec::Topology::kDirect
                      : is_spark && nodes <= 4 ? spec::Topology::kRing
                                               : spec::Topology::kSwitch;
  if (machines.kind == HardwareClass::kCpu) {
    machines.exchange = Exchange::kTcp;
    machines.link_latency = kTcpLatency;
  }
  return machines;
}

Machines parse_machines(std::string_view text) {
  const std::string wanted(trim(text));
  if (wanted.empty()) {
    throw Error(ErrorCode::kUsage, "--on needs machines", "such as --on 2xspark; 'yoke plan hardware' lists the names");
  }
  int nodes = 1;
  std::string_view name = wanted;
  const auto [end, failure] = std::from_chars(wanted.data(), wanted.data() + wanted.size(), nodes);
  const std::string_view after(end, static_cast<std::size_t>(wanted.data() + wanted.size() - end));
  const std::string_view rest = trim(after);
  const bool counts = end != wanted.data() && rest.size() > 1 && (rest.front() == 'x' || rest.front() == 'X');
  if (counts) {
    if (failure != std::errc{} || nodes < 1 || nodes > kNodesMax) {
      throw Error(ErrorCode::kUsage, fmt::format("--on: '{}' has no sensible number of nodes", printable(wanted, 40)),
                  fmt::format("1 to {}, such as --on 2xspark", kNodesMax));
    }
    name = trim(rest.substr(1));
  } else {
    nodes = 1;
  }
  std::string lower(name);
  for (char& c : lower) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  const spec::HardwareFacts* const facts = spec::find_hardware_facts(lower);
  if (!facts) refuse_name(name);
  Machines machines = machines_of(*facts, nodes);
  machines.text = fmt::format("{}x{}", nodes, lower);
  return machines;
}

void set_link_rate(Machines& machines, BitsPerSecond rate) {
  machines.link = rate.value / 8;
  machines.notes.push_back(fmt::format("link rate {} as given", yoke::to_string(rate)));
  if (machines.link < kTcpBelow) {
    machines.exchange = Exchange::kTcp;
    machines.link_latency = kTcpLatency;
  }
}

void calibrate(const Calibration& calibration, Machines& machines) {
  const bool is_cpu = machines.kind == HardwareClass::kCpu;
  // What the processor's cores read and multiply says nothing about a GPU; the memory that a GPU shares is the same.
  if (calibration.memory > 0 && machines.gpu.kind != spec::MemoryKind::kGpu) machines.gpu.memory = calibration.memory;
  if (is_cpu && calibration.bandwidth > 0) machines.gpu.bandwidth = calibration.bandwidth;
  if (is_cpu && calibration.arithmetic > 0) machines.gpu.bf16 = machines.gpu.fp8 = calibration.arithmetic;
  machines.notes.push_back(fmt::format("measured here: 'yoke bench calibrate' of {} on {}", calibration.name,
                                       calibration.time.substr(0, 16)));
  if (!is_cpu) {
    machines.notes.emplace_back(
        "the GPU's own rates were not measured: yoke has no kernels for it, so constants of "
        "decoding stay the published ones");
  }
  machines.measured = calibration;
}

Machines machines_of(const yoke::spec::Cluster& cluster) {
  const auto nodes = static_cast<int>(cluster.nodes.size());
  const bool is_lab = cluster.lab.has_value();
  const spec::HardwareFacts* const facts = spec::find_hardware_facts(is_lab             ? "cpu"
                                                                     : cluster.hardware ? *cluster.hardware
                                                                                        : std::string("cpu"));
  Machines machines = machines_of(*facts, std::max(nodes, 1));
  machines.text = cluster.name;
  if (!cluster.hardware && !is_lab) {
    machines.notes.emplace_back(
        "the cluster file names no hardware: counted as plain processors; "
        "'hardware: spark' or probed facts make it better");
  }
  if (is_lab) machines.notes.emplace_back("a lab: its nodes are this machine's processor and share its memory bus");
  if (cluster.fabric) {
    machines.topology = cluster.fabric->topology;
    if (cluster.fabric->rail_rate) {
      const int rails =
          std::max(facts->hardware->rails_per_cable, static_cast<int>(cluster.nodes.front().rails.size()));
      // A ring's four rails and a mesh's three share what the NIC carries.
      const spec::Hardware* hardware = cluster.hardware ? spec::find_hardware(*cluster.hardware) : nullptr;
      const double carried = hardware ? std::min<double>(rails, spec::rails_of_nic(*hardware)) : rails;
      set_link_rate(machines, {cluster.fabric->rail_rate->value * carried});
    }
  }
  if (cluster.compute && cluster.compute->memory_bandwidth) {
    machines.gpu.bandwidth = cluster.compute->memory_bandwidth->value;
    machines.notes.push_back(
        fmt::format("memory bandwidth {} from the cluster file", yoke::to_string(*cluster.compute->memory_bandwidth)));
  }
  return machines;
}

Machines machines_of(const std::vector<yoke::spec::Machine>& nodes) {
  const yoke::spec::Machine& first = nodes.front();
  const spec::HardwareFacts* facts =
      first.gpus.empty() ? nullptr : spec::find_hardware_facts_by_gpu(first.gpus.front().name);
  const bool is_known = facts != nullptr;
  if (!facts) facts = spec::find_hardware_facts("cpu");
  Machines machines = machines_of(*facts, static_cast<int>(nodes.size()));
  machines.text = fmt::format("{} probed node{}", nodes.size(), nodes.size() == 1 ? "" : "s");
  if (!is_known && !first.gpus.empty()) {
    machines.notes.push_back(fmt::format("the GPU '{}' is not catalogued: counted as a plain processor",
                                         printable(first.gpus.front().name, 40)));
  }
  if (is_known) machines.gpus_per_node = static_cast<int>(first.gpus.size());
  double least = 0;
  for (const yoke::spec::Machine& node : nodes) {
    std::optional<double> memory;
    if (machines.gpu.kind != spec::MemoryKind::kGpu) {
      if (const auto seen = node.memory.available ? node.memory.available : node.memory.total) {
        memory = static_cast<double>(seen->value);
      }
    } else {
      for (const spec::Gpu& gpu : node.gpus) {
        if (gpu.memory) memory = std::min(memory.value_or(1e30), static_cast<double>(gpu.memory->value));
      }
    }
    if (memory) least = least == 0 ? *memory : std::min(least, *memory);
  }
  if (least > 0) {
    machines.gpu.memory = least;
    machines.notes.push_back(
        fmt::format("memory {} as probed", yoke::to_string(Bytes{static_cast<std::int64_t>(least)})));
  }
  return machines;
}

}  // namespace yoke::plan

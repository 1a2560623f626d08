// What a plan must know of a machine beyond spec/hardware.h: dense arithmetic rates, power, ports and cables. Every
// figure stands with its source; one that rests on memory or on a single report says so.
//
//   const HardwareFacts& spark = *find_hardware_facts("dell-pro-max");   // also by its maker's name
//   spark.bf16.value == 125e12
#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "yoke/spec/hardware.h"

namespace yoke::spec {

struct Figure {
  double value = 0;  // SI: bytes, bytes/s, FLOP/s, W; 0: the machine has none of it
  std::string_view source;
};

struct ApprovedCable {
  std::string_view part;
  std::string_view length;
  std::string_view source;
};

struct HardwareFacts {
  const Hardware* hardware = nullptr;
  std::span<const std::string_view> aliases;
  // Of one GPU. Rates are dense: without the 2:4 sparsity that data sheets like to count twice.
  Figure memory;
  Figure bandwidth;
  Figure bf16;
  Figure fp8;
  Figure fp4;
  Figure nvlink;  // both directions together, as data sheets have it; 0: none
  Figure gpu_power;
  // Of the whole machine.
  Figure idle_power;
  Figure load_power;
  Figure nic_limit;  // all rails together, bytes/s in each direction
  int rails = 1;     // independent network paths that a plan may use
  int ports = 1;     // cages for cables
  std::span<const ApprovedCable> cables;
  std::span<const std::string_view> remarks;
};

std::span<const HardwareFacts> hardware_facts();        // those that yoke knows well
std::span<const HardwareFacts> other_hardware_facts();  // those of public tables: mostly recalled
// By catalogue name or alias; null when unknown. "cpu" is known here, and not to find_hardware.
const HardwareFacts* find_hardware_facts(std::string_view name);
// By what NVML calls the GPU: "NVIDIA B300 SXM6 AC". Null when unknown.
const HardwareFacts* find_hardware_facts_by_gpu(std::string_view gpu_name);
// How many rails' worth all NICs of such a machine carry together in one direction: 2 on a Spark, however many of its
// four rails are cabled. Infinite where that is not known.
double rails_of_nic(const Hardware& hardware);
std::vector<std::string> hardware_fact_names();  // with aliases, for suggestions

}  // namespace yoke::spec

// The board as a survey, for the rules of check.
#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <cmath>

#include "yoke/spec/survey.h"
#include "yoke/watch/board.h"

namespace yoke::watch {
namespace {

std::string clock_text(double time) {
  const auto seconds = static_cast<time_t>(time);
  tm parts{};
  localtime_r(&seconds, &parts);
  return fmt::format("{:02}:{:02}:{:02}", parts.tm_hour, parts.tm_min, parts.tm_sec);
}

void lay_over(const RailSample& rail, spec::Machine& machine) {
  for (spec::NetworkInterface& interface : machine.interfaces) {
    if (interface.name != rail.interface) continue;
    interface.up = rail.up;
    interface.carrier = rail.carrier;
    if (interface.pcie && rail.pcie_width) interface.pcie->width = *rail.pcie_width;
  }
  for (spec::RdmaDevice& device : machine.rdma_devices) {
    if (device.name != rail.rdma_device) continue;
    if (rail.rdma_state) device.state = *rail.rdma_state;
    if (rail.rdma_rate) device.rate = rail.rdma_rate;
  }
}

spec::Gpu gpu_now(const GpuSample& sample) {
  spec::Gpu gpu;
  if (!sample.lost) gpu.index = sample.index;
  gpu.name = sample.name.value_or("GPU");
  gpu.uuid = sample.uuid;
  gpu.clock_mhz = sample.sm_clock_mhz;
  gpu.clock_mhz_max = sample.sm_clock_max_mhz;
  gpu.power_w = sample.power_w;
  gpu.power_limit_w = sample.power_limit_w;
  gpu.temperature_c = sample.temperature_c;
  gpu.utilization_percent = sample.utilization_percent;
  gpu.clock_limits = sample.clock_limits;
  return gpu;
}

void lay_over(const Sample& sample, spec::Machine& machine) {
  // By the limit of a control group around the sampler there may be less than the kernel says.
  machine.memory.available = sample.memory.available;
  machine.memory.swap_total = sample.memory.swap_total;
  machine.memory.swap_free = sample.memory.swap_free;
  for (const RailSample& rail : sample.rails) lay_over(rail, machine);
  if (sample.gpus.empty()) {
    // Only NVML tells what a GPU does: without it nothing is expected of those on the bus.
    machine.driver.reset();
    return;
  }
  machine.gpus.clear();
  for (const GpuSample& gpu : sample.gpus) {
    machine.gpus.push_back(gpu_now(gpu));
    if (gpu.lost) machine.gpu_problem = fmt::format("GPU {}: {}", gpu.index, *gpu.lost);
  }
  if (!machine.driver) machine.driver = "NVML";
}

spec::NodeFailure failure_of(const BoardNode& node) {
  spec::NodeFailure failure{.kind = spec::NodeFailureKind::kUnreachable};
  if (node.problem && node.problem->needs_login) failure.kind = spec::NodeFailureKind::kAsks;
  if (node.heard) failure.message = fmt::format("the last sample came at {}", clock_text(*node.heard));
  if (node.problem) failure.message += (node.heard ? "; " : "") + node.problem->message;
  failure.hint = node.problem && !node.problem->hint.empty() ? node.problem->hint
                                                             : "is it on, and does its management network work?";
  return failure;
}

}  // namespace

spec::Survey survey_of(const Board& board) {
  spec::Survey survey;
  survey.cluster = board.plan().cluster;
  for (const BoardNode& node : board.nodes()) {
    spec::SurveyedNode surveyed{.name = node.name};
    if (node.silent) {
      surveyed.failure = failure_of(node);
    } else if (node.machine && node.sample) {
      surveyed.machine = node.machine;
      surveyed.clock_ahead = board.clock_ahead(node);
      lay_over(*node.sample, *surveyed.machine);
    } else {
      continue;  // it is being reached: nothing is known, which is no finding
    }
    survey.nodes.push_back(std::move(surveyed));
  }
  return survey;
}

}  // namespace yoke::watch

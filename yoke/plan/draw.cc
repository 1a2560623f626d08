#include "yoke/plan/draw.h"
#include "yoke/plan/scales.h"

#include <algorithm>
#include <cmath>

namespace yoke::plan {
namespace {

constexpr double kSetup = 0.12;           // schedulers, copies, image encoding: seconds an image, planner notes
constexpr double kGb10CopyOverlap = 0.5;  // of K/V traffic that hides behind attention without special kernels

double arithmetic_rate(const DrawCase& c, const Constants& k) {
  const GpuModel& gpu = c.machines.gpu;
  switch (c.machines.kind) {
    case HardwareClass::kGb10:
      return k[c.arithmetic == Arithmetic::kFp4 ? Constant::kImageFp4Gb10 : Constant::kImageBf16Gb10] * kTera;
    case HardwareClass::kCpu:
      return 0.5 * gpu.bf16;
    default:
      break;
  }
  const double peak = c.arithmetic == Arithmetic::kFp8 && gpu.fp8 > 0 ? 0.7 * gpu.fp8 : gpu.bf16;
  return k[c.runner == ImageRunner::kEager ? Constant::kImageEager : Constant::kImageCompiled] * peak;
}

bool has_launches(const DrawCase& c) {
  return c.machines.kind != HardwareClass::kGb10 && c.machines.kind != HardwareClass::kCpu;
}

// Keys and values of every block that a rank must get from the others in a step, BF16.
double step_bytes(const DrawCase& c) {
  const double tokens = spec::image_tokens(c.width, c.height) + static_cast<double>(c.model.text_tokens);
  return static_cast<double>(c.model.blocks) * tokens * static_cast<double>(c.model.width) * 2;
}

}  // namespace

DrawTime draw_time(const DrawCase& c, const Constants& k) {
  const double rate = arithmetic_rate(c, k);
  const double flop = c.steps * spec::step_flop(c.model, c.width, c.height) * c.batch;
  const double pixels = c.width * c.height / (1024.0 * 1024.0);
  DrawTime time;
  const Group group = group_of(c.machines, c.gpus);
  double gain = 1;
  if (group.per_node > 1) {
    gain = group.per_node * std::pow(k[Constant::kImageSplit], std::log2(group.per_node));
    if (c.split == ImageSplit::kRing && group.per_node > 2) gain *= k[Constant::kImageRing];
  }
  gain *= group.nodes;
  time.steps = flop / (rate * gain);
  // Without a compiler one processor thread launches the kernels of each block: a faster GPU, or more of them, waits.
  if (c.runner == ImageRunner::kEager && has_launches(c)) {
    time.steps =
        std::max(time.steps, c.steps * static_cast<double>(c.model.blocks) * k[Constant::kImageEagerBlock] * 1e-3);
  }
  if (group.nodes > 1) {
    const double bytes = c.steps * c.batch * step_bytes(c) * (group.nodes - 1) / group.nodes * 2;
    const double seconds = bytes / bus_rate(c.machines, k);
    time.exchange = seconds * (1 - kGb10CopyOverlap);
  }
  time.encoders = (c.model.encoder_flop + c.model.decoder_flop_1024 * pixels * c.batch) / rate + kSetup;
  return time;
}

double draw_memory(const DrawCase& c) {
  const double bits = c.arithmetic == Arithmetic::kFp4 ? 4.5 : c.arithmetic == Arithmetic::kFp8 ? 8 : 16;
  double bytes = 0;
  for (std::size_t i = 0; i < c.model.parts.size(); ++i) {
    bytes += static_cast<double>(c.model.parts[i].parameters) * (i == 0 ? bits : 16) / 8;
  }
  // Activations of a step, and the VAE's: 128 channels of every pixel several times over in BF16.
  const double tokens = spec::image_tokens(c.width, c.height) + static_cast<double>(c.model.text_tokens);
  return bytes + c.batch * (40 * tokens * std::max<double>(static_cast<double>(c.model.width), 2048) +
                            c.width * c.height * 128 * 2 * 6);
}

}  // namespace yoke::plan

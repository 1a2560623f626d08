// What one GPU must hold, and how far its memory reaches. Whether that fits is decided by spec/memory_fit.h, by which
// the engine refuses too.
#pragma once
#include <optional>

#include "yoke/plan/serve.h"

namespace yoke::plan {

struct MemoryUse {
  double weights = 0;
  double cache = 0;
  double activations = 0;
  double gradients = 0;  // of training
  double optimizer = 0;
  double runtime = 0;  // the engine itself, CUDA's context and graphs, buffers of collectives
  double reserve = 0;  // stays free
  double capacity = 0;
  double remaining = 0;  // negative: so much is missing
  double used() const { return weights + cache + activations + gradients + optimizer + runtime; }
  double left() const { return remaining; }
  bool fits() const { return remaining >= 0; }
};

// Fills capacity, reserve and what remains of a GPU's memory.
void evaluate_memory(MemoryUse& use, const GpuModel& gpu);

// Of the rank with most to hold, for `sequences` sequences of `tokens` tokens in all replicas together.
MemoryUse serve_memory(const ServeCase& c, double tokens, double sequences);

// The longest context of one sequence per replica, and the most sequences of the asked context; 0 where even the
// weights do not fit.
double longest_context(const ServeCase& c);
double most_sequences(const ServeCase& c);

// Bytes that the engine takes for itself on every GPU.
double runtime_bytes(Engine engine, const Machines& machines, int ranks);

}  // namespace yoke::plan

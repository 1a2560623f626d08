// What one GPU must hold to serve, and how far its memory reaches. The one place that says whether a model fits.
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
  double used() const { return weights + cache + activations + gradients + optimizer + runtime; }
  double left() const { return capacity - reserve - used(); }
  bool fits() const { return left() >= 0; }
};

// Of the rank with most to hold, for `sequences` sequences of `tokens` tokens in all replicas together.
MemoryUse serve_memory(const ServeCase& c, double tokens, double sequences);

// The longest context of one sequence per replica, and the most sequences of the asked context; 0 where even the
// weights do not fit.
double longest_context(const ServeCase& c);
double most_sequences(const ServeCase& c);

// Bytes that the engine takes for itself on every GPU.
double runtime_bytes(Engine engine, const Machines& machines, int ranks);

}  // namespace yoke::plan

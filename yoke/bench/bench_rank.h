// What one rank measures on: its communicator, its GPU where that memory is measured, and the plain library that is
// timed in turns with ours.
#pragma once
#include <optional>

#include "yoke/bench/collective_request.h"
#include "yoke/bench/measure_collective.h"
#include "yoke/cuda/driver.h"
#include "yoke/rank/world.h"

namespace yoke::bench {

class BenchRank {
 public:
  // The same call on all ranks: they agree on ids and ports. Throws Error where the machine lacks what is asked for.
  BenchRank(rank::World& world, const RankRequest& request, Seconds timeout);

  const BenchContext& context() const { return context_; }
  const RankFacts& facts() const { return facts_; }
  const BaselineLibrary* baseline() const { return baseline_ ? &*baseline_ : nullptr; }

 private:
  std::optional<BaselineLibrary> baseline_;
  std::optional<cuda::CudaDevice> device_;
  std::optional<cuda::CudaStream> stream_;
  BenchContext context_;
  RankFacts facts_;
};

}  // namespace yoke::bench

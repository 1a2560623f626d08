// What one rank measures on: its communicator, its GPU where that memory is measured, and the plain library that is
// timed in turns with ours.
#pragma once
#include <optional>

#include "yoke/bench/collective_request.h"
#include "yoke/bench/measure_collective.h"
#include "yoke/cuda/driver.h"
#include "yoke/rank/world.h"

namespace yoke {

class RankLane {
 public:
  // The same call on all ranks: they agree on ids and ports. Throws Error where the machine lacks what is asked for.
  RankLane(World& world, const RankRequest& request, Seconds timeout);

  const Lane& lane() const { return lane_; }
  const RankFacts& facts() const { return facts_; }
  const BesideLibrary* beside() const { return beside_ ? &*beside_ : nullptr; }

 private:
  std::optional<BesideLibrary> beside_;
  std::optional<CudaDevice> device_;
  std::optional<CudaStream> stream_;
  Lane lane_;
  RankFacts facts_;
};

}  // namespace yoke

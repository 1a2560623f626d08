// What exchanges the values of a model over a world: its communicator, or, where values lie on a GPU and the world
// carries only the processors' memory, one that copies them there and back.
//
//   ValueCarrier carrier;
//   comm::Communicator& group = carrier.over(world, ops.stream());    // again after each rebuild
#pragma once
#include <optional>

#include "yoke/comm/staged.h"
#include "yoke/rank/world.h"

namespace yoke::rank {

class ValueCarrier {
 public:
  // The world must outlive what this returns, which is good until the next call.
  comm::Communicator& over(World& world, tensor::Stream stream) {
    staged_.reset();
    const bool is_for_processors = &world.comm() == &world.control();
    if (stream.is_cpu() || !is_for_processors || world.place().size == 1) return world.comm();
    return staged_.emplace(world.comm(), world.device());
  }

 private:
  std::optional<comm::StagedCommunicator> staged_;
};

}  // namespace yoke::rank

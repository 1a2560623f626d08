// A world of ranks that are threads of one process (comm/local): no launcher, no death of one without the others, and
// so nothing to recover from.
//
//   auto ranks = make_local(2);
//   auto world = make_local_world(std::move(ranks[0]));   // in the thread of rank 0
#pragma once
#include <memory>

#include "yoke/rank/world.h"

namespace yoke::rank {

std::unique_ptr<World> make_local_world(std::unique_ptr<comm::Communicator> comm);

}  // namespace yoke::rank

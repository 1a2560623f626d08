// Ranks as threads of one process: the slow, obvious backend, and the oracle of the others. The one that comes last to
// an operation carries it out for all, so there is nothing to get wrong but the arithmetic.
//
//   auto ranks = make_local(2);
//   std::thread other([&] { all_reduce(*ranks[1], values_1, count, DType::kF32); });
//   all_reduce(*ranks[0], values_0, count, DType::kF32);
//
// A send waits for its receive. Ending a rank's object is the death of that rank: the others get an error.
#pragma once
#include <memory>
#include <vector>

#include "yoke/comm/communicator.h"

namespace yoke::comm::local {

// One communicator for each rank; each belongs to the one that runs that rank.
std::vector<std::unique_ptr<Communicator>> make_local(int ranks, CommunicatorOptions options = {});

}  // namespace yoke::comm::local

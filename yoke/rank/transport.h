// How a person chooses what carries the data between ranks, on the command line. Threads are ranks of one process; all
// else are carriers of a world.
#pragma once
#include <array>
#include <utility>

#include "yoke/rank/world.h"

namespace yoke {

enum class Transport { kAuto, kDirect, kMpi, kNccl, kThreads };
constexpr auto enum_names(Transport) {
  return std::array{std::pair{"auto", Transport::kAuto}, std::pair{"direct", Transport::kDirect},
                    std::pair{"mpi", Transport::kMpi}, std::pair{"nccl", Transport::kNccl},
                    std::pair{"threads", Transport::kThreads}};
}

constexpr Carrier carrier_of(Transport transport) {
  switch (transport) {
    case Transport::kDirect:
      return Carrier::kDirect;
    case Transport::kMpi:
      return Carrier::kMpi;
    case Transport::kNccl:
      return Carrier::kNccl;
    default:
      return Carrier::kAuto;
  }
}

}  // namespace yoke

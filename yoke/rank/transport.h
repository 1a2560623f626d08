// What carries the data between ranks, as a person chooses it on the command line.
#pragma once
#include <array>
#include <utility>

namespace yoke::rank {

enum class Transport { kAuto, kDirect, kMpi, kNccl, kThreads };
constexpr auto enum_names(Transport) {
  return std::array{std::pair{"auto", Transport::kAuto}, std::pair{"direct", Transport::kDirect},
                    std::pair{"mpi", Transport::kMpi}, std::pair{"nccl", Transport::kNccl},
                    std::pair{"threads", Transport::kThreads}};
}

// Threads are ranks of one process: a world of several processes chooses for itself.
constexpr Transport between_processes(Transport transport) {
  return transport == Transport::kThreads ? Transport::kAuto : transport;
}

}  // namespace yoke::rank

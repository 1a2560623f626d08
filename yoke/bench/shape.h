// How much a collective moves for a size that the user asks for: counts of the buffers, where the parts lie in place,
// and what its bandwidth counts. The same rules as nccl-tests, so that rows can be compared line by line.
#pragma once
#include <cstddef>
#include <string_view>

#include "yoke/comm/communicator.h"

namespace yoke::bench {

struct CollectiveShape {
  std::size_t count = 0;    // the parameter of the operation; per rank where parts are
  std::size_t send = 0;     // elements of the whole send buffer
  std::size_t receive = 0;  // of the whole receive buffer
  // Where this rank's part begins in the one buffer of an in-place operation, in elements.
  std::size_t send_in_place = 0;
  std::size_t receive_in_place = 0;
};

// Kinds with one part per rank round each part down to 16 bytes: the printed size may be smaller than asked, and small
// sizes become 0.
CollectiveShape shape_of(comm::CollectiveKind kind, std::size_t bytes, std::size_t element_size, int rank, int ranks);

// The size that a row prints: the larger of both buffers, in bytes.
std::size_t row_bytes(const CollectiveShape& shape, std::size_t element_size);

// In GB/s (1e9 bytes). algbw: bytes of the operation by time; busbw: what the wires carried of it, comparable over
// ranks and kinds.
struct Bandwidth {
  double algorithm = 0;
  double bus = 0;
};
Bandwidth bandwidth_of(comm::CollectiveKind kind, std::size_t count, std::size_t element_size, int ranks,
                       double seconds);

// What a kind needs of the command line, and how nccl-tests calls it.
struct CollectiveTraits {
  comm::CollectiveKind kind;
  std::string_view program;  // "all_reduce_perf"
  bool reduces = false;      // has an operation
  bool has_root = false;
  bool in_place = true;  // all-to-all and send-receive are never in place: their second columns repeat the first
  bool prints_op = false;
};
const CollectiveTraits& traits_of(comm::CollectiveKind kind);

}  // namespace yoke::bench

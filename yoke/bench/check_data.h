// The data of a measured collective: exactly predictable, so that one wrong bit anywhere is counted. Every value is a
// small whole number, for floating types times a power of two, chosen so that the sum over all ranks is exact in the
// element's own type.
//
// An element is table[code], where the code is a hash of the element's position: filling and checking cost one look-up
// an element, whatever the number of ranks.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>

#include "yoke/comm/communicator.h"

namespace yoke::bench {

class CheckData {
 public:
  // For one type and operation; `round` changes all data, so that a stale buffer cannot pass.
  CheckData(tensor::DType type, comm::ReduceOp op, int ranks, std::uint32_t round);

  // What a rank puts into a reduction, and what comes out of it, for elements [first, first + count).
  void fill_input(void* data, std::size_t first, std::size_t count, int rank) const;
  std::int64_t count_wrong_result(const void* data, std::size_t first, std::size_t count) const;

  // What moves unchanged: `source` is the rank that it comes from.
  void fill_moved(void* data, std::size_t first, std::size_t count, int source) const;
  std::int64_t count_wrong_moved(const void* data, std::size_t first, std::size_t count, int source) const;

 private:
  static constexpr std::size_t kCodes = 256;
  using Values = std::array<double, kCodes>;

  std::size_t code_of(std::size_t position, std::uint32_t stream) const;
  Values inputs_of(int rank) const;
  Values results() const;

  tensor::DType type_;
  comm::ReduceOp op_;
  int ranks_;
  std::uint32_t round_;
  int digits_;  // inputs are 0 … digits - 1, times sign and scale
};

}  // namespace yoke::bench

// The arithmetic of collectives on processor memory: what a backend calls once it has everybody's values at hand. That
// are local, direct, and mpi for f16 and bf16; the rest of mpi and all of nccl reduce by themselves (communicator.h).
//
//   const void* parts[] = {of_rank_0, of_rank_1};
//   reduce_into(of_rank_0, parts, count, DType::kBf16, ReduceOp::kSum);   // in place
//
// Pure functions: any thread, no state. Buffers need no alignment.
#pragma once
#include <cstddef>
#include <span>

#include "yoke/comm/communicator.h"
#include "yoke/tensor/dtype.h"

namespace yoke::comm {

// Combines element by element, in the order of `inputs` (at least one), so equal inputs give equal bits everywhere.
// `out` is apart from all inputs or exactly one of them.
//   f32        each addition rounds; max and min give NaN where any input is one
//   f16, bf16  computed in f32, rounded once at the end
//   i8         computed in 32 bits; a sum beyond i8 keeps its low 8 bits
//   i32        a sum beyond i32 keeps its low 32 bits, also on the way to an average
// An average is the sum divided by the number of inputs; integers round toward zero.
void reduce_into(void* out, std::span<const void* const> inputs, std::size_t count, tensor::DType type, ReduceOp op);

// The last step of an average where something else made the sum: divides each element by `ranks` in place.
void divide_by_ranks(void* values, std::size_t count, tensor::DType type, int ranks);

}  // namespace yoke::comm

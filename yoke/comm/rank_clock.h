// How the clocks of ranks compare: each rank asks rank 0 for its time, again and again, and keeps the answer that came
// back soonest. Rank 0's clock was read somewhere in that round trip, so the offset is off by at most half of it.
#pragma once
#include "yoke/comm/communicator.h"
#include "yoke/spec/rank_trace.h"

namespace yoke::comm {

// The same call on all ranks, over a communicator of the processor's memory.
spec::ClockMark compare_clock(Communicator& comm);

}  // namespace yoke::comm

// How large the buffers of a measurement may be: the memory of each host, and of each GPU, is shared by the ranks on
// it. Pure.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "yoke/bench/collective_run.h"

namespace yoke::bench {

// The most bytes of one buffer that fit everywhere; nothing where no memory is known. A quarter of each memory, at most
// 1 GiB, is left to everybody else.
std::optional<std::int64_t> largest_size(const std::vector<RankFacts>& ranks);

}  // namespace yoke::bench

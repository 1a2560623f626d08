// What a rail should carry, and what an all-reduce over it costs a token. Pure.
#pragma once
#include <optional>
#include <string>

#include "yoke/link/link_result.h"
#include "yoke/spec/cluster.h"

namespace yoke::link {

// What one rail should carry: the cluster file's word, else the catalogue's; nothing for a lab without shaping.
std::optional<LinkExpectation> expectation_of(const spec::Cluster& cluster);

// "16 KB in 31.7 us (about 5.07 ms per token of a 70B model, which has 160 all-reduces)"
std::string token_cost(const AllReduceResult& all_reduce);

}  // namespace yoke::link

// What a half should carry, and what an all-reduce over it costs a token. Pure.
#pragma once
#include <optional>
#include <string>

#include "yoke/link/link_result.h"
#include "yoke/spec/cluster.h"

namespace yoke {

// What one half should carry: the cluster file's word, else the catalogue's; nothing for a lab without shaping.
std::optional<LinkExpectation> expectation_of(const Cluster& cluster);

// "a 16 KB all-reduce takes about 31.7 us, so a 70B model over 2 nodes spends 5.07 ms of each token on it"
std::string token_cost(const AllReduceResult& all_reduce);

}  // namespace yoke

// What the numbers of a link test mean: findings, and the sentence about tokens. Pure.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "yoke/link/link_result.h"
#include "yoke/spec/cluster.h"

namespace yoke {

// What one half should carry: the cluster file's word, else the catalogue's; nothing for a lab without shaping.
std::optional<LinkExpectation> expectation_of(const Cluster& cluster);

std::vector<Finding> judge_link_test(const LinkTestResult& result, int mtu_wanted);

// "a 16 KB all-reduce takes about 31.7 us, so a 70B model over 2 nodes spends 5.07 ms of each token on it"
std::string token_cost(const AllReduceResult& all_reduce);

}  // namespace yoke

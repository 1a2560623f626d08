// The pins that every engine needs to use the fast interfaces, and all of them: one file of commented NAME=VALUE lines,
// that a shell and systemd read alike. Pure.
#pragma once
#include <string>
#include <vector>

#include "yoke/link/setup_facts.h"
#include "yoke/spec/cluster.h"

namespace yoke {

inline constexpr const char* kEnvironmentFile = "/etc/yoke/fabric.env";

std::string render_environment(const Cluster& cluster, const ClusterNode& node, const SetupFacts& facts);

}  // namespace yoke

// The pins that every engine needs to use the fast interfaces, and all of them: one file of commented NAME=VALUE lines,
// that a shell and systemd read alike. Pure.
#pragma once
#include <string>
#include <vector>

#include "yoke/link/setup_facts.h"
#include "yoke/spec/cluster.h"

namespace yoke::link {

inline constexpr const char* kEnvironmentFile = "/etc/yoke/fabric.env";

// For login shells and for services of users, where they are wanted ('yoke link setup --shell').
inline constexpr const char* kProfileFile = "/etc/profile.d/yoke-fabric.sh";
inline constexpr const char* kUserServicesFile = "/etc/environment.d/60-yoke-fabric.conf";
enum class ShellPins { kNone, kLogins };

// Lines for a shell that leave a variable alone that is set already.
std::string render_profile(const spec::Cluster& cluster, const spec::ClusterNode& node, const SetupFacts& facts);
// Lines as systemd's environment.d has them.
std::string render_user_services(const spec::Cluster& cluster, const spec::ClusterNode& node, const SetupFacts& facts);
std::string render_environment(const spec::Cluster& cluster, const spec::ClusterNode& node, const SetupFacts& facts);

}  // namespace yoke::link

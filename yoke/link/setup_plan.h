// The steps that make a cluster's network as its file says, node by node. Pure: from the file and what the nodes told.
#pragma once
#include <string>
#include <vector>

#include "yoke/link/environment_file.h"
#include "yoke/link/netplan.h"
#include "yoke/link/setup_facts.h"
#include "yoke/link/step.h"
#include "yoke/spec/cluster.h"

namespace yoke::link {

inline constexpr const char* kSettingsFile = "/etc/sysctl.d/60-yoke.conf";
inline constexpr const char* kLimitsFile = "/etc/security/limits.d/60-yoke.conf";

// In a ring or mesh: how a node reaches addresses of others with which it shares no subnet. Around a ring over the
// shorter way, in a mesh over the link to the node that has the address.
struct FarRoute {
  std::string to;  // "192.168.110.3/32"
  std::string via;
  std::string interface;
};
std::vector<FarRoute> far_routes(const spec::Cluster& cluster, std::size_t node);

// Network, limits, environment and key pair of one node. Throws Error(kInvalid) for a cluster that cannot be set up.
std::vector<Step> node_steps(const spec::Cluster& cluster, std::size_t node, const SetupFacts& facts,
                             ShellPins shell = ShellPins::kNone);

// Who may log in, and whose host keys are known: of all other nodes. A key that is yet to be made is stood for by
// kKeyToCome, for showing.
inline constexpr const char* kKeyToCome = "(the public key that is made first)";
std::vector<Step> ssh_steps(const spec::Cluster& cluster, std::size_t node, const std::vector<SetupFacts>& facts);

}  // namespace yoke::link

// The cluster file: which machines, how they are cabled, what to expect of them. docs/cluster-file.md describes every
// key. Reading validates; printing gives the canonical form, which reads back to the same cluster.
//
//   const Cluster cluster = load_cluster("cluster.yaml");
//   fmt::print("{}", print_cluster(cluster));
#pragma once
#include <array>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "yoke/base/document.h"
#include "yoke/base/ip.h"
#include "yoke/base/units.h"

namespace yoke::spec {

enum class Topology { kDirect, kRing, kMesh, kSwitch };
constexpr auto enum_names(Topology) {
  return std::array{std::pair{"direct", Topology::kDirect}, std::pair{"ring", Topology::kRing},
                    std::pair{"mesh", Topology::kMesh}, std::pair{"switch", Topology::kSwitch}};
}
std::string_view to_string(Topology topology);

// Whether each neighbour is behind another port, so that no rail reaches all nodes by itself.
constexpr bool is_ring_or_mesh(Topology topology) { return topology == Topology::kRing || topology == Topology::kMesh; }

// How many subnets the cabling has for one port of each node: one for each half of each cable. A mesh has one for each
// pair of nodes, as each half of a port is a link of its own.
std::size_t subnet_count(Topology topology, std::size_t nodes, std::size_t rails_per_cable);

// One independent path of a node into the fabric.
struct Rail {
  std::string interface;
  Ipv4Prefix address;
  friend bool operator==(const Rail&, const Rail&) = default;
};

// A cabled rail that is left out on purpose.
struct UnusedRail {
  std::string interface;
  std::string reason;
  friend bool operator==(const UnusedRail&, const UnusedRail&) = default;
};

struct ClusterNode {
  std::string name;
  std::string address;              // where ssh reaches it
  std::optional<std::string> user;  // absent: as ssh decides
  int port = 22;
  std::vector<Rail> rails;  // complete after `yoke link discover`; empty: not known yet
  std::vector<UnusedRail> unused = {};
  friend bool operator==(const ClusterNode&, const ClusterNode&) = default;
};

struct Fabric {
  Topology topology = Topology::kDirect;
  int mtu = 9000;
  std::vector<Ipv4Prefix> subnets;  // one for each half of each cable
  std::optional<BitsPerSecond> rail_rate;
  std::optional<BitsPerSecond> management_rate;
  friend bool operator==(const Fabric&, const Fabric&) = default;
};

// What to expect of one node's arithmetic, where the catalogue does not say.
struct Compute {
  std::optional<BytesPerSecond> memory_bandwidth;
  friend bool operator==(const Compute&, const Compute&) = default;
};

struct Cluster {
  std::string name;
  std::vector<ClusterNode> nodes;       // the first is the head
  std::optional<std::string> hardware;  // a name of the catalogue; absent: to be probed
  std::optional<Fabric> fabric;
  std::optional<Compute> compute;
  std::optional<std::string> lab;  // the nodes are virtual, in this lab of this machine
  friend bool operator==(const Cluster&, const Cluster&) = default;
};

// The first nodes of it as a cluster of their own. A part of a ring or mesh is joined by fewer cables: two nodes by
// one, three of a mesh as a ring.
Cluster first_nodes(Cluster cluster, std::size_t count);

// All throw Error(kInvalid) naming file, line and what to do.
Cluster parse_cluster(std::string_view yaml, std::string_view source);
Cluster load_cluster(const std::filesystem::path& file);
std::string print_cluster(const Cluster& cluster);

Document to_json(const Cluster& cluster);
void from_json(const Document& document, Cluster& cluster);  // validates too

}  // namespace yoke::spec

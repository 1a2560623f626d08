// What is known of a cluster at one moment, as plain data: the machine behind each node, what was tried from it, and
// what was measured between the nodes. yoke/survey gathers it, and `yoke check` keeps it when nothing was
// found wrong; the rules of yoke/check evaluate it.
#pragma once
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "yoke/base/document.h"
#include "yoke/base/ip.h"
#include "yoke/base/units.h"
#include "yoke/spec/cabling.h"
#include "yoke/spec/cluster.h"
#include "yoke/spec/machine.h"
#include "yoke/spec/measurement.h"
#include "yoke/spec/nccl_log.h"

namespace yoke::spec {

// What passes from one of a node's rails to the other end of it. Absent: not tried, or this machine cannot.
struct PathProbe {
  std::string interface;      // of this node
  std::string peer;           // the other node
  Ipv4 peer_address;          // its end of the rail
  int large_size = 0;         // of the whole packet that was tried, in bytes
  std::optional<bool> small;  // a small ping is answered
  std::optional<bool> large;  // one that fills the MTU and may not be cut is answered
  // A TCP connection to a port that nobody serves is refused by the machine, not swallowed or rejected by a filter.
  std::optional<bool> connects;
  std::optional<bool> routed = {};  // a route leads there for a program that binds to no interface, and none discards
  std::vector<std::string> routes = {};  // the interfaces of that route
  friend bool operator==(const PathProbe&, const PathProbe&) = default;
};

// Whether an address of a ring that is on none of the node's cables is reached: through its neighbours.
struct RingProbe {
  std::string peer;
  Ipv4 address;
  std::optional<bool> reached = {};
  std::optional<bool> routed = {};  // as of PathProbe
  std::vector<std::string> routes = {};
  friend bool operator==(const RingProbe&, const RingProbe&) = default;
};

// To what a node's name resolves, asked on another node.
struct NameLookup {
  std::string name;
  std::vector<Ipv4> addresses;  // empty: it does not resolve
  friend bool operator==(const NameLookup&, const NameLookup&) = default;
};

// How fast a machine reads its memory with all cores, and how fast it once did: a machine can become slow in a way that
// none of its own figures show.
struct MemoryCanary {
  std::optional<BytesPerSecond> read;    // the median of a few rounds; absent: asked for, or not measured
  double taken = 0;                      // the share of the processors that other programs took meanwhile
  std::optional<BytesPerSecond> record;  // the best that `yoke check` has seen of this machine
  std::string record_date;               // "2026-11-15"
  friend bool operator==(const MemoryCanary&, const MemoryCanary&) = default;
};

// What `yoke link setup` leaves on every node that it has finished.
inline constexpr std::array<std::string_view, 3> kSetupFiles = {
    "/etc/sysctl.d/60-yoke.conf", "/etc/security/limits.d/60-yoke.conf", "/etc/yoke/fabric.env"};

enum class NodeFailureKind {
  kAsks,         // ssh wants a password or the acceptance of a host key
  kUnreachable,  // no answer
  kOther,        // reached, but the facts could not be had
};

// Why a node could not be looked at.
struct NodeFailure {
  NodeFailureKind kind = NodeFailureKind::kOther;
  std::string message, hint;
  friend bool operator==(const NodeFailure&, const NodeFailure&) = default;
};

struct SurveyedNode {
  std::string name;
  std::optional<Machine> machine;  // absent: see failure
  std::optional<NodeFailure> failure;
  std::vector<PathProbe> paths;
  std::vector<RingProbe> far;
  // Of the kernel, that keep a rail from passing packets on: "net.ipv4.conf.enp1s0f0np0.forwarding = 0".
  std::vector<std::string> ring_settings;
  std::vector<NameLookup> names;
  std::optional<std::string> forward_policy;  // of iptables: "ACCEPT", "DROP"; absent: not known, or no right to ask
  bool forward_accepts = false;               // a rule before the policy lets everything, or the fast interfaces, pass
  std::optional<std::string> forward_drop;    // of nft: the chain and line that drop what is forwarded
  // Rules with other conditions let some of it pass before: whether that is all of the ring's only a trial tells.
  bool forward_exceptions = false;
  std::optional<bool> drops_packets;   // a rule of its packet filter drops or rejects; absent: no right to ask
  std::optional<Seconds> clock_ahead;  // of the head's clock; negative: behind
  std::optional<MemoryCanary> canary;
  std::vector<std::string> setup_files = {};  // those of kSetupFiles that are there
  friend bool operator==(const SurveyedNode&, const SurveyedNode&) = default;
};

struct Survey {
  std::optional<Cluster> cluster;   // absent: machines without a cluster file, such as captures
  std::vector<SurveyedNode> nodes;  // in the cluster file's order
  std::optional<Measurement> measurement;
  // Of a discovery, and of a job's log; not in the JSON, as only a check is kept.
  std::optional<Cabling> cabling;
  std::optional<NcclLog> log;
  friend bool operator==(const Survey&, const Survey&) = default;
};

Document to_json(const Survey& facts);
void from_json(const Document& document, Survey& facts);
Document to_json(const SurveyedNode& node);
void from_json(const Document& document, SurveyedNode& node);

}  // namespace yoke::spec

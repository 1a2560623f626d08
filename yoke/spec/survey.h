// What is known of a cluster at one moment, as plain data: the machine behind each node, what was tried from it, and
// what was measured between the nodes. yoke/survey gathers it, and `yoke check` keeps it when nothing was
// found wrong; the rules of yoke/check judge it.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "yoke/base/document.h"
#include "yoke/base/ip.h"
#include "yoke/base/units.h"
#include "yoke/spec/cabling.h"
#include "yoke/spec/cluster.h"
#include "yoke/spec/machine.h"
#include "yoke/spec/measurement.h"
#include "yoke/spec/nccl_log.h"

namespace yoke {

// What passes from one of a node's halves to the other end of it. Absent: not tried, or this machine cannot.
struct PathTrial {
  std::string interface;      // of this node
  std::string peer;           // the other node
  Ipv4 peer_address;          // its end of the half
  int large_size = 0;         // of the whole packet that was tried, in bytes
  std::optional<bool> small;  // a small ping is answered
  std::optional<bool> large;  // one that fills the MTU and may not be cut is answered
  // A TCP connection to a port that nobody serves is refused by the machine, not swallowed or rejected by a filter.
  std::optional<bool> connects;
  std::optional<bool> routed = {};  // a route leads there for a program that binds to no interface, and none discards
  std::vector<std::string> routes = {};  // the interfaces of that route
  friend bool operator==(const PathTrial&, const PathTrial&) = default;
};

// Whether an address of a ring that is on none of the node's cables is reached: through its neighbours.
struct FarTrial {
  std::string peer;
  Ipv4 address;
  std::optional<bool> reached = {};
  std::optional<bool> routed = {};  // as of PathTrial
  std::vector<std::string> routes = {};
  friend bool operator==(const FarTrial&, const FarTrial&) = default;
};

// To what a node's name resolves, asked on another node.
struct NameTrial {
  std::string name;
  std::vector<Ipv4> addresses;  // empty: it does not resolve
  friend bool operator==(const NameTrial&, const NameTrial&) = default;
};

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
  std::vector<PathTrial> paths;
  std::vector<FarTrial> far;
  // Of the kernel, that keep a half from passing packets on: "net.ipv4.conf.enp1s0f0np0.forwarding = 0".
  std::vector<std::string> ring_settings;
  std::vector<NameTrial> names;
  std::optional<std::string> forward_policy;  // of iptables: "ACCEPT", "DROP"; absent: not known, or no right to ask
  bool forward_accepts = false;               // a rule before the policy lets everything, or the fast interfaces, pass
  std::optional<std::string> forward_drop;    // of nft: the chain and line that drop what is forwarded
  // Rules with other conditions let some of it pass before: whether that is all of the ring's only a trial tells.
  bool forward_exceptions = false;
  std::optional<bool> drops_packets;   // a rule of its packet filter drops or rejects; absent: no right to ask
  std::optional<Seconds> clock_ahead;  // of the head's clock; negative: behind
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
Survey survey_from_json(const Document& document);
Document to_json(const SurveyedNode& node);
SurveyedNode surveyed_node_from_json(const Document& document);

}  // namespace yoke

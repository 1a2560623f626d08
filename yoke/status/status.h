// Where the user stands, and the one command to paste next: evaluated from facts, so that every situation can be
// tested.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "yoke/spec/cluster.h"
#include "yoke/status/milestones.h"

namespace yoke::status {

struct LabSituation {
  std::string name;
  bool is_up = false;
  std::optional<std::string> other_owner;  // another user started it
  bool bare = false;                       // its fast interfaces began without addresses
  std::vector<std::string> nodes_off;
  std::vector<std::string> faults;  // "rail-down on spark-2"
};

struct RunningLab {
  std::string name;
  std::string folder;  // where it was started; empty where that is not known
};

struct Situation {
  std::optional<std::string> file;          // of the cluster, as it was found
  std::optional<std::string> similar_file;  // without one: another file that may be meant
  std::optional<spec::Cluster> cluster;
  std::optional<LabSituation> lab;
  std::vector<RunningLab> running_labs;   // of this user
  std::optional<std::string> on_node;     // "spark-1 of lab 'one'": this very machine
  bool has_fast_ports = false;            // this machine has a ConnectX
  std::vector<std::string> silent_nodes;  // whose ssh port does not answer: "spark-2 (192.168.1.22)"
  Milestones done;
  std::int64_t now = 0;              // seconds since 1970
  std::vector<std::string> options;  // {"--cluster", "desk.yaml"}, as given
};

struct SetupStatus {
  std::string state;              // for scripts: "lab-down", "checked"
  std::string text;               // one sentence or two
  std::vector<std::string> next;  // words of one command
};

SetupStatus evaluate_status(const Situation& situation);

// Looks at the files, labs, ports and records of this machine, and whether the nodes' ssh ports answer (a second at
// most). Changes nothing and logs in nowhere.
Situation inspect_situation(const terminal::Session& session);

std::string ago(std::int64_t seconds);  // "just now", "5 min ago", "3 days ago"

}  // namespace yoke::status

// Nodes for a machine that lets us make no namespaces: each is an sshd of its own on loopback addresses, run as the
// current user, with keys of its own. Programs of a node are told by their environment: YOKE_LAB_TOKEN is the mark by
// which they are found again, a secret of the node's, and `ssh` in their PATH is a script that takes the lab's keys and
// names.
#pragma once
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "yoke/lab/layout.h"

namespace yoke::lab {

inline constexpr const char* kPlainFolderVariable = "YOKE_LAB_FOLDER";  // of the node: <labs>/<lab>/node-<n>
inline constexpr const char* kPlainNodeVariable = "YOKE_LAB_NODE";      // its name
inline constexpr const char* kPlainTokenVariable = "YOKE_LAB_TOKEN";    // marks its processes

// The nodes of lay_out_lab() at 127.77.0.K, with halves at 127.100.0.K and 127.101.0.K, and a port of these addresses
// that is free: 22 where we may have it.
LabLayout lay_out_plain_lab(const LabOptions& options);

std::vector<std::string> missing_in_plain_labs();

// Once the keys are made: the configuration of each node's sshd and ssh.
void write_plain_files(const LabLayout& layout);

// The entry of `yoke lab-plain-node FOLDER NUMBER`.
int run_plain_node(const std::string& lab, int number);

std::string plain_token(const std::string& lab, int node);  // empty where there is no such node

// What it made outside of the lab's folder; once its processes are gone.
void remove_plain_traces(const std::string& lab);

// What a program of the node finds in its environment besides ours.
std::vector<std::pair<std::string, std::string>> plain_environment(const std::string& lab, const LabNode& node);

}  // namespace yoke::lab

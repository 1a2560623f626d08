// The facts of every node of a cluster, asked at once: the program is carried to each and probes there.
#pragma once
#include <vector>

#include "yoke/base/result.h"
#include "yoke/base/units.h"
#include "yoke/spec/cluster.h"
#include "yoke/spec/machine.h"

namespace yoke {

struct ProbeNodesOptions {
  Seconds timeout{20};  // for reaching a node, and again for its answer
};
// In the order of the nodes. One that cannot be asked is its Error; the others are told all the same.
std::vector<Result<Machine>> probe_nodes(const std::vector<ClusterNode>& nodes, const ProbeNodesOptions& options = {});

// What `yoke probe --json` prints of one machine, and back: {"schema": 1, "machine": {…}}.
Document machine_document(const Machine& machine);
Machine machine_from_document(const Document& document);

}  // namespace yoke

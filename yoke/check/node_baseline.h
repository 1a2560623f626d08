// What a node had when it was last found fit: fewer GPUs, NVLinks, rails or memory than that is a fault, also of a
// machine that no catalogue knows. Kept for each host name under the user's data folder.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "yoke/base/document.h"
#include "yoke/base/units.h"
#include "yoke/spec/finding.h"
#include "yoke/spec/machine.h"

namespace yoke::check {

struct NodeBaseline {
  int gpus = 0;
  int nvlinks = 0;  // active ones of all GPUs
  int rails = 0;    // RDMA devices with a link
  std::optional<Bytes> memory;
  friend bool operator==(const NodeBaseline&, const NodeBaseline&) = default;
};
NodeBaseline baseline_of(const spec::Machine& machine);
Document to_json(const NodeBaseline& baseline);
void from_json(const Document& document, NodeBaseline& baseline);

// What is less than it was, as findings of the rule "below-baseline".
std::vector<spec::Finding> find_below_baseline(const std::string& node, const NodeBaseline& now,
                                               const NodeBaseline& before);

// Throws Error(kInvalid) naming the file where it cannot be read.
std::optional<NodeBaseline> recall_baseline(const std::string& node);
void remember_baseline(const std::string& node, const NodeBaseline& baseline);

}  // namespace yoke::check

#include "yoke/fleet/fleet.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>

#include "yoke/base/error.h"
#include "yoke/base/text.h"
#include "yoke/remote/ssh_shell.h"

namespace yoke::fleet {
namespace {

bool is_on_path(std::string_view program) {
  const char* const path = std::getenv("PATH");
  for (const std::string& folder : split(path == nullptr ? "/usr/bin:/bin" : path, ':')) {
    if (access(fmt::format("{}/{}", folder, program).c_str(), X_OK) == 0) return true;
  }
  return false;
}

// What this machine lacks is no fault of the nodes, so it is reported before any of them is asked.
void require_ssh_for(const Node& node, const NodeOptions& options) {
  if (node.is_here() || options.ssh.program != "ssh" || is_on_path("ssh")) return;
  if (remote::slurm_step_on(remote::host_of(node.place()))) return;
  throw Error(ErrorCode::kNotFound, "this machine has no ssh client, by which yoke reaches the nodes",
              "sudo apt-get install openssh-client");
}

}  // namespace

Fleet::Fleet(const std::vector<spec::ClusterNode>& nodes, const NodeOptions& options) {
  for (const spec::ClusterNode& node : nodes) {
    nodes_.push_back(std::make_shared<Node>(node, static_cast<int>(nodes_.size()), options));
    require_ssh_for(*nodes_.back(), options);
  }
}

Fleet::Fleet(const std::vector<spec::ClusterNode>& nodes, const std::vector<int>& places, const NodeOptions& options) {
  for (const int place : places) {
    nodes_.push_back(std::make_shared<Node>(nodes.at(static_cast<std::size_t>(place)), place, options));
    require_ssh_for(*nodes_.back(), options);
  }
}

Node& Fleet::at_place(int place) {
  for (const auto& node : nodes_) {
    if (node->index() == place) return *node;
  }
  throw Error(ErrorCode::kInternal, fmt::format("node {} is not part of this", place));
}

void Fleet::reach_all() {
  all_or_throw(each("", [](Node& node) {
    node.reach();
    return true;
  }));
}

Fleet::~Fleet() {
  for (const auto& node : nodes_) node->begin_end();
}

}  // namespace yoke::fleet

// All nodes of a cluster, each reached once and asked at once: one login, one look for the program and one agent for
// each node and command.
//
//   Fleet fleet(cluster.nodes, {});
//   const auto machines = fleet.each("probing the nodes", [](Node& node) { return probe(node); });
#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "yoke/base/progress.h"
#include "yoke/fleet/at_once.h"
#include "yoke/fleet/node.h"

namespace yoke::fleet {

class Fleet {
 public:
  // Nothing happens yet.
  Fleet(const std::vector<spec::ClusterNode>& nodes, const NodeOptions& options);
  // Only those at these places of the cluster file.
  Fleet(const std::vector<spec::ClusterNode>& nodes, const std::vector<int>& places, const NodeOptions& options);
  Fleet(const Fleet&) = delete;
  Fleet& operator=(const Fleet&) = delete;
  ~Fleet();  // all agents end at once

  std::size_t size() const { return nodes_.size(); }
  Node& operator[](std::size_t index) { return *nodes_[index]; }
  std::shared_ptr<Node> share(std::size_t index) { return nodes_[index]; }
  Node& at_place(int place);  // of the cluster file; must be in the fleet

  // All agents are up, or one Error that names each node that is not reached.
  void reach_all();
  // At once, with a line of progress where a title is given; the function is called with a node, and with its place in
  // this fleet where it takes one, in a thread each.
  template <class Function>
  auto each(std::string_view title, Function function) {
    Progress progress{std::string(title), static_cast<std::int64_t>(size())};
    const WhileWaiting waiting = [&](std::size_t done) {
      progress.update(static_cast<std::int64_t>(done), nodes_[done]->name());
    };
    return at_once(size(), title.empty() ? WhileWaiting() : waiting, [&](std::size_t i) {
      if constexpr (std::is_invocable_v<Function, Node&, std::size_t>) {
        return function(*nodes_[i], i);
      } else {
        return function(*nodes_[i]);
      }
    });
  }

 private:
  std::vector<std::shared_ptr<Node>> nodes_;
};

}  // namespace yoke::fleet

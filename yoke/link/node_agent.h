// The head's end of an agent (agent.h): starts it on a node and asks. One request is under way at a time.
//
//   NodeAgent agent(node, index, AgentRights::kOwn);
//   agent.ask("move", body);                              // begins, on several nodes at once
//   const Document answer = agent.answer(deadline);
#pragma once
#include <memory>
#include <string>

#include "yoke/base/clock.h"
#include "yoke/base/document.h"
#include "yoke/fleet/sudo.h"
#include "yoke/remote/remote_shell.h"
#include "yoke/spec/cluster.h"

namespace yoke {

enum class AgentRights {
  kOwn,   // of the user that ssh logs in
  kRoot,  // by sudo where that user is not root (sudo.h)
};

class NodeAgent {
 public:
  // `index` is the node's place in the cluster file. Throws what keeps the agent from being started.
  // A password is asked for where it is given and sudo wants it.
  NodeAgent(const ClusterNode& node, int index, AgentRights rights, SudoPassword* password = nullptr);

  const std::string& name() const { return name_; }
  // Of an agent with root's rights: the node's address that ssh came in by; empty where it did not.
  const std::string& reached_at() const { return reached_at_; }

  void ask(const std::string& action, const Document& body);
  Document answer(Deadline deadline);  // throws the Error of the far side, with the node's name
  Document call(const std::string& action, const Document& body, Seconds limit);

 private:
  void start(const ClusterNode& node, int index, AgentRights rights, SudoPassword* password);

  std::string name_;
  std::string reached_at_;
  std::unique_ptr<RemoteShell> shell_;
  std::unique_ptr<RemoteProcess> process_;
};

// One for each node, all started at once; what keeps one from starting names all that do not.
std::vector<std::unique_ptr<NodeAgent>> start_agents(const std::vector<ClusterNode>& nodes,
                                                     const std::vector<int>& indices, AgentRights rights,
                                                     SudoPassword* password = nullptr);

}  // namespace yoke

// One node of a cluster, reached once: the login, the rights, the copied program and the agent (yoke/agent/serve.h) are
// found or made at the first use and kept. The machine that we are on has its agent as a child process, without ssh.
//
//   Node node(cluster.nodes[1], 1, {});
//   const Document answer = node.ask("probe", Document::null(), 20_s);
//
// Any thread may ask once the node is reached; until then one thread uses it.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "yoke/agent/action.h"
#include "yoke/base/clock.h"
#include "yoke/base/document.h"
#include "yoke/fleet/connection.h"
#include "yoke/fleet/sudo.h"
#include "yoke/remote/deploy.h"
#include "yoke/remote/ssh_shell.h"
#include "yoke/spec/cluster.h"

namespace yoke::fleet {

struct NodeOptions {
  remote::SshOptions ssh = {};
  agent::AgentRights rights = agent::AgentRights::kOwn;
  SudoPassword* password = nullptr;  // is asked for where it is given and sudo wants it
  // What runs there: this program unless given. Shared by the nodes of a command, so that it is hashed once.
  std::shared_ptr<const remote::ProgramFile> program = std::make_shared<remote::ProgramFile>("/proc/self/exe");
};

class Node {
 public:
  // `index` is the node's place in the cluster file. Nothing happens yet.
  Node(spec::ClusterNode place, int index, NodeOptions options);
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;
  ~Node();

  const std::string& name() const { return place_.name; }
  const spec::ClusterNode& place() const { return place_; }
  int index() const { return index_; }
  bool is_here() const { return is_here_; }

  // Logs in and starts the agent, where that was not done. Throws what keeps it from being so.
  void reach();
  // Only logs in: who we are there.
  const remote::NodeLook& look();
  // ssh let us in: what fails after it is something else.
  bool logged_in() const { return !look_.machine.empty(); }
  // The program's path there; copied where it was missing.
  const std::string& program();
  // The same, but under the user's cache on this machine, too: where it lies alike on all nodes.
  std::string carried_program();

  // Throws what the far side says, or that nothing came of it, with the node's name.
  Document ask(std::string_view action, const Document& question, Seconds limit,
               const std::function<void(std::string_view)>& on_progress = {});
  // The same in two steps, so that several nodes are at work at once.
  std::uint32_t begin(std::string_view action, const Document& question);
  Document answer(std::uint32_t question, Deadline deadline,
                  const std::function<void(std::string_view)>& on_progress = {});
  // A program of the far side whose streams the connection carries.
  std::unique_ptr<remote::RemoteProcess> open(std::string_view action, const Document& question);

  Seconds clock_ahead() const;  // of ours; zero where it is here
  // A command of its own, beside the agent.
  Outcome run(const Command& command);
  // The job of Slurm that we are in and that has this node, where it has ended: all that ran in it has ended with it.
  std::optional<std::string> ended_slurm_job() const;
  // Ends the shared connection of ssh and all that runs over it: for a machine that is dead.
  void disconnect() noexcept;
  void begin_end() noexcept;  // lets the agent go, without waiting for it

 private:
  remote::RemoteShell& shell();
  template <class Work>
  auto at_first(const Work& work);
  Connection& connection();
  std::unique_ptr<remote::RemoteProcess> start_here();
  std::unique_ptr<remote::RemoteProcess> start_there();
  std::unique_ptr<remote::RemoteProcess> start_agent(const std::string& program, bool is_root);

  spec::ClusterNode place_;
  int index_;
  NodeOptions options_;
  bool is_here_;
  remote::NodeLook look_;
  std::unique_ptr<remote::RemoteShell> shell_;
  std::shared_ptr<Connection> connection_;  // shared with channels
};

}  // namespace yoke::fleet

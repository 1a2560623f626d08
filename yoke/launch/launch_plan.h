// What a launch runs on which node, in which order, with which environment. Pure: from the description of an engine,
// the facts of the nodes and the user's options. Renderers (through.h) turn it into scripts and manifests, the launcher
// (run.h) starts it.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "yoke/launch/engine_file.h"
#include "yoke/launch/profile.h"
#include "yoke/spec/fabric_pins.h"

namespace yoke::launch {

struct LaunchNode {
  std::string name;
  std::string own_ip;  // where it meets the others
  // How ssh reaches it: the address whose host key the other nodes know.
  std::string login_address;
  std::string login_user;  // empty: as ssh decides
  int login_port = 22;
  int gpus = 1;  // processes of an engine that takes a GPU each; 1 also where there is none
  bool has_gpu = false;
  bool unified = false;
  std::string gpu_name;  // NVML's, empty: none is known
  int cores = 0;         // 0: not known
  spec::NodePins pins;
  bool rdma = false;  // has RDMA devices
};

struct LaunchOptions {
  std::string model;
  std::string served_name;
  int tensor = 0, pipeline = 0, replicas = 0;  // 0: chosen
  std::int64_t context = 0;                    // 0: left to the engine
  int sequences = 0;
  double utilization = 0;
  std::optional<int> port;
  std::string image;
  std::vector<spec::FabricPin> environment;  // the user's own, which wins
  std::vector<std::string> rest;
  std::string yoke = "yoke";         // how this program is called on the nodes
  std::vector<std::string> modules;  // environment modules of the site
  Profiler profiler = Profiler::kNone;
  std::string profile;  // the folder of traces on every node
  Seconds progress{0};  // training ends that makes no step for so long; 0: steps are not counted
  // Where files that the engine reads are written on every node. In /tmp any user may take a name, so the command adds
  // a secret to it, and files_text() (through.h) refuses a folder that is another user's.
  std::string scratch = "/tmp/yoke-launch";
};

// What a plan of the model says, where there is one.
struct PlannedShape {
  int tensor = 1, pipeline = 1, replicas = 1;
  std::int64_t heads = 0, context_max = 0, sequences_max = 0;
  double memory_share = 0;  // of a GPU's memory that weights, cache and activations may take; 0: not known
};

struct NodeProcess {
  std::string name;
  std::size_t node = 0;
  bool step = false;
  std::vector<std::string> wait_for;  // "192.168.100.2:50052": must answer before this starts
  std::vector<std::string> argv;
};

struct LaunchFile {
  std::string path, text;
};

struct LaunchPlan {
  EngineFile engine;
  LaunchOptions options;
  std::vector<LaunchNode> nodes;                          // the first is the head
  std::vector<NodeProcess> processes;                     // in the order of start
  std::vector<std::vector<spec::FabricPin>> environment;  // of each node
  std::vector<LaunchFile> files;                          // the same on every node
  Variables common;                                       // what the variables are that do not depend on the node
  std::string image;                                      // empty: none is known
  int tensor = 1, pipeline = 1, replicas = 1;
  std::vector<std::string> notes;

  int port(std::string_view name) const;  // 0: the engine has no such port
  std::string api_model() const;          // what the API calls the model
  std::vector<const NodeProcess*> of_node(std::size_t node) const;
  bool several() const { return nodes.size() > 1; }
  bool counts_steps() const { return options.progress.value > 0; }
  bool uses_scratch() const { return !engine.files.empty() || counts_steps(); }
};

// Throws Error(kUsage, kInvalid) for what cannot be: a layout that does not use all GPUs, a tensor parallelism that
// does not divide the heads, a missing model.
LaunchPlan plan_launch(const EngineFile& engine, const LaunchOptions& options, const std::vector<LaunchNode>& nodes,
                       const std::optional<PlannedShape>& shape);

// The same for a renderer with placeholders of its own, such as "$(LWS_WORKER_INDEX)".
std::vector<std::string> process_words(const LaunchPlan& plan, const std::vector<CommandWord>& command,
                                       std::size_t node, const Variables& instead = {});
Variables node_variables(const LaunchPlan& plan, std::size_t node);

}  // namespace yoke::launch

// What `yoke launch` reads before it launches: the engine's description, the nodes' facts, and what a plan says of the
// model.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "yoke/fleet/fleet.h"
#include "yoke/launch/launch_plan.h"
#include "yoke/launch/node_pins.h"
#include "yoke/launch/through.h"
#include "yoke/spec/finding.h"
#include "yoke/terminal/session.h"

namespace yoke::launch {

struct LaunchArguments {
  std::string engine;
  std::optional<std::string> model;
  std::string through = "ssh";
  bool dry_run = false;
  bool unit = false;
  bool no_plan = false;
  bool no_preflight = false;
  bool no_gres = false;
  std::optional<std::string> output;
  std::optional<int> tensor, pipeline, replicas, gpus, port, sequences, restarts;
  std::string context;
  std::optional<double> utilization;
  std::string image, served_name, plan_as, format;
  std::vector<std::string> environment, roots, rest;
  std::string partition, account, time_limit, rdma_resource, folder, modules;
  std::optional<std::string> profile;  // where traces are collected
  std::string profiler = "torch";
  Bytes floor{-1};
  Bytes hugepages{0};
  Seconds pause{30};
  Seconds progress{0};
};

struct LaunchSetting {
  std::optional<spec::Cluster> cluster;  // absent: this machine alone
  std::unique_ptr<fleet::Fleet> fleet;   // absent: captures
  std::vector<spec::Machine> machines;   // of the nodes, in their order
  std::vector<PinnedNode> pinned;
};

// Throws where a node cannot be asked. Captures (`roots`) need a cluster.
LaunchSetting inspect_nodes(std::optional<spec::Cluster> cluster, const LaunchArguments& arguments);
LaunchPlan plan_of(const LaunchArguments& arguments, const LaunchSetting& setting);
ThroughOptions through_options(const LaunchArguments& arguments, const LaunchSetting& setting);

// Findings of the preflight; faults end the launch. The exit status where it does.
std::optional<int> preflight_launch(terminal::Session& session, const LaunchArguments& arguments,
                                    LaunchSetting& setting, const LaunchPlan& plan);
// Modules of --modules that a node cannot load.
std::vector<spec::Finding> module_findings(const LaunchPlan& plan, fleet::Fleet& fleet);
// Prints findings that end a launch, and gives its exit status.
int refuse_launch(terminal::Session& session, const LaunchPlan& plan, const std::vector<spec::Finding>& findings);
// Fetches what the profiler wrote on every node, removes it there, and writes an index page.
void collect_profiles(terminal::Session& session, const std::string& target, LaunchSetting& setting,
                      const LaunchPlan& plan);
int run_launch(terminal::Session& session, const LaunchArguments& arguments, LaunchSetting& setting,
               const LaunchPlan& plan);

}  // namespace yoke::launch

#include "yoke/job/job_environment.h"

#include "yoke/base/result.h"
#include "yoke/base/socket.h"
#include "yoke/job/node_answer.h"
#include "yoke/job/rank_channel.h"

namespace yoke::job {
namespace {

std::string address_for_others(const spec::ClusterNode& node) {
  return node.rails.empty() ? node.address : yoke::to_string(node.rails.front().address.address);
}

}  // namespace

Master choose_master(const std::vector<JobNode>& nodes) {
  Master master{nodes.size() == 1 ? "127.0.0.1" : address_for_others(nodes.front().node), 29500};
  // The head may not be one of the nodes, and then cannot know: torchrun's usual port is as good as any.
  for (const std::string& address : {master.address, std::string("0.0.0.0")}) {
    if (auto socket = try_to([&] { return listen_tcp({address, 0}); })) {
      master.port = socket->local().port;
      break;
    }
  }
  return master;
}

std::vector<RankStart> rank_starts(const JobSpec& spec, std::size_t node, int first_rank, int size,
                                   const Master& master) {
  const JobNode& place = spec.nodes[node];
  std::vector<RailAddress> rails;
  for (std::size_t i = 0; i < place.node.rails.size(); ++i) {
    rails.push_back({rail_name(i), yoke::to_string(place.node.rails[i].address.address)});
  }
  std::vector<RankStart> starts;
  for (int local = 0; local < place.ranks; ++local) {
    const std::string rank = std::to_string(first_rank + local);
    const std::string local_rank = std::to_string(local);
    const std::string world = std::to_string(size);
    const std::string local_world = std::to_string(place.ranks);
    RankStart start{.rank = first_rank + local};
    start.environment = {
        {"YOKE_RANK", rank},
        {"YOKE_SIZE", world},
        {"YOKE_LOCAL_RANK", local_rank},
        {"YOKE_LOCAL_SIZE", local_world},
        {"YOKE_NODE", place.node.name},
        {"YOKE_ADDRESS", place.node.address},
        {"YOKE_RAILS", print_rails(rails)},
        {"RANK", rank},
        {"WORLD_SIZE", world},
        {"LOCAL_RANK", local_rank},
        {"LOCAL_WORLD_SIZE", local_world},
        {"GROUP_RANK", std::to_string(node)},
        {"GROUP_WORLD_SIZE", std::to_string(spec.nodes.size())},
        {"ROLE_NAME", "default"},
        {"ROLE_RANK", rank},
        {"ROLE_WORLD_SIZE", world},
        {"TORCHELASTIC_RUN_ID", spec.name},
        {"TORCHELASTIC_MAX_RESTARTS", std::to_string(spec.policy == JobPolicy::kRestart ? spec.restarts_max : 0)},
        {"MASTER_ADDR", master.address},
        {"MASTER_PORT", std::to_string(master.port)},
        // Read by many scripts; Open MPI itself does not take them for a promise. MPICH would take
        // PMI_RANK so, and wait for a process manager that is not there: those are not given.
        {"OMPI_COMM_WORLD_RANK", rank},
        {"OMPI_COMM_WORLD_SIZE", world},
        {"OMPI_COMM_WORLD_LOCAL_RANK", local_rank},
        {"OMPI_COMM_WORLD_NODE_RANK", local_rank},
        {"OMPI_COMM_WORLD_LOCAL_SIZE", local_world}};
    for (const Variable& variable : place.environment) start.environment.push_back(variable);
    for (const Variable& variable : spec.environment) start.environment.push_back(variable);
    starts.push_back(std::move(start));
  }
  return starts;
}

}  // namespace yoke::job

// The group that this rank belongs to: found by whatever launcher started the process, connected by one communicator,
// and rebuilt after a death where the job starts again what is missing.
//
//   const auto world = join_world(*find_rank_place(environment_now()), {});
//   while (work_left) {
//     try { step(world->comm()); }
//     catch (const Error& error) { world->recover(error); }   // throws where the job ends instead
//   }
//
// In a job of yoke's (job/rank_channel.h) members come from the supervisor, who also tells who died: the operation
// under way then throws that cause. Under mpirun and srun they are exchanged by MPI, under torchrun and in a
// LeaderWorkerSet at rank 0's address (rendezvous.h); such groups end with the first death. One thread owns a World.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "yoke/comm/communicator.h"
#include "yoke/job/rank_place.h"
#include "yoke/rank/transport.h"
#include "yoke/spec/cluster.h"

namespace yoke::comm::mpi {
class MpiSession;
}
namespace yoke::rank {

struct WorldOptions {
  Transport transport = Transport::kAuto;  // direct in a job of yoke's and under torchrun, mpi under mpirun and srun
  comm::CommunicatorOptions communicator = {};
  Seconds join_limit{60};                // until all ranks have come
  std::optional<spec::Cluster> cluster;  // tells this node's rails where the launcher does not
};

class World {
 public:
  virtual ~World() = default;

  const job::RankPlace& place() const { return place_; }
  virtual comm::Communicator& comm() = 0;
  // Over the processors' memory, also where comm() carries that of GPUs.
  virtual comm::Communicator& control() = 0;
  int device() const;   // which GPU of the node is this rank's
  int devices() const;  // how many GPUs this node has
  // Where this rank listens, one for each rail; empty where MPI carries the data.
  virtual std::vector<spec::RailEndpoint> endpoints() const = 0;
  // The MPI that started us; null where none did.
  virtual std::shared_ptr<comm::mpi::MpiSession> mpi() const { return nullptr; }
  // Whether the program that started the ranks starts a dead one again, or knows better why it died.
  virtual bool recovers() const { return false; }
  // After an Error of an operation: returns with a communicator that works, or throws what ended the job.
  virtual void recover(const Error& failure) { throw Error(failure); }

 protected:
  explicit World(job::RankPlace place) : place_(std::move(place)) {}
  job::RankPlace place_;
};

std::unique_ptr<World> join_world(const job::RankPlace& place, WorldOptions options);

// Which of a cluster's nodes this machine is, by the addresses of its interfaces; null where it is none of them.
const spec::ClusterNode* find_own_node(const spec::Cluster& cluster);

}  // namespace yoke::rank

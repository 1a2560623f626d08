#include "yoke/rank/local_world.h"

#include "yoke/job/job.h"

namespace yoke::rank {
namespace {

class LocalWorld final : public World {
 public:
  explicit LocalWorld(std::unique_ptr<comm::Communicator> comm)
      : World({.rank = comm->rank(),
               .size = comm->size(),
               .local_rank = comm->rank(),
               .local_size = comm->size(),
               .node = job::this_machine().name}),
        comm_(std::move(comm)) {}

  comm::Communicator& comm() override { return *comm_; }
  comm::Communicator& control() override { return *comm_; }
  std::vector<spec::RailEndpoint> endpoints() const override { return {}; }

 private:
  std::unique_ptr<comm::Communicator> comm_;
};

}  // namespace

std::unique_ptr<World> make_local_world(std::unique_ptr<comm::Communicator> comm) {
  return std::make_unique<LocalWorld>(std::move(comm));
}

}  // namespace yoke::rank

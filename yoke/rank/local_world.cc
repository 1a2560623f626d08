#include "yoke/rank/local_world.h"

#include "yoke/job/job.h"

namespace yoke {
namespace {

class LocalWorld final : public World {
 public:
  explicit LocalWorld(std::unique_ptr<Communicator> comm)
      : World({.rank = comm->rank(),
               .size = comm->size(),
               .local_rank = comm->rank(),
               .local_size = comm->size(),
               .node = this_machine().name}),
        comm_(std::move(comm)) {}

  Communicator& comm() override { return *comm_; }
  Communicator& control() override { return *comm_; }
  std::vector<HalfEndpoint> endpoints() const override { return {}; }

 private:
  std::unique_ptr<Communicator> comm_;
};

}  // namespace

std::unique_ptr<World> make_local_world(std::unique_ptr<Communicator> comm) {
  return std::make_unique<LocalWorld>(std::move(comm));
}

}  // namespace yoke

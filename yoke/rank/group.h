// The communicator of a world by one transport, over the members as the launcher gave them. For NCCL a second, direct
// one goes before it, over which the ranks agree on NCCL's id.
#pragma once
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "yoke/comm/direct/direct.h"
#include "yoke/rank/world.h"

namespace yoke::rank {

class Group {
 public:
  Group(std::shared_ptr<comm::DirectListener> listener, const job::RankPlace& place, const WorldOptions& options);

  const std::vector<spec::RailEndpoint>& endpoints() const { return listener_->endpoints(); }
  // Makes the communicator, or builds it again for a later epoch. NCCL has a time of its own beyond the deadline.
  void connect(const spec::Membership& membership, Deadline deadline);
  comm::Communicator& comm() { return nccl_ ? *nccl_ : *direct_; }
  comm::Communicator& control() { return *direct_; }
  // From any thread: ends what the communicator does, and its rebuilding. The first connect() can only ask
  // (CommunicatorOptions::while_making).
  void abort(const Error& reason);

 private:
  std::string exchange_nccl_id();
  void connect_nccl(const spec::Membership& membership);

  std::shared_ptr<comm::DirectListener> listener_;
  job::RankPlace place_;
  WorldOptions options_;
  std::mutex mutex_;  // of the pointers, between the owner and abort()
  std::unique_ptr<comm::Communicator> direct_;
  std::unique_ptr<comm::Communicator> nccl_;
};

// Which GPU is a rank's: each its own, or in turns where there are fewer than ranks on the node.
int device_of(const job::RankPlace& place);

// One rank's part of a membership as text, for launchers that only let ranks exchange texts.
std::string member_text(const std::string& node, const std::vector<spec::RailEndpoint>& endpoints);
// The texts of all ranks, as each said its own; rank 0's token is the group's.
spec::Membership membership_from_texts(const std::vector<std::string>& texts);

}  // namespace yoke::rank

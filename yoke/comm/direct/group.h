// One epoch of a communicator: the connections with all other ranks, the shared memory of the node, the heartbeat, and
// what was measured about them. Made whole or not at all; a new epoch is a new Group.
#pragma once
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "yoke/comm/direct/acceptor.h"
#include "yoke/comm/direct/algorithms.h"
#include "yoke/comm/direct/direct.h"
#include "yoke/comm/direct/heartbeat.h"
#include "yoke/comm/direct/node_memory.h"
#include "yoke/comm/direct/tcp_channel.h"

namespace yoke::comm::direct {

class Group {
 public:
  Group(std::shared_ptr<DirectListener> listener, std::shared_ptr<Health> health, CommunicatorOptions options,
        Deadline deadline);
  ~Group();

  void run(const Collective& operation);
  void limit_operations(Seconds limit) { options_.operation_timeout = limit; }
  // In good order: what was sent arrives, as far as it can until the deadline, and the peers hear a goodbye.
  void leave(Deadline deadline);
  bool has_rail(int peer, int rail) const;  // when the group was made
  std::string describe() const;
  std::vector<spec::RailUse> rail_uses() const;  // between two operations

 private:
  void connect(Deadline deadline);
  void make_channels(std::vector<PeerConnections>& peers);
  void start_heartbeat(std::vector<PeerConnections>& peers);
  void make_engine();
  bool mend();
  MessageHeader next_header(const Collective& operation);
  void run(const Collective& operation, Deadline deadline);
  template <class Limit>
  void run_until(const Collective& operation, Limit limit);
  void describe_links(std::vector<std::string>& parts) const;

  // Measures what cannot be known beforehand; rank 0 decides for all.
  void tune(Deadline deadline);
  double time_all_reduce(std::size_t bytes, AllReduceWay way, Deadline deadline);
  std::size_t find_by_parts_from(Deadline deadline);
  std::size_t find_stripe_from(Deadline deadline);

  std::shared_ptr<DirectListener> listener_;
  std::shared_ptr<Health> health_;
  CommunicatorOptions options_;
  std::shared_ptr<Inbox> inbox_;
  NodeMemory memory_;
  bool crowded_ = false;  // more ranks on this node than cores
  LinkTuning tuning_;
  std::vector<std::unique_ptr<Channel>> channels_;  // by rank, null for the own
  std::vector<TcpChannel*> links_;                  // those over TCP
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<Algorithms> algorithms_;
  std::mutex running_;  // held by the operation under way, so that the heartbeat mends only between operations
  std::vector<float> scratch_;
  bool left_ = false;
  std::unique_ptr<Heartbeat> heartbeat_;  // last: its thread uses the rest
};

}  // namespace yoke::comm::direct

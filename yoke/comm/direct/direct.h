// The `direct` backend: ranks of one node exchange through shared memory, ranks of different nodes over TCP, with one
// data connection for each half of the cable; long messages go over all halves, and a half that is cut is done without.
//
//   auto listener = DirectListener::open({{"A", "192.168.100.1"}, {"B", "192.168.101.1"}});
//   … tell listener->endpoints() to whoever makes the Membership …
//   auto comm = make_direct(listener, membership, rank, {}, Deadline::after(10_s));
//
// A listener is opened by a rank before the members are known, and serves all its groups and epochs by the same ports.
// Behind each listener and each communicator is one thread.
#pragma once
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "yoke/base/clock.h"
#include "yoke/comm/communicator.h"
#include "yoke/spec/membership.h"

namespace yoke {

namespace direct {
class Reception;
}

class DirectListener {
 public:
  using Halves = std::vector<std::pair<std::string, std::string>>;  // half and address, in the order of the cluster

  // With no halves: one, "local", on 127.0.0.1.
  static std::shared_ptr<DirectListener> open(const Halves& halves = {});
  ~DirectListener();

  const std::vector<HalfEndpoint>& endpoints() const { return endpoints_; }
  direct::Reception& reception() { return *reception_; }  // of the backend itself

  DirectListener(std::vector<HalfEndpoint> endpoints, std::unique_ptr<direct::Reception> reception);

 private:
  std::vector<HalfEndpoint> endpoints_;
  std::unique_ptr<direct::Reception> reception_;
};

// Returns once all ranks of the membership have come; kTimeout at the deadline, naming who has not.
std::unique_ptr<Communicator> make_direct(std::shared_ptr<DirectListener> listener, Membership membership, int rank,
                                          CommunicatorOptions options, Deadline deadline);

}  // namespace yoke

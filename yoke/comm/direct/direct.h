// The `direct` backend: ranks of one node exchange through shared memory, ranks of different nodes over TCP, with one
// data connection for each half of the cable; long messages go over all rails, and a half that is cut is done without.
//
//   auto listener = DirectListener::open({{"A", "192.168.100.1"}, {"B", "192.168.101.1"}});
//   … tell listener->endpoints() to the one that makes the Membership …
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

namespace yoke::comm {

namespace direct {
class Acceptor;
}

class DirectListener {
 public:
  using Rails = std::vector<std::pair<std::string, std::string>>;  // rail and address, in the order of the cluster

  // With no rails: one, "local", on 127.0.0.1.
  static std::shared_ptr<DirectListener> open(const Rails& rails = {});
  ~DirectListener();

  const std::vector<spec::RailEndpoint>& endpoints() const { return endpoints_; }
  direct::Acceptor& acceptor() { return *acceptor_; }  // of the backend itself

  DirectListener(std::vector<spec::RailEndpoint> endpoints, std::unique_ptr<direct::Acceptor> acceptor);

 private:
  std::vector<spec::RailEndpoint> endpoints_;
  std::unique_ptr<direct::Acceptor> acceptor_;
};

// Returns once all ranks of the membership have come; kTimeout at the deadline, naming who has not.
std::unique_ptr<Communicator> make_direct(std::shared_ptr<DirectListener> listener, spec::Membership membership,
                                          int rank, CommunicatorOptions options, Deadline deadline);

}  // namespace yoke::comm

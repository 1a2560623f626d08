// Whose request gets the next free place. Of the clients that wait it is the one with the fewest places, and of those
// the one whose request came first: a client with a thousand requests does not keep another from being answered. Pure;
// the caller locks.
//
//   FairQueue queue(running_max, queue_max);
//   queue.add("alice", 7);
//   while (const auto id = queue.next()) start(*id);
//   queue.remove(7);                                    // it has ended, or was given up while it waited
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>

namespace yoke::serve {

class FairQueue {
 public:
  // `places`: requests that run at once. `waiting_max`: that wait.
  FairQueue(int places, int waiting_max) : places_(places), waiting_max_(waiting_max) {}

  // Whether so many more of this client fit. The last eighth of the queue is closed to a client that has filled the
  // rest: others find room while that one waits.
  bool has_room(const std::string& client, std::size_t count) const;
  void add(const std::string& client, std::uint64_t id);  // ids grow with time
  std::optional<std::uint64_t> next();                    // has a place from now on
  void remove(std::uint64_t id);                          // ignored where it is not there

  std::size_t running() const { return running_; }
  std::size_t waiting() const { return clients_of_.size() - running_; }

 private:
  struct Client {
    std::size_t places = 0;
    std::set<std::uint64_t> waiting;
  };

  const int places_, waiting_max_;
  std::map<std::string, Client> clients_;
  std::map<std::uint64_t, std::string> clients_of_;  // all requests
  std::size_t running_ = 0;
};

}  // namespace yoke::serve

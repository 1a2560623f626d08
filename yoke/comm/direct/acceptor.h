// The door of a rank: accepts connections on all its rails and on its Unix socket, makes sure who comes, and puts each
// into the inbox of its group and epoch. It has a thread of its own. An inbox belongs to the one that assembles a
// group; once closed, it only tells latecomers how things stand.
#pragma once
#include <condition_variable>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "yoke/base/socket.h"
#include "yoke/comm/direct/handshake.h"
#include "yoke/comm/direct/health.h"

namespace yoke::comm::direct {

struct NewConnection {
  Hello hello;
  Socket socket;
};

class Inbox {
 public:
  Inbox(const spec::Membership& membership, int rank);

  const std::array<char, 32>& group() const { return group_; }
  const std::string& token() const { return token_; }
  int epoch() const { return epoch_; }

  // From the reception's thread.
  HandshakeReply evaluate(const Hello& hello) const;
  void put(NewConnection connection);
  // From the assembling threads. The arrivals so far, waiting a moment for the first.
  std::vector<NewConnection> take(Seconds patience);
  void nudge();  // ends a take()
  void close();

 private:
  const std::array<char, 32> group_;
  const std::string token_;
  const int epoch_, rank_, size_;
  const std::size_t rails_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<NewConnection> connections_;
  bool closed_ = false, nudged_ = false;
};

class Acceptor {
 public:
  explicit Acceptor(std::vector<Socket> listeners);
  ~Acceptor();

  // Lets the members of its group in, those of this node by a Unix socket at `first_endpoint` too.
  void open(std::shared_ptr<Inbox> inbox, const Endpoint& first_endpoint);
  void close(const std::shared_ptr<Inbox>& inbox);  // forgets it

 private:
  void run();
  void update_doors();
  void accept_from(Socket& listener);
  void advance_handshakes();
  std::shared_ptr<Inbox> find(const Hello& hello) const;
  HandshakePeer look_up(const Hello& hello) const;

  struct Door {
    std::string token;  // of the group whose Unix socket it is; empty for TCP
    Socket listener;
  };

  std::vector<Door> doors_;          // of the thread alone, once it runs
  std::list<Handshake> handshakes_;  // of the thread alone
  Wakeup wakeup_;                    // to stop, or for a change of the doors
  std::atomic<bool> stopping_{false};
  mutable std::mutex mutex_;
  std::vector<std::shared_ptr<Inbox>> inboxes_;
  std::set<std::string> memory_tokens_;  // of groups that have their Unix socket
  std::set<std::string> closing_;        // whose socket the thread is to close
  std::vector<Door> new_doors_;
  std::thread thread_;
};

}  // namespace yoke::comm::direct

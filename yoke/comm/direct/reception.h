// The door of a rank: accepts connections on all its halves and on its Unix socket, makes sure who comes, and puts each
// into the inbox of its group and epoch. It has a thread of its own. An inbox belongs to whoever assembles a group;
// once closed, it only tells latecomers how things stand.
#pragma once
#include <condition_variable>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "yoke/base/socket.h"
#include "yoke/comm/direct/greeting.h"
#include "yoke/comm/direct/vitals.h"

namespace yoke::direct {

struct Arrival {
  Hello hello;
  Socket socket;
};

class Inbox {
 public:
  Inbox(const Membership& membership, int rank);

  const std::array<char, 32>& group() const { return group_; }
  const std::string& token() const { return token_; }
  int epoch() const { return epoch_; }

  // From the reception's thread.
  Welcome judge(const Hello& hello) const;
  void put(Arrival arrival);
  // From the assembling threads. The arrivals so far, waiting a moment for the first.
  std::vector<Arrival> take(Seconds patience);
  void nudge();  // ends a take()
  void close();

 private:
  const std::array<char, 32> group_;
  const std::string token_;
  const int epoch_, rank_, size_;
  const std::size_t halves_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Arrival> arrivals_;
  bool closed_ = false, nudged_ = false;
};

class Reception {
 public:
  explicit Reception(std::vector<Socket> listeners);
  ~Reception();

  void open(std::shared_ptr<Inbox> inbox);
  void close(const std::shared_ptr<Inbox>& inbox);  // forgets it

 private:
  void run();
  void accept_from(Socket& listener);
  void advance_greetings();
  std::shared_ptr<Inbox> find(const Hello& hello) const;
  Guest look_up(const Hello& hello) const;

  std::vector<Socket> listeners_;
  std::list<Greeting> greetings_;  // of the thread alone
  Bell stop_bell_;
  std::atomic<bool> stopping_{false};
  mutable std::mutex mutex_;
  std::vector<std::shared_ptr<Inbox>> inboxes_;
  std::thread thread_;
};

}  // namespace yoke::direct

// The way to one other rank, through memory or TCP: a stream of messages in each direction, of which at most one is
// under way. A message is sent from where it lies, and received either at its destination or in place, through
// window() and consume(), so that it can be reduced while the rest is still travelling. Nothing here waits: advance()
// moves what can be moved now. Belongs to the thread that runs the operation.
#pragma once
#include <poll.h>

#include <cstddef>
#include <span>
#include <vector>

#include "yoke/comm/direct/health.h"
#include "yoke/comm/direct/wire.h"

namespace yoke::comm::direct {

class Channel {
 public:
  Channel(Health& health, int peer) : health_(health), peer_(peer) {}
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;
  virtual ~Channel() = default;

  int peer() const { return peer_; }

  // Begins a message of header.size bytes, and moves what can be moved at once.
  virtual void send(const MessageHeader& header, const std::byte* payload) = 0;
  // Expects a message. With a null destination it is taken through window(). A peer that sends another one is an Error.
  virtual void receive(const MessageHeader& expected, std::byte* destination) = 0;
  // True where anything moved.
  virtual bool advance() = 0;

  bool sending() const { return sending_; }
  bool receiving() const { return receiving_; }  // not all of it has come, or has been consumed
  std::size_t sent() const { return sent_; }     // bytes of the message that were copied away

  // What has come and is not consumed, as far as it lies in one piece; at 64 bytes, or behind what was consumed.
  virtual std::span<const std::byte> window() = 0;
  virtual void consume(std::size_t size) = 0;

  // What to poll for until advance() can move something; memory needs none, its bell is rung.
  virtual void add_waits(std::vector<pollfd>& waits) = 0;

 protected:
  void check_header(const MessageHeader& received) const;

  Health& health_;
  const int peer_;
  MessageHeader expected_;
  bool sending_ = false, receiving_ = false;
  std::size_t sent_ = 0;
};

}  // namespace yoke::comm::direct

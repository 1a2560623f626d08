// The channel between two ranks of one node: a ring each way in shared memory. A rank that sleeps says so there, and is
// woken by its bell, an eventfd that both have.
#pragma once
#include <memory>

#include "yoke/comm/direct/channel.h"
#include "yoke/comm/direct/region.h"

namespace yoke::comm::direct {

class MemoryChannel : public Channel {
 public:
  struct Place {
    const Region* region;
    int own, peer;  // within the node
  };
  MemoryChannel(Health& health, int peer, Place place, Wakeup peer_wakeup);

  void send(const MessageHeader& header, const std::byte* payload) override;
  void receive(const MessageHeader& expected, std::byte* destination) override;
  bool advance() override;
  std::span<const std::byte> window() override;
  void consume(std::size_t size) override;
  void add_waits(std::vector<pollfd>&) override {}

 private:
  bool push();
  bool pull();
  bool take_header();
  void consumed(std::size_t size);
  void wake_peer() const;

  RingWriter writer_;
  RingReader reader_;
  std::atomic<std::uint32_t>& peer_sleeps_;
  Wakeup peer_wakeup_;

  MessageHeader outgoing_;
  const std::byte* payload_ = nullptr;
  bool header_sent_ = false;
  std::size_t padding_to_send_ = 0;

  std::byte* destination_ = nullptr;
  bool header_seen_ = false;
  std::size_t received_ = 0;
  std::size_t padding_to_skip_ = 0;
};

}  // namespace yoke::comm::direct

// The channel between ranks of two nodes: one TCP connection for each rail. A rail that is lost, by the evaluation of
// the heartbeat or by what its socket says, is given up, and what went by it unacknowledged goes again by another; the
// operation notices nothing.
#pragma once
#include "yoke/comm/direct/channel.h"
#include "yoke/comm/direct/tcp_receiver.h"
#include "yoke/comm/direct/tcp_sender.h"

namespace yoke::comm::direct {

class TcpChannel : public Channel {
 public:
  // One socket for each rail; an empty one where the rail could not be connected.
  TcpChannel(Health& health, int peer, std::vector<Socket> sockets, const LinkTuning& tuning);

  void send(const MessageHeader& header, const std::byte* payload) override;
  void receive(const MessageHeader& expected, std::byte* destination) override;
  bool advance() override;
  std::span<const std::byte> window() override { return receiver_.window(); }
  void consume(std::size_t size) override;
  void add_waits(std::vector<pollfd>& waits) override;

  bool began_with(std::size_t rail) const { return (missing_ >> rail & 1U) == 0; }
  // Null where the rail was never connected, or is lost.
  const Socket* socket_of(std::size_t rail) const { return paths_[rail].live ? &paths_[rail].socket : nullptr; }
  // What the heartbeat does while no operation runs: sends again what was lost.
  void mend();
  // Until the peer's machine has everything that was sent, so that closing loses nothing.
  void flush(Deadline deadline);

 private:
  bool push();
  bool pull();
  void inspect_rails();
  void give_up(std::size_t rail);
  void acknowledge();

  std::vector<DataPath> paths_;
  TcpSender sender_;
  TcpReceiver receiver_;
  bool header_checked_ = true;
  std::uint32_t missing_ = 0;  // rails that were never connected
  std::size_t frames_acknowledged_ = 0;
  std::byte nothing_{};  // where empty messages go
};

}  // namespace yoke::comm::direct

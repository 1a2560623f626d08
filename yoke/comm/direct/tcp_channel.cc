#include "yoke/comm/direct/tcp_channel.h"

#include <linux/sockios.h>
#include <sys/ioctl.h>

#include <algorithm>
#include <utility>

namespace yoke::comm::direct {
namespace {

// Acknowledgements go by the way with what is sent; by themselves only where nothing is, once a frame's worth has come.
constexpr std::uint64_t kAcknowledgeBytes = LinkTuning::kFrame;
constexpr std::size_t kAcknowledgeFrames = Retained::kFrames / 4;

std::vector<DataPath> to_paths(std::vector<Socket> sockets) {
  std::vector<DataPath> paths;
  for (Socket& socket : sockets) {
    const bool live = static_cast<bool>(socket);
    paths.push_back({std::move(socket), live, {}});
  }
  return paths;
}

}  // namespace

TcpChannel::TcpChannel(Health& health, int peer, std::vector<Socket> sockets, const LinkTuning& tuning)
    : Channel(health, peer),
      paths_(to_paths(std::move(sockets))),
      sender_(paths_, tuning, static_cast<std::uint32_t>(health.membership().epoch)),
      receiver_(paths_, tuning, static_cast<std::uint32_t>(health.membership().epoch)) {
  for (std::size_t rail = 0; rail < paths_.size(); ++rail) {
    if (!paths_[rail].live) missing_ |= 1U << rail;
  }
}

void TcpChannel::send(const MessageHeader& header, const std::byte* payload) {
  inspect_rails();
  sender_.begin(header, payload);
  sending_ = true;
  push();
}

void TcpChannel::receive(const MessageHeader& expected, std::byte* destination) {
  expected_ = expected;
  // An empty message needs no window.
  receiver_.begin(static_cast<std::size_t>(expected.size), expected.size == 0 ? &nothing_ : destination);
  header_checked_ = false;
  receiving_ = true;
}

bool TcpChannel::push() {
  const bool moved = sender_.push(receiver_.received());
  sent_ = sender_.sent();
  sending_ = !sender_.done() || sender_.backlog();
  return moved;
}

bool TcpChannel::pull() {
  const bool moved = receiver_.pull(sender_.needs_acknowledgement());
  sender_.acknowledged(receiver_.acknowledged());
  if (!header_checked_ && receiver_.header()) {
    check_header(*receiver_.header());
    header_checked_ = true;
  }
  if (receiving_ && receiver_.complete()) receiving_ = false;
  return moved;
}

void TcpChannel::acknowledge() {
  const std::uint64_t bytes = receiver_.received() - sender_.last_acknowledgement();
  if (bytes < kAcknowledgeBytes && receiver_.frames_received() - frames_acknowledged_ < kAcknowledgeFrames) return;
  if (bytes == 0 || sender_.send_acknowledgement(receiver_.received())) {
    frames_acknowledged_ = receiver_.frames_received();
  }
}

bool TcpChannel::advance() {
  inspect_rails();
  const bool pushed = sending_ && push();
  const bool pulled = (receiving_ || sender_.needs_acknowledgement()) && pull();
  if (paths_.size() > 1) acknowledge();
  return pushed || pulled;
}

void TcpChannel::consume(std::size_t size) {
  receiver_.consume(size);
  if (receiver_.complete()) receiving_ = false;
}

void TcpChannel::inspect_rails() {
  const std::uint32_t evaluated = health_.peer(peer_).lost.load(std::memory_order_acquire);
  for (std::size_t rail = 0; rail < paths_.size(); ++rail) {
    DataPath& path = paths_[rail];
    if (!path.live) continue;
    if (!path.broken.empty()) {
      health_.report({peer_, static_cast<int>(rail), path.broken});
      give_up(rail);
    } else if ((evaluated >> rail & 1U) != 0) {
      give_up(rail);
    }
  }
}

void TcpChannel::give_up(std::size_t rail) {
  paths_[rail].live = false;
  paths_[rail].socket.close();
  sender_.lose(rail);
  receiver_.lose(rail);
  sending_ = !sender_.done() || sender_.backlog();
}

void TcpChannel::add_waits(std::vector<pollfd>& waits) {
  const bool reads = receiving_ || sender_.needs_acknowledgement();
  for (std::size_t rail = 0; rail < paths_.size(); ++rail) {
    if (!paths_[rail].live) continue;
    short events = 0;
    if (reads && receiver_.wants(rail)) events |= POLLIN;
    if (sending_ && sender_.wants(rail)) events |= POLLOUT;
    if (events != 0) waits.push_back({paths_[rail].socket.fd(), events, 0});
  }
}

void TcpChannel::mend() {
  inspect_rails();
  if (sender_.backlog()) push();
}

void TcpChannel::flush(Deadline deadline) {
  const auto unsent = [](const DataPath& path) {
    int bytes = 0;
    pollfd look{path.socket.fd(), 0, 0};
    // The kernel goes on counting what a connection that was reset has not delivered.
    return path.live && ioctl(path.socket.fd(), SIOCOUTQ, &bytes) == 0 && bytes > 0 && poll(&look, 1, 0) == 0;
  };
  for (mend(); sending_ || std::ranges::any_of(paths_, unsent); mend()) {
    if (deadline.expired() || health_.failed() || health_.peer(peer_).left) return;
    real_clock().sleep({0.0005});
  }
}

}  // namespace yoke::comm::direct

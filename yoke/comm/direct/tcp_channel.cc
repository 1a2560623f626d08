#include "yoke/comm/direct/tcp_channel.h"

#include <linux/sockios.h>
#include <sys/ioctl.h>

#include <algorithm>
#include <utility>

namespace yoke::direct {
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

TcpChannel::TcpChannel(Vitals& vitals, int peer, std::vector<Socket> sockets, const LinkTuning& tuning)
    : Channel(vitals, peer),
      paths_(to_paths(std::move(sockets))),
      sender_(paths_, tuning, static_cast<std::uint32_t>(vitals.membership().epoch)),
      receiver_(paths_, tuning, static_cast<std::uint32_t>(vitals.membership().epoch)) {
  for (std::size_t half = 0; half < paths_.size(); ++half) {
    if (!paths_[half].live) missing_ |= 1U << half;
  }
}

void TcpChannel::send(const MessageHeader& header, const std::byte* payload) {
  look_at_halves();
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
  look_at_halves();
  const bool pushed = sending_ && push();
  const bool pulled = (receiving_ || sender_.needs_acknowledgement()) && pull();
  if (paths_.size() > 1) acknowledge();
  return pushed || pulled;
}

void TcpChannel::consume(std::size_t size) {
  receiver_.consume(size);
  if (receiver_.complete()) receiving_ = false;
}

void TcpChannel::look_at_halves() {
  const std::uint32_t judged = vitals_.peer(peer_).lost.load(std::memory_order_acquire);
  for (std::size_t half = 0; half < paths_.size(); ++half) {
    DataPath& path = paths_[half];
    if (!path.live) continue;
    if (!path.broken.empty()) {
      vitals_.report({peer_, static_cast<int>(half), path.broken});
      give_up(half);
    } else if ((judged >> half & 1U) != 0) {
      give_up(half);
    }
  }
}

void TcpChannel::give_up(std::size_t half) {
  paths_[half].live = false;
  paths_[half].socket.close();
  sender_.lose(half);
  receiver_.lose(half);
  sending_ = !sender_.done() || sender_.backlog();
}

void TcpChannel::add_waits(std::vector<pollfd>& waits) {
  const bool reads = receiving_ || sender_.needs_acknowledgement();
  for (std::size_t half = 0; half < paths_.size(); ++half) {
    if (!paths_[half].live) continue;
    short events = 0;
    if (reads && receiver_.wants(half)) events |= POLLIN;
    if (sending_ && sender_.wants(half)) events |= POLLOUT;
    if (events != 0) waits.push_back({paths_[half].socket.fd(), events, 0});
  }
}

void TcpChannel::mend() {
  look_at_halves();
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
    if (deadline.expired() || vitals_.failed() || vitals_.peer(peer_).left) return;
    real_clock().sleep({0.0005});
  }
}

}  // namespace yoke::direct

#include "yoke/comm/direct/memory_channel.h"

#include <algorithm>
#include <cstring>

namespace yoke::comm::direct {
namespace {

// Published piece by piece, so that the peer copies one while the next is written.
constexpr std::size_t kPiece = std::size_t{8} << 10;
// Messages take whole units of this, so that headers lie in one piece and payloads are aligned for arithmetic.
constexpr std::size_t kUnit = 32;
static_assert(sizeof(MessageHeader) == kUnit);

std::size_t padding_after(std::uint64_t size) { return static_cast<std::size_t>(-size % kUnit); }

}  // namespace

MemoryChannel::MemoryChannel(Health& health, int peer, Place place, Wakeup peer_wakeup)
    : Channel(health, peer),
      writer_(place.region->ring(place.own, place.peer)),
      reader_(place.region->ring(place.peer, place.own)),
      peer_sleeps_(place.region->sleeping(place.peer)),
      peer_wakeup_(std::move(peer_wakeup)) {}

void MemoryChannel::wake_peer() const {
  if (peer_sleeps_.load(std::memory_order_seq_cst) != 0 && peer_sleeps_.exchange(0) != 0) peer_wakeup_.ring();
}

void MemoryChannel::send(const MessageHeader& header, const std::byte* payload) {
  outgoing_ = header;
  payload_ = payload;
  header_sent_ = false;
  padding_to_send_ = padding_after(header.size);
  sent_ = 0;
  sending_ = true;
  push();
}

bool MemoryChannel::push() {
  bool moved = false;
  if (!header_sent_) {
    if (writer_.room() < kUnit && writer_.room_now() < kUnit) return false;
    writer_.write(bytes_of(outgoing_));
    header_sent_ = moved = true;
  }
  while (sent_ < outgoing_.size) {
    const std::size_t wanted = std::min(kPiece, static_cast<std::size_t>(outgoing_.size) - sent_);
    std::size_t room = writer_.room();
    if (room < wanted) room = writer_.room_now();
    if (room == 0) break;
    writer_.write({payload_ + sent_, std::min(wanted, room)});
    sent_ += std::min(wanted, room);
    moved = true;
    writer_.publish();
    wake_peer();
  }
  if (sent_ == outgoing_.size && (padding_to_send_ == 0 || writer_.room_now() >= padding_to_send_)) {
    static constexpr std::array<std::byte, kUnit> kPadding{};
    writer_.write(std::span(kPadding).first(padding_to_send_));
    sending_ = false;
    moved = true;
    writer_.publish();
    wake_peer();
  }
  return moved;
}

void MemoryChannel::receive(const MessageHeader& expected, std::byte* destination) {
  expected_ = expected;
  destination_ = destination;
  header_seen_ = false;
  received_ = 0;
  receiving_ = true;
}

void MemoryChannel::consumed(std::size_t size) {
  reader_.consume(size);
  wake_peer();
}

bool MemoryChannel::take_header() {
  if (padding_to_skip_ > 0) {
    if (reader_.size() < padding_to_skip_) return false;
    reader_.consume(std::exchange(padding_to_skip_, 0));
  }
  if (reader_.size() < kUnit) return false;
  const auto header = read_struct<MessageHeader>(reader_.front());
  check_header(header);
  consumed(kUnit);
  padding_to_skip_ = padding_after(header.size);
  header_seen_ = true;
  if (header.size == 0) receiving_ = false;
  return true;
}

bool MemoryChannel::pull() {
  bool moved = false;
  if (!header_seen_) {
    moved = take_header();
    if (!moved) return false;
  }
  if (!destination_) return moved;
  while (receiving_) {
    const std::span<const std::byte> piece = window();
    if (piece.empty()) break;
    std::memcpy(destination_ + received_, piece.data(), piece.size());
    consume(piece.size());
    moved = true;
  }
  return moved;
}

std::span<const std::byte> MemoryChannel::window() {
  if (!header_seen_ || !receiving_) return {};
  const std::span<const std::byte> front = reader_.front();
  return front.first(std::min(front.size(), static_cast<std::size_t>(expected_.size) - received_));
}

void MemoryChannel::consume(std::size_t size) {
  received_ += size;
  if (received_ == expected_.size) receiving_ = false;
  consumed(size);
}

bool MemoryChannel::advance() {
  const bool pushed = sending_ && push();
  const bool pulled = receiving_ && pull();
  return pushed || pulled;
}

}  // namespace yoke::comm::direct

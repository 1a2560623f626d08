#include "yoke/comm/direct/tcp_sender.h"

#include <algorithm>
#include <cstring>

namespace yoke::comm::direct {
namespace {

iovec part(const void* bytes, std::size_t size) { return {const_cast<void*>(bytes), size}; }

}  // namespace

TcpSender::TcpSender(std::vector<DataPath>& paths, const LinkTuning& tuning, std::uint32_t epoch)
    : paths_(paths), tuning_(tuning), epoch_(epoch), rests_(paths.size()), full_(paths.size()) {}

void TcpSender::begin(const MessageHeader& header, const std::byte* payload) {
  stream_ += total_;
  message_ = header;
  payload_ = payload;
  total_ = sizeof message_ + static_cast<std::size_t>(header.size);
  framed_ = 0;
  striped_ = tuning_.striped(static_cast<std::size_t>(header.size), paths_.size());
}

std::size_t TcpSender::live_count() const {
  return static_cast<std::size_t>(std::ranges::count(paths_, true, &DataPath::live));
}

bool TcpSender::retains() const { return paths_.size() > 1 && live_count() > 1; }

// Short messages all go by the first rail that lives, where the receiver looks first; long ones by turns.
std::size_t TcpSender::choose_rail() {
  for (std::size_t i = 0; i < paths_.size(); ++i) {
    const std::size_t rail = striped_ ? (next_rail_ + i) % paths_.size() : i;
    if (!paths_[rail].usable()) continue;
    if (!rests_[rail].open && !full_[rail]) {
      next_rail_ = rail + 1;
      return rail;
    }
    if (!striped_) return kNone;
  }
  return kNone;
}

bool TcpSender::push(std::uint64_t received) {
  received_ = received;
  starved_ = false;
  std::fill(full_.begin(), full_.end(), false);
  bool moved = flush_rests();
  moved |= send_lost();
  while (framed_ < total_) {
    const std::size_t rail = choose_rail();
    if (rail == kNone) break;
    const std::size_t size = std::min(LinkTuning::kFrame, total_ - framed_);
    if (retains() && !retained_.has_room(size, striped_ ? Retained::Use::kLong : Retained::Use::kShort)) {
      starved_ = true;
      break;
    }
    moved |= send_frame(rail, size);
  }
  return moved;
}

FrameHeader TcpSender::header_for(std::uint64_t offset, std::size_t size) {
  FrameHeader header = make_frame(epoch_);
  header.length = static_cast<std::uint32_t>(size);
  header.offset = offset;
  header.acknowledged = last_acknowledgement_ = received_;
  return header;
}

std::size_t TcpSender::write(std::size_t rail, std::span<iovec> parts) {
  const std::size_t written = paths_[rail].send(parts);
  if (written == 0) full_[rail] = true;
  return written;
}

void TcpSender::copy_message(std::size_t from, std::size_t size, std::byte* to) const {
  const std::span<const std::byte> header = bytes_of(message_);
  const std::size_t of_header = from < header.size() ? std::min(size, header.size() - from) : 0;
  std::memcpy(to, header.data() + (of_header > 0 ? from : 0), of_header);
  if (size > of_header) std::memcpy(to + of_header, payload_ + (from + of_header - header.size()), size - of_header);
}

bool TcpSender::send_frame(std::size_t rail, std::size_t size) {
  const FrameHeader header = header_for(stream_ + framed_, size);
  struct Heads {
    FrameHeader frame;
    MessageHeader message;
  } const heads{header, message_};
  // The header of a message is never cut: its first frame is longer.
  const std::size_t of_message = framed_ < sizeof message_ ? sizeof message_ : 0;
  const std::size_t left = size - of_message;
  std::array<iovec, 2> parts = {part(&heads, sizeof header + of_message),
                                part(payload_ + (framed_ + of_message - sizeof message_), left)};
  const std::size_t used = left > 0 ? 2 : 1;
  const std::size_t written = write(rail, std::span(parts).first(used));
  if (written == 0) return false;

  Rest& rest = rests_[rail];
  const bool whole = written == sizeof header + size;
  if (retains()) {  // copied after sending: by now the bytes are on their way
    const auto use = striped_ ? Retained::Use::kLong : Retained::Use::kShort;
    std::byte* kept = retained_.keep(header.offset, size, static_cast<int>(rail), use);
    copy_message(framed_, size, kept);
    if (!whole) rest.bytes = kept;
  } else if (!whole) {
    keep_rest(rail, header, written, size);
  }
  if (!whole) {
    rest.header = header;
    rest.written = written;
    rest.open = true;
  }
  framed_ += size;
  return true;
}

void TcpSender::keep_rest(std::size_t rail, const FrameHeader& header, std::size_t written, std::size_t size) {
  Rest& rest = rests_[rail];
  if (rest.own.size() < size) rest.own.resize(LinkTuning::kFrame);
  const std::size_t from = written > sizeof header ? written - sizeof header : 0;
  copy_message(framed_ + from, size - from, rest.own.data() + from);
  rest.bytes = rest.own.data();
}

bool TcpSender::flush_rests() {
  bool moved = false;
  for (std::size_t rail = 0; rail < rests_.size(); ++rail) {
    Rest& rest = rests_[rail];
    if (!rest.open || !paths_[rail].broken.empty()) continue;
    const std::size_t of_header = std::min(rest.written, sizeof rest.header);
    const std::size_t of_bytes = rest.written - of_header;
    std::array<iovec, 2> parts = {
        part(reinterpret_cast<const std::byte*>(&rest.header) + of_header, sizeof rest.header - of_header),
        part(rest.bytes + of_bytes, rest.header.length - of_bytes)};
    const std::size_t written = write(rail, parts);
    rest.written += written;
    moved |= written > 0;
    if (rest.written == sizeof rest.header + rest.header.length) rest.open = false;
  }
  return moved;
}

// Frames that were lost with their rail go first by those that live.
bool TcpSender::send_lost() {
  bool moved = false;
  while (Retained::Frame* frame = retained_.first_lost()) {
    std::size_t rail = 0;
    while (rail < paths_.size() && (!paths_[rail].usable() || rests_[rail].open || full_[rail])) {
      ++rail;
    }
    if (rail == paths_.size()) return moved;
    const FrameHeader header = header_for(frame->offset, frame->size);
    std::array<iovec, 2> parts = {part(&header, sizeof header), part(retained_.bytes(*frame), frame->size)};
    const std::size_t written = write(rail, parts);
    if (written == 0) continue;
    moved = true;
    if (written < sizeof header + frame->size) {
      Rest& rest = rests_[rail];
      rest.header = header;
      rest.bytes = retained_.bytes(*frame);
      rest.written = written;
      rest.open = true;
    }
    retained_.sent_again(*frame, static_cast<int>(rail));
  }
  return moved;
}

bool TcpSender::send_acknowledgement(std::uint64_t received) {
  received_ = received;
  for (std::size_t rail = 0; rail < paths_.size(); ++rail) {
    if (!paths_[rail].usable() || rests_[rail].open) continue;
    const std::uint64_t before = last_acknowledgement_;
    const FrameHeader header = header_for(stream_ + framed_, 0);
    std::array<iovec, 1> parts = {part(&header, sizeof header)};
    const std::size_t written = write(rail, parts);
    if (written == 0) {
      last_acknowledgement_ = before;
      continue;
    }
    if (written < sizeof header) {
      rests_[rail].header = header;
      rests_[rail].bytes = nullptr;
      rests_[rail].written = written;
      rests_[rail].open = true;
    }
    return true;
  }
  return false;
}

void TcpSender::lose(std::size_t rail) {
  rests_[rail].open = false;
  retained_.lose(static_cast<int>(rail));
}

bool TcpSender::backlog() const { return retained_.any_lost() || std::ranges::any_of(rests_, &Rest::open); }

bool TcpSender::wants(std::size_t rail) const {
  if (rests_[rail].open || retained_.any_lost()) return true;
  if (framed_ == total_ || starved_) return false;
  return striped_ ||
         std::ranges::find(paths_, true, &DataPath::live) == paths_.begin() + static_cast<std::ptrdiff_t>(rail);
}

}  // namespace yoke::comm::direct

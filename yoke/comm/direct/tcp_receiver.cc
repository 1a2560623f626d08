#include "yoke/comm/direct/tcp_receiver.h"

#include <algorithm>
#include <cstring>

namespace yoke::comm::direct {
namespace {

// As much as the peer keeps for us: so whatever it sends again has room, however much lies before it.
constexpr std::size_t kMaxReordered = Retained::kBytes;
// How often rails are looked at where a short message is not expected.
constexpr unsigned kOtherRailsEvery = 64;

}  // namespace

TcpReceiver::TcpReceiver(std::vector<DataPath>& paths, const LinkTuning& tuning, std::uint32_t epoch)
    : paths_(paths), tuning_(tuning), epoch_(epoch), inputs_(paths.size()) {}

void TcpReceiver::begin(std::size_t size, std::byte* destination) {
  if (!destination && !scratch_) scratch_ = std::make_unique_for_overwrite<Scratch>();
  begin_ = end_;
  end_ = begin_ + kHeader + size;
  size_ = size;
  consumed_ = 0;
  destination_ = destination;
  header_read_ = false;
  striped_ = tuning_.striped(size, paths_.size());
  for (Input& input : inputs_) input.blocked = false;
  deliver_reordered();
}

bool TcpReceiver::pull(bool seeking_acknowledgement) {
  seeking_acknowledgement_ = seeking_acknowledgement;
  bool moved = false;
  bool first = true;
  const bool look_everywhere = striped_ || seeking_acknowledgement || ++turns_ % kOtherRailsEvery == 0;
  for (std::size_t rail = 0; rail < paths_.size(); ++rail) {
    if (!paths_[rail].usable()) continue;
    if (first || look_everywhere || inputs_[rail].has_frame) moved |= pull_rail(rail);
    first = false;
    if (prefix() == end_ && !seeking_acknowledgement) break;
  }
  return moved;
}

// Up to the end of one frame, so that sending gets its turn in between.
bool TcpReceiver::pull_rail(std::size_t rail) {
  Input& input = inputs_[rail];
  const std::size_t frames_before = frames_received_;
  bool moved = false;
  while (paths_[rail].broken.empty()) {
    if (!input.has_frame) {
      if (prefix() == end_ && !seeking_acknowledgement_) return moved;
      if (!(can_predict(rail) ? read_predicted(rail) : read_frame_header(rail))) return moved;
    } else if (!read_payload(rail)) {
      return moved;
    }
    moved = true;
    if (frames_received_ != frames_before) return true;
  }
  return moved;
}

// From what was spilled, else from the socket; 0 where nothing is there.
std::size_t TcpReceiver::read(std::size_t rail, std::span<iovec> parts) {
  Input& input = inputs_[rail];
  if (input.spill.empty()) return paths_[rail].receive(parts);
  const std::size_t before = input.spilled;
  for (const iovec& part : parts) {
    const std::size_t count = std::min(part.iov_len, input.spill.size() - input.spilled);
    std::memcpy(part.iov_base, input.spill.data() + input.spilled, count);
    input.spilled += count;
  }
  const std::size_t taken = input.spilled - before;
  if (input.spilled == input.spill.size()) {
    input.spill.clear();
    input.spilled = 0;
  }
  return taken;
}

bool TcpReceiver::read_frame_header(std::size_t rail) {
  Input& input = inputs_[rail];
  std::array<iovec, 1> parts = {
      iovec{input.header_bytes.data() + input.header_got, input.header_bytes.size() - input.header_got}};
  const std::size_t count = read(rail, parts);
  input.header_got += count;
  return count > 0 && (input.header_got < input.header_bytes.size() || take_frame(input, rail));
}

bool TcpReceiver::take_frame(Input& input, std::size_t rail) {
  const std::optional<FrameHeader> frame = decode_frame(input.header_bytes, epoch_);
  if (!frame) {
    paths_[rail].broken = "what came was no frame";
    return false;
  }
  input.header_got = 0;
  acknowledged_ = std::max(acknowledged_, frame->acknowledged);
  input.frame = *frame;
  input.at = frame->offset;
  input.has_frame = frame->length > 0;
  return true;
}

bool TcpReceiver::can_predict(std::size_t rail) const {
  const Input& input = inputs_[rail];
  if (striped_ || input.header_got > 0 || !input.spill.empty() || prefix() < begin_ || prefix() == end_) return false;
  if (ranges_.has_gaps() || !reordered_.empty()) return false;
  return std::ranges::none_of(inputs_, &Input::has_frame);
}

// As read(), into the header of a frame and what follows it. The two headers that begin a message are read as one part,
// and with them what goes to the scratch: each part costs the kernel time, at every look of a spinning receiver.
std::size_t TcpReceiver::read_heads_at_once(std::size_t rail, std::span<iovec> parts) {
  if (parts[1].iov_base != &header_ || parts[1].iov_len != kHeader) return read(rail, parts);
  std::array<std::byte, kHeads> own_heads;
  std::byte* heads = own_heads.data();
  std::array<iovec, 3> fewer = {iovec{heads, kHeads}};
  std::size_t used = 1;
  std::span<iovec> behind = parts.subspan(2);
  if (!behind.empty() && !destination_) {
    heads = scratch_->heads.data();
    fewer[0] = {scratch_.get(), kHeads + behind[0].iov_len};
    behind = behind.subspan(1);
  }
  for (const iovec& part : behind) fewer[used++] = part;
  const std::size_t count = read(rail, std::span(fewer).first(used));
  if (count == 0) return 0;
  std::memcpy(parts[0].iov_base, heads, sizeof(FrameHeader));
  std::memcpy(&header_, heads + sizeof(FrameHeader), kHeader);
  return count;
}

// Reads as if the next frame were the next part of the message. What proves to be something else is spilled.
bool TcpReceiver::read_predicted(std::size_t rail) {
  Input& input = inputs_[rail];
  const std::size_t length = std::min(LinkTuning::kFrame, static_cast<std::size_t>(end_ - prefix()));
  if (!fits_window(prefix() + length)) {
    input.blocked = true;
    return false;
  }
  std::array<iovec, 4> parts = {iovec{input.header_bytes.data(), input.header_bytes.size()}};
  const std::size_t used = 1 + map(prefix(), length, std::span(parts).subspan(1));
  const std::size_t count = read_heads_at_once(rail, std::span(parts).first(used));
  input.header_got = std::min(count, input.header_bytes.size());
  if (input.header_got < input.header_bytes.size()) return count > 0;
  std::size_t behind = count - input.header_bytes.size();
  if (!take_frame(input, rail)) return false;
  if (input.frame.offset == prefix() && input.frame.length == length) {
    input.at += behind;
    passed(input);
    return true;
  }
  for (std::size_t i = 1; i < used && behind > 0; ++i) {
    const auto* bytes = static_cast<const std::byte*>(parts[i].iov_base);
    const std::size_t piece = std::min(behind, parts[i].iov_len);
    input.spill.insert(input.spill.end(), bytes, bytes + piece);
    behind -= piece;
  }
  return true;
}

// Frames that were lost with another rail come again by the only one left, behind what it carried before: that must be
// taken out of their way.
bool TcpReceiver::is_before_gap(const Input& input) const {
  return prefix() < input.frame.offset && std::ranges::count_if(paths_, &DataPath::usable) == 1;
}

TcpReceiver::Target TcpReceiver::target_of(const Input& input) const {
  if (input.is_reordered) return Target::kReorderBuffer;
  if (input.at < prefix()) return Target::kNowhere;
  const bool inside = input.frame.offset >= begin_ && input.frame.offset < end_;
  if (inside && input.frame.offset == begin_ && input.at < begin_ + kHeader) return Target::kDestination;
  const bool fits = inside && input.end() <= end_;
  if (fits && fits_window(input.end())) return Target::kDestination;
  // The channel compares the headers before anything behind one is taken.
  if (inside && input.at > input.frame.offset) return Target::kWait;
  if (fits && !seeking_acknowledgement_ && !is_before_gap(input)) return Target::kWait;
  return reordered_bytes_ + input.frame.length <= kMaxReordered ? Target::kReorderBuffer : Target::kWait;
}

void TcpReceiver::lose(std::size_t rail) {
  if (inputs_[rail].is_reordered) reordered_bytes_ -= inputs_[rail].frame.length;
  inputs_[rail] = {};
}

bool TcpReceiver::read_payload(std::size_t rail) {
  Input& input = inputs_[rail];
  const Target target = target_of(input);
  input.blocked = target == Target::kWait;
  if (input.blocked) return false;
  std::array<iovec, 4> parts{};
  std::size_t used = 1;
  const auto left = static_cast<std::size_t>(input.end() - input.at);
  if (target == Target::kDestination) {
    // A frame that does not fit the message is read only as far as the header that tells why.
    used = map(input.at, input.end() <= end_ ? left : static_cast<std::size_t>(begin_ + kHeader - input.at), parts);
  } else if (target == Target::kReorderBuffer) {
    if (!input.is_reordered) {
      input.is_reordered = true;
      input.reorder_buffer.resize(input.frame.length);
      reordered_bytes_ += input.frame.length;
    }
    parts[0] = {input.reorder_buffer.data() + (input.at - input.frame.offset), left};
  } else {
    discard_.resize(LinkTuning::kFrame);
    parts[0] = {discard_.data(), std::min(left, discard_.size())};
  }
  const std::size_t count = read(rail, std::span(parts).first(used));
  if (count == 0) return false;
  input.at += count;
  passed(input);
  return true;
}

// Bytes up to input.at have come.
void TcpReceiver::passed(Input& input) {
  if (!input.is_reordered && input.frame.offset == begin_ && input.at >= begin_ + kHeader) header_read_ = true;
  if (input.at == input.end()) finish_frame(input);
}

void TcpReceiver::finish_frame(Input& input) {
  ++frames_received_;
  input.has_frame = false;
  if (std::exchange(input.is_reordered, false)) {
    if (input.end() <= prefix() || !reordered_.emplace(input.frame.offset, std::move(input.reorder_buffer)).second) {
      reordered_bytes_ -= input.frame.length;
    }
    input.reorder_buffer = {};
    deliver_reordered();
    return;
  }
  ranges_.add(input.frame.offset, input.end());
}

// Where bytes of the expected message go: its header, its destination, or the scratch, which is a ring.
std::size_t TcpReceiver::map(std::uint64_t at, std::size_t size, std::span<iovec> parts) {
  std::size_t used = 0;
  if (at < begin_ + kHeader) {
    const auto skip = static_cast<std::size_t>(at - begin_);
    const std::size_t count = std::min(size, kHeader - skip);
    parts[used++] = {reinterpret_cast<std::byte*>(&header_) + skip, count};
    at += count;
    size -= count;
  }
  if (size == 0) return used;
  const auto place = static_cast<std::size_t>(at - begin_ - kHeader);
  if (destination_) {
    parts[used++] = {destination_ + place, size};
    return used;
  }
  const std::size_t first = std::min(size, kWindow - place % kWindow);
  parts[used++] = {scratch_->window.data() + place % kWindow, first};
  if (first < size) parts[used++] = {scratch_->window.data(), size - first};
  return used;
}

void TcpReceiver::deliver_reordered() {
  while (!reordered_.empty()) {
    auto& [offset, bytes] = *reordered_.begin();
    const std::uint64_t end = offset + bytes.size();
    if (end > prefix()) {
      if (offset >= end_) return;
      if (offset < begin_ || end > end_ || !fits_window(end)) {
        // A first frame of another size than expected: its header tells the mismatch.
        if (offset == begin_ && end > end_) {
          std::memcpy(&header_, bytes.data(), kHeader);
          header_read_ = true;
        }
        return;
      }
      std::array<iovec, 4> parts{};
      const std::size_t used = map(offset, bytes.size(), parts);
      const std::byte* from = bytes.data();
      for (std::size_t i = 0; i < used; ++i) {
        std::memcpy(parts[i].iov_base, from, parts[i].iov_len);
        from += parts[i].iov_len;
      }
      ranges_.add(offset, end);
    }
    reordered_bytes_ -= bytes.size();
    reordered_.erase(reordered_.begin());
  }
}

std::span<const std::byte> TcpReceiver::window() const {
  if (destination_ || !scratch_) return {};  // nothing waits here
  const std::uint64_t payload = begin_ + kHeader;
  const std::size_t there = prefix() > payload ? static_cast<std::size_t>(prefix() - payload) : 0;
  const std::size_t place = consumed_ % kWindow;
  return {scratch_->window.data() + place, std::min(there - std::min(there, consumed_), kWindow - place)};
}

void TcpReceiver::consume(std::size_t size) {
  consumed_ += size;
  for (Input& input : inputs_) input.blocked = false;
  deliver_reordered();
}

}  // namespace yoke::comm::direct

#include "yoke/comm/direct/retained.h"

#include "yoke/base/check.h"

namespace yoke::comm::direct {
namespace {

// Short messages turn back to the first bytes from here on, however many are not acknowledged.
constexpr std::size_t kShortReach = std::size_t{512} << 10;
constexpr std::size_t kCacheLine = 64;
std::size_t round_up(std::size_t size) { return (size + kCacheLine - 1) / kCacheLine * kCacheLine; }

}  // namespace

// Frames lie in the order of the stream, upwards, then from the bottom again: below those that are still kept, and once
// there is no more room below them, above them.
std::size_t Retained::place_for(std::size_t size, Use use) const {
  if (count_ == 0) return size <= kBytes ? 0 : kNowhere;
  if (count_ == kFrames) return kNowhere;
  const std::size_t head = at(0).position;
  const Frame& last = at(count_ - 1);
  const std::size_t tail = round_up(last.position + last.size);
  const auto above = [size](std::size_t position) { return position + size <= kBytes ? position : kNowhere; };
  if (last.position < head) return tail + size <= head ? tail : above(top_);
  const bool bottom_is_free = size <= head && at(0).offset >= turned_at_;
  // Two ranks that exchange acknowledge all but the last: they get by with two places.
  if (use == Use::kShort && bottom_is_free && (count_ == 1 || tail >= kShortReach)) return 0;
  if (above(tail) != kNowhere) return tail;
  return bottom_is_free ? 0 : kNowhere;
}

std::byte* Retained::keep(std::uint64_t offset, std::size_t size, int rail, Use use) {
  if (!memory_) {
    memory_ = std::make_unique_for_overwrite<std::byte[]>(kBytes);
    frames_.resize(kFrames);
  }
  const std::size_t position = place_for(size, use);
  YOKE_CHECK(position != kNowhere, "no room to keep {} bytes", size);
  if (position == 0 && count_ > 0) {
    const Frame& last = at(count_ - 1);
    top_ = round_up(last.position + last.size);
    turned_at_ = offset;
  }
  ++count_;
  at(count_ - 1) = {.offset = offset, .size = size, .rail = rail, .lost = false, .position = position};
  return memory_.get() + position;
}

void Retained::release_before(std::uint64_t offset) {
  while (count_ > 0 && at(0).offset + at(0).size <= offset) {
    if (at(0).lost) --lost_;
    first_ = (first_ + 1) % kFrames;
    --count_;
  }
}

void Retained::lose(int rail) {
  for (std::size_t i = 0; i < count_; ++i) {
    if (at(i).rail != rail || at(i).lost) continue;
    at(i).lost = true;
    ++lost_;
  }
}

Retained::Frame* Retained::first_lost() {
  if (lost_ == 0) return nullptr;
  for (std::size_t i = 0; i < count_; ++i) {
    if (at(i).lost) return &at(i);
  }
  return nullptr;
}

void Retained::sent_again(Frame& frame, int rail) {
  frame.rail = rail;
  frame.lost = false;
  --lost_;
}

}  // namespace yoke::comm::direct

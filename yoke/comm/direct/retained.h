// Frames that the peer has not acknowledged, kept so that they can be sent again by another rail when the one they
// went by is lost. A bounded store: a sender waits for acknowledgements where it is full. One thread at a time.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace yoke::comm::direct {

class Retained {
 public:
  static constexpr std::size_t kBytes = std::size_t{8} << 20;
  static constexpr std::size_t kFrames = 4096;

  struct Frame {
    std::uint64_t offset = 0;  // in the stream
    std::size_t size = 0;
    int rail = 0;       // it went by
    bool lost = false;  // with its rail, and not sent again yet
    std::size_t position = 0;
  };

  // Short messages come back to the same first bytes of the store, which stay in the cache; long ones use all of it.
  enum class Use { kShort, kLong };
  bool has_room(std::size_t size, Use use) const { return place_for(size, use) != kNowhere; }
  // Where to copy the frame's bytes; has_room() must be true.
  std::byte* keep(std::uint64_t offset, std::size_t size, int rail, Use use);
  void release_before(std::uint64_t offset);

  void lose(int rail);
  bool any_lost() const { return lost_ > 0; }
  Frame* first_lost();  // null where nothing is to be sent again
  void sent_again(Frame& frame, int rail);
  const std::byte* bytes(const Frame& frame) const { return memory_.get() + frame.position; }
  bool empty() const { return count_ == 0; }

 private:
  static constexpr std::size_t kNowhere = SIZE_MAX;
  std::size_t place_for(std::size_t size, Use use) const;
  Frame& at(std::size_t index) { return frames_[(first_ + index) % kFrames]; }
  const Frame& at(std::size_t index) const { return frames_[(first_ + index) % kFrames]; }

  std::unique_ptr<std::byte[]> memory_;
  std::vector<Frame> frames_;  // a ring, in the order of the stream
  std::size_t first_ = 0, count_ = 0;
  std::size_t lost_ = 0;
  std::uint64_t turned_at_ = 0;  // the first frame that was put at the bottom again
  std::size_t top_ = 0;          // the end of those before it
};

}  // namespace yoke::comm::direct

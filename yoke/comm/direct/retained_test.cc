#include "yoke/comm/direct/retained.h"

#include <gtest/gtest.h>

#include <cstring>
#include <deque>
#include <set>

#include "yoke/base/rng_testing.h"

namespace yoke::comm::direct {
namespace {

struct StoredRun {
  std::uint64_t offset = 0;
  std::size_t size = 0;
  const std::byte* bytes = nullptr;
};

// A store and what it was given, which marks each frame with its own byte.
class Store {
 public:
  bool keep(std::size_t size, Retained::Use use) {
    if (!retained_.has_room(size, use)) return false;
    std::byte* place = retained_.keep(offset_, size, 0, use);
    std::memset(place, mark_of(offset_), size);
    kept_.push_back({offset_, size, place});
    offset_ += size;
    return true;
  }
  void acknowledge(std::size_t frames) {
    for (; frames > 0 && !kept_.empty(); --frames) kept_.pop_front();
    retained_.release_before(kept_.empty() ? offset_ : kept_.front().offset);
  }
  std::size_t frames() const { return kept_.size(); }
  std::size_t bytes() const { return kept_.empty() ? 0 : static_cast<std::size_t>(offset_ - kept_.front().offset); }
  const StoredRun& last() const { return kept_.back(); }
  bool is_complete() const {
    for (const StoredRun& frame : kept_) {
      for (std::size_t i = 0; i < frame.size; ++i) {
        if (frame.bytes[i] != std::byte{mark_of(frame.offset)}) return false;
      }
    }
    return true;
  }

 private:
  static unsigned char mark_of(std::uint64_t offset) { return static_cast<unsigned char>(philox(offset, 1)[0]); }

  Retained retained_;
  std::deque<StoredRun> kept_;
  std::uint64_t offset_ = 0;
};

constexpr std::size_t kFrame = std::size_t{128} << 10;

TEST(Retained, KeepsEachFrameWholeUntilItIsReleased) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    Random random(seed);
    Store store;
    for (int i = 0; i < 400; ++i) {
      const bool is_long = random.below(8) == 0;
      const std::size_t size = 32 + random.below(is_long ? kFrame : std::size_t{1} << random.below(17));
      store.keep(size, is_long ? Retained::Use::kLong : Retained::Use::kShort);
      if (random.below(3) == 0) store.acknowledge(random.below(random.below(10) == 0 ? 64 : 4));
      if (i % 16 != 0) continue;
      ASSERT_TRUE(store.is_complete()) << "seed " << seed << ", frame " << i;
    }
    EXPECT_TRUE(store.is_complete()) << "seed " << seed;
  }
}

TEST(Retained, AnExchangeUsesTwoPlaces) {
  Store store;
  std::set<const std::byte*> places;
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(store.keep(32 << 10, Retained::Use::kShort));
    places.insert(store.last().bytes);
    if (store.frames() > 1) store.acknowledge(1);
  }
  EXPECT_EQ(places.size(), 2U);
}

// The one that only receives acknowledges a frame's worth, or 1024 frames: before that nobody may have to wait.
TEST(Retained, HasRoomWhileNoAcknowledgementIsDue) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    Random random(seed);
    Store store;
    for (int i = 0; i < 3000; ++i) {
      const std::size_t size = 32 + random.below(random.below(50) == 0 ? kFrame - 32 : 64);
      ASSERT_TRUE(store.keep(size, Retained::Use::kShort)) << "seed " << seed << ", frame " << i;
      if (store.bytes() >= kFrame || store.frames() >= 1024) store.acknowledge(1 + random.below(store.frames()));
      if (random.below(40) == 0) store.acknowledge(store.frames() - std::min<std::size_t>(store.frames(), 1));
    }
  }
}

}  // namespace
}  // namespace yoke::comm::direct

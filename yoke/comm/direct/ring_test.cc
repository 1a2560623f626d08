#include "yoke/comm/direct/ring.h"

#include <gtest/gtest.h>

#include <unistd.h>

#include <algorithm>
#include <thread>
#include <vector>

#include "yoke/base/error.h"
#include "yoke/base/error_testing.h"
#include "yoke/base/rng_testing.h"
#include "yoke/comm/direct/region.h"

namespace yoke::comm::direct {
namespace {

TEST(Ring, IsFullAtItsCapacityAndEmptyAfterAll) {
  Region region = Region::create(2);
  const RingMemory memory = region.ring(0, 1);
  RingWriter writer(memory);
  RingReader reader(memory);
  EXPECT_EQ(reader.size(), 0U);
  const std::vector<std::byte> all(memory.capacity, std::byte{7});
  writer.write(all);
  EXPECT_EQ(reader.size(), 0U) << "seen before it was published";
  writer.publish();
  EXPECT_EQ(reader.size(), memory.capacity);
  EXPECT_EQ(writer.room(), 0U);
  reader.consume(memory.capacity);
  EXPECT_EQ(reader.size(), 0U);
  EXPECT_EQ(writer.room(), memory.capacity);
}

TEST(Ring, CarriesBytesInOrderBetweenThreads) {
  Region region = Region::create(2);
  // Another mapping, as another process has.
  Region other = Region::adopt(UniqueFd(dup(region.file())), 2);
  constexpr std::size_t kBytes = 20'000'003;
  std::thread writing([&] {
    RingWriter writer(region.ring(0, 1));
    Random random(1);
    std::vector<std::byte> piece;
    for (std::size_t at = 0; at < kBytes;) {
      const std::size_t size = std::min<std::size_t>({1 + random.below(70'000), writer.room_now(), kBytes - at});
      if (size == 0) std::this_thread::yield();
      piece.resize(size);
      for (std::size_t i = 0; i < size; ++i) piece[i] = static_cast<std::byte>((at + i) * 7 % 251);
      writer.write(piece);
      writer.publish();
      at += size;
    }
  });
  RingReader reader(other.ring(0, 1));
  std::size_t wrong = 0;
  for (std::size_t at = 0; at < kBytes;) {
    const std::span<const std::byte> front = reader.front();
    if (front.empty()) std::this_thread::yield();
    for (std::size_t i = 0; i < front.size(); ++i)
      wrong += front[i] == static_cast<std::byte>((at + i) * 7 % 251) ? 0 : 1;
    at += front.size();
    reader.consume(front.size());
  }
  writing.join();
  EXPECT_EQ(wrong, 0U);
}

TEST(Region, OfAnotherSizeIsRefused) {
  Region region = Region::create(3);
  EXPECT_ERROR(Region::adopt(UniqueFd(dup(region.file())), 2), ErrorCode::kInvalid,
               "the shared memory of this node has");
}

}  // namespace
}  // namespace yoke::comm::direct

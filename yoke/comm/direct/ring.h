// A ring of bytes in shared memory from one writer to one reader, each a thread or process of its own. The two counters
// only grow and lie in cache lines of their own. The writer keeps what it last saw of the reader's, so that the
// reader's line is touched only when the ring looks full.
#pragma once
#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "yoke/base/check.h"

namespace yoke::comm::direct {

struct RingWords {
  alignas(64) std::atomic<std::uint64_t> tail{0};  // bytes ever written
  alignas(64) std::atomic<std::uint64_t> head{0};  // bytes ever consumed
};
static_assert(std::atomic<std::uint64_t>::is_always_lock_free, "other processes see the same atomics");

struct RingMemory {
  RingWords* words = nullptr;
  std::byte* data = nullptr;
  std::size_t capacity = 0;  // a power of two
};

// The counters are stored and read in the one order of all seq_cst accesses: a side that publishes and then sees the
// other not waiting can rely on the other's seeing what was published before it sleeps.
class RingWriter {
 public:
  explicit RingWriter(RingMemory memory) : ring_(memory) {}

  std::size_t room() {
    if (tail_ - head_seen_ == ring_.capacity) look();
    return ring_.capacity - static_cast<std::size_t>(tail_ - head_seen_);
  }
  // For a write that wants more than room() last told.
  std::size_t room_now() {
    look();
    return ring_.capacity - static_cast<std::size_t>(tail_ - head_seen_);
  }
  // At most room() bytes; the reader sees them once they are published.
  void write(std::span<const std::byte> bytes) {
    const std::size_t at = static_cast<std::size_t>(tail_) & (ring_.capacity - 1);
    const std::size_t first = std::min(bytes.size(), ring_.capacity - at);
    std::memcpy(ring_.data + at, bytes.data(), first);
    if (first < bytes.size()) std::memcpy(ring_.data, bytes.data() + first, bytes.size() - first);
    tail_ += bytes.size();
  }
  void publish() { ring_.words->tail.store(tail_, std::memory_order_seq_cst); }

 private:
  void look() {
    head_seen_ = ring_.words->head.load(std::memory_order_seq_cst);
    YOKE_CHECK(tail_ - head_seen_ <= ring_.capacity, "the reader is at {}, the writer at {}", head_seen_, tail_);
  }
  RingMemory ring_;
  std::uint64_t tail_ = 0, head_seen_ = 0;
};

class RingReader {
 public:
  explicit RingReader(RingMemory memory) : ring_(memory) {}

  std::size_t size() {
    const std::uint64_t tail = ring_.words->tail.load(std::memory_order_seq_cst);
    YOKE_CHECK(tail - head_ <= ring_.capacity, "the writer is at {}, the reader at {}", tail, head_);
    return static_cast<std::size_t>(tail - head_);
  }
  // The next bytes as far as they lie in one piece.
  std::span<const std::byte> front() {
    const std::size_t at = static_cast<std::size_t>(head_) & (ring_.capacity - 1);
    return {ring_.data + at, std::min(size(), ring_.capacity - at)};
  }
  void consume(std::size_t count) {
    head_ += count;
    ring_.words->head.store(head_, std::memory_order_seq_cst);
  }

 private:
  RingMemory ring_;
  std::uint64_t head_ = 0;
};

}  // namespace yoke::comm::direct

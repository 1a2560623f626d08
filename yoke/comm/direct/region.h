// The memory that the ranks of one node share: a ring for each ordered pair, and a word for each rank that says it
// sleeps. It is an anonymous file handed from process to process, so nothing is left of it when the last one ends,
// however it ends. Ranks are counted within the node here.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "yoke/base/files.h"
#include "yoke/comm/direct/ring.h"

namespace yoke::comm::direct {

class Region {
 public:
  static Region create(int ranks);
  // What another rank created; throws Error(kInvalid) where it is not for so many.
  static Region adopt(UniqueFd file, int ranks);
  Region(Region&& other) noexcept;
  Region& operator=(Region&&) = delete;
  ~Region();

  int file() const { return file_.get(); }
  RingMemory ring(int from, int to) const;
  std::atomic<std::uint32_t>& sleeping(int rank) const;

 private:
  Region(UniqueFd file, int ranks);
  UniqueFd file_;
  int ranks_;
  std::byte* base_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace yoke::comm::direct

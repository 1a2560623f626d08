#include "yoke/comm/direct/region.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <new>
#include <utility>

#include "yoke/base/error.h"

namespace yoke::comm::direct {
namespace {

// Of a ring. Sizes from 128 KiB to 2 MiB were measured: the larger the faster, by 8% in all.
constexpr std::size_t kRingBytes = std::size_t{1} << 20;
constexpr std::size_t kLine = 64;
static_assert(sizeof(RingWords) == 2 * kLine);

std::size_t rings_begin(int ranks) { return static_cast<std::size_t>(ranks) * kLine; }
std::size_t data_begin(int ranks) {
  const auto n = static_cast<std::size_t>(ranks);
  constexpr std::size_t kPage = 4096;
  return (rings_begin(ranks) + n * n * sizeof(RingWords) + kPage - 1) / kPage * kPage;
}
std::size_t region_size(int ranks) {
  const auto n = static_cast<std::size_t>(ranks);
  return data_begin(ranks) + n * n * kRingBytes;  // pages of rings that nobody uses are never there
}

}  // namespace

Region Region::create(int ranks) {
  UniqueFd file(memfd_create("yoke-direct", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!file) throw system_error(errno, "cannot make shared memory");
  if (ftruncate(file.get(), static_cast<off_t>(region_size(ranks))) != 0) {
    throw system_error(errno, fmt::format("cannot make shared memory of {} bytes", region_size(ranks)));
  }
  // Of one size for ever: a rank that cut it short would kill the others by SIGBUS.
  fcntl(file.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW);
  return Region(std::move(file), ranks);  // zeros are what the words start with
}

Region Region::adopt(UniqueFd file, int ranks) {
  struct stat info {};
  if (fstat(file.get(), &info) != 0) throw system_error(errno, "cannot look at the shared memory of this node");
  if (info.st_size != static_cast<off_t>(region_size(ranks))) {
    throw Error(ErrorCode::kInvalid,
                fmt::format("the shared memory of this node has {} bytes, not {}", info.st_size, region_size(ranks)),
                "are all ranks of one version of yoke?");
  }
  return Region(std::move(file), ranks);
}

Region::Region(UniqueFd file, int ranks) : file_(std::move(file)), ranks_(ranks), size_(region_size(ranks)) {
  void* mapped = mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_SHARED, file_.get(), 0);
  if (mapped == MAP_FAILED) throw system_error(errno, "cannot map the shared memory of this node");
  base_ = static_cast<std::byte*>(mapped);
}

Region::Region(Region&& other) noexcept
    : file_(std::move(other.file_)),
      ranks_(other.ranks_),
      base_(std::exchange(other.base_, nullptr)),
      size_(other.size_) {}

Region::~Region() {
  if (base_) munmap(base_, size_);
}

RingMemory Region::ring(int from, int to) const {
  const auto index = static_cast<std::size_t>(from) * static_cast<std::size_t>(ranks_) + static_cast<std::size_t>(to);
  return {std::launder(reinterpret_cast<RingWords*>(base_ + rings_begin(ranks_) + index * sizeof(RingWords))),
          base_ + data_begin(ranks_) + index * kRingBytes, kRingBytes};
}

std::atomic<std::uint32_t>& Region::sleeping(int rank) const {
  return *std::launder(reinterpret_cast<std::atomic<std::uint32_t>*>(base_ + static_cast<std::size_t>(rank) * kLine));
}

}  // namespace yoke::comm::direct

// Memory of the reference backend: the system's, committed when it is allocated.
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>

#include "yoke/base/error.h"
#include "yoke/ops/ref/backend.h"

namespace yoke::ops::ref {
namespace {

constexpr std::size_t kHugePage = std::size_t{2} << 20;

std::size_t up_to(std::size_t bytes, std::size_t step) { return (bytes + step - 1) / step * step; }

}  // namespace

class RefMemory final : public SlabMemory {
 public:
  RefMemory(RefBackend& ops, const tensor::Shape& shape, tensor::DType type) : SlabMemory({0, shape, type}), ops_(ops) {
    const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    const bool huge = slab_.bytes() >= kHugePage;
    size_ = up_to(std::max<std::size_t>(slab_.bytes(), 1), page);
    mapped_ = size_ + (huge ? kHugePage : 0);
    void* const memory = mapped_ < (std::size_t{1} << 47) ? mmap(nullptr, mapped_, PROT_READ | PROT_WRITE,
                                                                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)
                                                          : MAP_FAILED;
    if (memory == MAP_FAILED) {
      throw Error(ErrorCode::kExhausted, fmt::format("there is no memory for {} bytes", slab_.bytes()),
                  "use more nodes, a smaller model or a shorter context");
    }
    base_ = static_cast<std::byte*>(memory);
    const auto at = reinterpret_cast<std::uintptr_t>(base_);
    data_ = huge ? reinterpret_cast<std::byte*>(up_to(at, kHugePage)) : base_;
    // Whole huge pages only: the rest would take one more of them.
    if (huge) madvise(data_, size_ / kHugePage * kHugePage, MADV_HUGEPAGE);
    slab_.address = reinterpret_cast<std::uint64_t>(data_);
    commit(page);
    if (ops_.dark_) ops_.blocks_.insert(this);
    protect(ops_.dark_ && ops_.looking_ == 0 ? PROT_NONE : PROT_READ | PROT_WRITE);
  }
  ~RefMemory() override {
    ops_.blocks_.erase(this);
    munmap(base_, mapped_);
  }
  void protect(int rights) const {
    if (ops_.dark_) mprotect(data_, size_, rights);
  }

 private:
  // Every page is written to once: what is not touched is not there yet, and may be gone when it is needed.
  void commit(std::size_t page) const {
    const auto pages = static_cast<std::int64_t>(size_ / page);
    ops_.pool_.parallel_for(pages, 512, [&](tensor::Range range) {
      for (std::int64_t i = range.begin; i < range.end; ++i) {
        static_cast<volatile std::byte*>(data_)[static_cast<std::size_t>(i) * page] = std::byte{0};
      }
    });
  }

  RefBackend& ops_;
  std::byte* base_ = nullptr;
  std::byte* data_ = nullptr;
  std::size_t size_ = 0, mapped_ = 0;
};

std::unique_ptr<SlabMemory> RefBackend::allocate(const tensor::Shape& shape, tensor::DType type) {
  return std::make_unique<RefMemory>(*this, shape, type);
}

void RefBackend::look(int change) {
  if (!dark_) return;
  const bool saw = looking_ > 0;
  looking_ += change;
  if (saw == (looking_ > 0)) return;
  for (SlabMemory* const block : blocks_) {
    static_cast<RefMemory*>(block)->protect(looking_ > 0 ? PROT_READ | PROT_WRITE : PROT_NONE);
  }
}

void RefBackend::upload(std::span<const std::byte> from, const Slab& to) {
  const Sight sight(*this);
  YOKE_CHECK_EQ(from.size(), to.bytes());
  if (!from.empty()) std::memcpy(reinterpret_cast<void*>(to.address), from.data(), from.size());
}

void RefBackend::download(const Slab& from, std::span<std::byte> to) {
  const Sight sight(*this);
  YOKE_CHECK_EQ(from.bytes(), to.size());
  if (!to.empty()) std::memcpy(to.data(), reinterpret_cast<const void*>(from.address), to.size());
}

}  // namespace yoke::ops::ref

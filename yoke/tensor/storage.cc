#include "yoke/tensor/storage.h"

#include <fmt/format.h>

#include <cstdlib>

#include "yoke/base/check.h"
#include "yoke/base/error.h"

namespace yoke::tensor {

Storage Storage::allocate(std::size_t size) {
  constexpr std::size_t kAddressSpace = std::size_t{1} << 47;  // what is beyond need not be asked for
  // aligned_alloc wants a multiple of the alignment; the rest also lets kernels read whole vectors at the end.
  const std::size_t rounded = (size + kStorageAlignment - 1) / kStorageAlignment * kStorageAlignment;
  void* const memory = size < kAddressSpace ? std::aligned_alloc(kStorageAlignment, rounded) : nullptr;
  if (memory == nullptr && size > 0) {
    throw Error(ErrorCode::kExhausted, fmt::format("there is no memory for {} bytes", size),
                "use more nodes, a smaller model or a shorter context");
  }
  return {Kind::kOwned, {static_cast<std::byte*>(memory), size}, std::shared_ptr<const void>(memory, std::free)};
}

Storage Storage::borrow(std::span<std::byte> bytes) { return {Kind::kBorrowed, bytes, nullptr}; }

Storage Storage::mapped(std::span<const std::byte> bytes, std::shared_ptr<const void> keeper) {
  // The cast loses nothing: mutable_data() refuses mapped bytes.
  return {Kind::kMapped, {const_cast<std::byte*>(bytes.data()), bytes.size()}, std::move(keeper)};
}

std::byte* Storage::mutable_data() const {
  YOKE_CHECK(kind_ != Kind::kMapped, "{} mapped bytes are read-only", size_);
  return data_;
}

}  // namespace yoke::tensor

// The bytes under tensors, and how they are held: owned (ours, aligned to 64 bytes), mapped (a read-only piece of a
// file) or borrowed (somebody else keeps them alive). A Storage is a cheap handle: copies share the same bytes, which
// go with the last handle. Handles may be copied and dropped on any thread; who writes the bytes arranges that alone.
#pragma once
#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>

namespace yoke::tensor {

inline constexpr std::size_t kStorageAlignment = 64;  // a cache line, and the widest vector register

class Storage {
 public:
  enum class Kind { kOwned, kMapped, kBorrowed };

  Storage() = default;  // no bytes
  // Uninitialized; Error(kExhausted) where the system has no memory.
  static Storage allocate(std::size_t size);
  static Storage borrow(std::span<std::byte> bytes);
  // The bytes live as long as `keeper` does.
  static Storage mapped(std::span<const std::byte> bytes, std::shared_ptr<const void> keeper);

  Kind kind() const { return kind_; }
  std::size_t size() const { return size_; }
  const std::byte* data() const { return data_; }
  std::byte* mutable_data() const;  // a mapped file is never written: asking for it is a bug
  const std::shared_ptr<const void>& keeper() const { return keeper_; }

 private:
  Storage(Kind kind, std::span<std::byte> bytes, std::shared_ptr<const void> keeper)
      : kind_(kind), data_(bytes.data()), size_(bytes.size()), keeper_(std::move(keeper)) {}

  Kind kind_ = Kind::kOwned;
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
  std::shared_ptr<const void> keeper_;
};

}  // namespace yoke::tensor

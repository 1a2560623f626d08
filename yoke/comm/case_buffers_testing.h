// Buffers of the one test body over all backends (communicator_cases.h): memory of the backend's device with guard
// bytes around it, and what a rank's elements are. Only tests include this; everything belongs to one rank's thread.
#pragma once
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "yoke/base/check.h"
#include "yoke/comm/communicator.h"

namespace yoke::comm {

// Where a backend's buffers live. Memory stays until the arena ends.
class CaseArena {
 public:
  virtual ~CaseArena() = default;
  virtual std::byte* allocate(std::size_t bytes) = 0;  // aligned to 64 bytes at least
  virtual void write(std::byte* to, const std::byte* from, std::size_t bytes) = 0;
  virtual void read(std::byte* to, const std::byte* from, std::size_t bytes) = 0;
};

class HostArena final : public CaseArena {
 public:
  std::byte* allocate(std::size_t bytes) override {
    blocks_.push_back(std::make_unique<std::byte[]>(bytes + kAlignment));
    void* start = blocks_.back().get();
    std::size_t space = bytes + kAlignment;
    return static_cast<std::byte*>(std::align(kAlignment, bytes, start, space));
  }
  void write(std::byte* to, const std::byte* from, std::size_t bytes) override { std::memcpy(to, from, bytes); }
  void read(std::byte* to, const std::byte* from, std::size_t bytes) override { std::memcpy(to, from, bytes); }

 private:
  static constexpr std::size_t kAlignment = 64;
  std::vector<std::unique_ptr<std::byte[]>> blocks_;
};

// A buffer on the device and the image that it ought to have, both with a margin of guard bytes on either side. Every
// byte counts: what an operation must not write is compared too.
class GuardedBuffer {
 public:
  static constexpr std::size_t kMargin = 64;
  static constexpr std::byte kGuard{0xa5};

  GuardedBuffer(CaseArena& arena, std::size_t bytes_max)
      : arena_(arena), capacity_(bytes_max + 3 * kMargin), device_(arena.allocate(capacity_)) {}

  // A fresh image of `bytes` guard bytes, beginning `misalignment` bytes off.
  void reset(std::size_t bytes, std::size_t misalignment) {
    YOKE_CHECK_LE(kMargin + misalignment + bytes + kMargin, capacity_);
    start_ = kMargin + misalignment;
    image_.assign(start_ + bytes + kMargin, kGuard);
  }
  std::byte* image(std::size_t offset) { return image_.data() + start_ + offset; }
  std::byte* device(std::size_t offset = 0) { return device_ + start_ + offset; }
  std::size_t bytes() const { return image_.size() - start_ - kMargin; }

  void upload() { arena_.write(device_, image_.data(), image_.size()); }
  // Where the device differs from the image, in words; nothing where it does not.
  std::optional<std::string> difference() {
    found_.resize(image_.size());
    arena_.read(found_.data(), device_, found_.size());
    if (std::memcmp(found_.data(), image_.data(), image_.size()) == 0) return std::nullopt;
    const auto [found, expected] = std::mismatch(found_.begin(), found_.end(), image_.begin());
    return fmt::format("byte {} of {} is {:#04x} instead of {:#04x}",
                       found - found_.begin() - static_cast<long>(start_), bytes(), std::to_integer<int>(*found),
                       std::to_integer<int>(*expected));
  }

 private:
  CaseArena& arena_;
  std::size_t capacity_;
  std::byte* device_;
  std::size_t start_ = kMargin;
  std::vector<std::byte> image_, found_;
};

// The value, in quarters, that `rank` contributes at `index`: -8 to 7, so that sums over 8 ranks are exact in each type
// (in i8, the narrowest, up to 15 ranks). `salt` differs from case to case: what an earlier case left does not pass.
inline int case_value(int rank, std::size_t index, std::uint32_t salt) {
  std::uint32_t hash = static_cast<std::uint32_t>(index) * 2654435761U + static_cast<std::uint32_t>(rank) * 0x9e3779b1U;
  hash = (hash ^ (hash >> 15) ^ salt) * 0x85ebca6bU;
  return static_cast<int>(hash >> 28) - 8;
}

// Writes the elements of function(index), given as quarters for the types with a fraction.
template <class Function>
void write_elements(std::byte* to, std::size_t count, tensor::DType type, Function function) {
  const auto write = [&](auto convert) {
    for (std::size_t i = 0; i < count; ++i) {
      const auto element = convert(function(i));
      std::memcpy(to + i * sizeof(element), &element, sizeof(element));
    }
  };
  switch (type) {
    case tensor::DType::kF32:
      return write([](int quarters) { return static_cast<float>(quarters) * 0.25F; });
    case tensor::DType::kBf16:
      return write([](int quarters) { return tensor::to_bf16(static_cast<float>(quarters) * 0.25F).bits; });
    case tensor::DType::kF16:
      return write([](int quarters) { return tensor::to_f16(static_cast<float>(quarters) * 0.25F).bits; });
    case tensor::DType::kI8:
      return write([](int value) { return static_cast<std::int8_t>(value); });
    case tensor::DType::kI32:
      return write([](int value) { return std::int32_t{value}; });
    default:
      YOKE_CHECK(false, "{} is in no case", tensor::to_string(type));
  }
}

}  // namespace yoke::comm

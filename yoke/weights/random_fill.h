// Random content for the tensors of a made model: fast (about 2 GB/s on one core), and a pure function of a key and of
// the place in the tensor, so that pieces can be made in any order and the same seed makes the same model everywhere.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "yoke/tensor/dtype.h"

namespace yoke::weights {

// SplitMix64 (Steele, Lea, Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014) read as a counter:
// the word at a position costs two multiplications. Philox (base/rng.h) is stronger, and five times as slow.
class RandomWords {
 public:
  RandomWords(std::uint64_t seed, std::string_view tensor);

  std::uint64_t operator()(std::uint64_t position) const {
    std::uint64_t x = key_ + (position + 1) * 0x9E3779B97F4A7C15;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EB;
    return x ^ (x >> 31);
  }

 private:
  std::uint64_t key_;
};

// Writes the bytes of a tensor from `offset` on. Offsets are multiples of kFillStep, and so are sizes, but for the
// tensor's end.
using Fill = std::function<void(std::uint64_t offset, std::span<std::byte> out)>;
inline constexpr std::size_t kFillStep = 64;

// Normally distributed numbers as a table of 65536 quantiles in the bits of an element type: 16 random bits draw one.
// The mean is exactly zero.
class NormalTable {
 public:
  NormalTable(tensor::DType type, double deviation);  // kF32, kBf16, kF16 or kF8E4m3
  tensor::DType type() const { return type_; }
  std::span<const std::byte> bits() const { return bits_; }

 private:
  tensor::DType type_;
  std::vector<std::byte> bits_;
};
// The largest number that a table of deviation 1 holds.
double normal_table_largest();

Fill fill_normal(std::shared_ptr<const NormalTable> table, RandomWords words);
// Symmetric int4 codes, eight to a word: -7 to 7 with 0 twice as likely as others. Code 0, which means -8, is left out:
// with it the mean would be -1/2, and that common part would outweigh all that is random in a large matrix.
Fill fill_int4(RandomWords words);
inline constexpr double kInt4Deviation = 4.183300132670378;  // sqrt(2 * (1 + 4 + … + 49) / 16)
// Symmetric int8 codes with 128 for 0, -127 to 127 with 0 twice as likely as others.
Fill fill_int8(RandomWords words);
inline constexpr double kInt8Deviation = 73.46768224772764;  // sqrt(2 * (1 + 4 + … + 127^2) / 256)
// E2M1 codes, two to a byte, all sixteen equally likely.
Fill fill_fp4(RandomWords words);
inline constexpr double kFp4Deviation = 2.926174977679906;  // sqrt(2 * (0.25 + 1 + … + 36) / 16)
// Positive numbers from 3/4 to 5/4 of `middle`, so that a scale at the wrong place changes the result.
Fill fill_scales(tensor::DType type, double middle, RandomWords words);  // kBf16 or kF8E4m3
// The same bytes again and again; their number must divide kFillStep.
Fill fill_repeated(std::vector<std::byte> element);

}  // namespace yoke::weights

#include "yoke/weights/random_fill.h"

#include <cmath>
#include <cstring>
#include <numbers>

#include "yoke/base/check.h"
#include "yoke/base/rng.h"

namespace yoke::weights {
namespace {

constexpr std::size_t kQuantiles = 1 << 16;

// FNV-1a: what a tensor holds depends on its name alone, not on the layers before it.
std::uint64_t hash_of(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash;
}

// The upper half of the quantiles at (i + 1/2) / 65536, by Newton's method on the upper tail, each from the one before.
// Rounded to 2^-20, so that the last bits of a machine's erfc and exp do not show.
std::vector<double> upper_quantiles() {
  std::vector<double> upper;
  double x = 0;
  for (std::size_t i = 0; i < kQuantiles / 2; ++i) {
    const double tail = 0.5 - (static_cast<double>(i) + 0.5) / kQuantiles;
    for (int step = 0; step < 8; ++step) {
      const double density = std::exp(-x * x / 2) / std::sqrt(2 * std::numbers::pi);
      x += (std::erfc(x / std::numbers::sqrt2) / 2 - tail) / density;
    }
    upper.push_back(std::round(x * 0x1p20) * 0x1p-20);
  }
  return upper;
}

const std::vector<double>& cached_upper_quantiles() {
  static const std::vector<double> quantiles = upper_quantiles();
  return quantiles;
}

std::uint32_t bits_of(tensor::DType type, float value) {
  switch (type) {
    case tensor::DType::kF32:
      return std::bit_cast<std::uint32_t>(value);
    case tensor::DType::kBf16:
      return tensor::to_bf16(value).bits;
    case tensor::DType::kF16:
      return tensor::to_f16(value).bits;
    case tensor::DType::kF8E4m3:
      return tensor::to_f8e4m3(value).bits;
    default:
      break;
  }
  YOKE_CHECK(false, "{}", tensor::to_string(type));
  return 0;
}

template <class Bits>
void draw(const NormalTable& table, const RandomWords& words, std::uint64_t offset, std::span<std::byte> out) {
  const Bits* const values = reinterpret_cast<const Bits*>(table.bits().data());
  const std::size_t count = out.size() / sizeof(Bits);
  std::uint64_t position = offset / sizeof(Bits) / 4;  // one word draws four
  for (std::size_t i = 0; i < count; i += 4) {
    std::uint64_t word = words(position++);
    Bits four[4];
    for (Bits& value : four) {
      value = values[word & 0xffff];
      word >>= 16;
    }
    std::memcpy(out.data() + i * sizeof(Bits), four, std::min<std::size_t>(4, count - i) * sizeof(Bits));
  }
}

template <class Change>
void fill_words(const RandomWords& words, std::uint64_t offset, std::span<std::byte> out, Change change) {
  std::uint64_t position = offset / sizeof(std::uint64_t);
  for (std::size_t i = 0; i < out.size(); i += sizeof(std::uint64_t)) {
    const std::uint64_t word = change(words(position++));
    std::memcpy(out.data() + i, &word, std::min(sizeof word, out.size() - i));
  }
}

}  // namespace

RandomWords::RandomWords(std::uint64_t seed, std::string_view tensor) {
  const PhiloxBlock block = philox(seed, hash_of(tensor));
  key_ = std::uint64_t{block[0]} << 32 | block[1];
}

NormalTable::NormalTable(tensor::DType type, double deviation)
    : type_(type), bits_(kQuantiles * tensor::size_of(type)) {
  const std::vector<double>& upper = cached_upper_quantiles();
  const auto put = [&](std::size_t index, double value) {
    const std::uint32_t bits = bits_of(type, static_cast<float>(value * deviation));
    std::memcpy(bits_.data() + index * tensor::size_of(type), &bits,
                tensor::size_of(type));  // little-endian, as files are
  };
  for (std::size_t i = 0; i < upper.size(); ++i) {
    put(kQuantiles / 2 + i, upper[i]);
    put(kQuantiles / 2 - 1 - i, -upper[i]);
  }
}

double normal_table_largest() { return cached_upper_quantiles().back(); }

Fill fill_normal(std::shared_ptr<const NormalTable> table, RandomWords words) {
  return [table = std::move(table), words](std::uint64_t offset, std::span<std::byte> out) {
    switch (tensor::size_of(table->type())) {
      case 1:
        return draw<std::uint8_t>(*table, words, offset, out);
      case 2:
        return draw<std::uint16_t>(*table, words, offset, out);
      default:
        return draw<std::uint32_t>(*table, words, offset, out);
    }
  };
}

Fill fill_int4(RandomWords words) {
  return [words](std::uint64_t offset, std::span<std::byte> out) {
    fill_words(words, offset, out, [](std::uint64_t word) {
      const std::uint64_t zeros = ~(word | word >> 1 | word >> 2 | word >> 3) & 0x1111111111111111;
      return word | zeros << 3;  // a nibble of 0 becomes 8, which means 0
    });
  };
}

Fill fill_int8(RandomWords words) {
  return [words](std::uint64_t offset, std::span<std::byte> out) {
    fill_words(words, offset, out, [](std::uint64_t word) {
      constexpr std::uint64_t kLows = 0x0101010101010101;
      std::uint64_t any = word | word >> 4;
      any |= any >> 2;
      any |= any >> 1;
      return word | (~any & kLows) << 7;  // a byte of 0 becomes 128, which means 0
    });
  };
}

Fill fill_fp4(RandomWords words) {
  return [words](std::uint64_t offset, std::span<std::byte> out) {
    fill_words(words, offset, out, [](std::uint64_t word) { return word; });
  };
}

Fill fill_scales(tensor::DType type, double middle, RandomWords words) {
  return [type, middle, words](std::uint64_t offset, std::span<std::byte> out) {
    const std::size_t size = tensor::size_of(type);
    for (std::size_t i = 0; i < out.size() / size; ++i) {
      const auto word = static_cast<std::uint32_t>(words(offset / size + i));
      const double factor = 0.75 + 0.5 * static_cast<double>(to_unit_float(word));
      const std::uint32_t bits = bits_of(type, static_cast<float>(middle * factor));
      std::memcpy(out.data() + i * size, &bits, size);
    }
  };
}

Fill fill_repeated(std::vector<std::byte> element) {
  YOKE_CHECK(!element.empty() && kFillStep % element.size() == 0, "{}", element.size());
  return [element = std::move(element)](std::uint64_t, std::span<std::byte> out) {
    for (std::size_t i = 0; i < out.size(); i += element.size()) {
      std::memcpy(out.data() + i, element.data(), std::min(element.size(), out.size() - i));
    }
  };
}

}  // namespace yoke::weights

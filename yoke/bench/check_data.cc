#include "yoke/bench/check_data.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>

namespace yoke::bench {
namespace {

// The largest whole number up to which every whole number is exact.
int exact_up_to(tensor::DType type) {
  switch (type) {
    case tensor::DType::kI8:
      return 127;
    case tensor::DType::kBf16:
      return 256;
    case tensor::DType::kF16:
      return 2048;
    default:
      return 1 << 20;
  }
}

bool is_float(tensor::DType type) {
  return type == tensor::DType::kF32 || type == tensor::DType::kBf16 || type == tensor::DType::kF16;
}

// Calls use(element) with a value of the C++ type behind `type`, so that loops are compiled per type.
template <class Use>
auto with_type(tensor::DType type, Use use) {
  switch (type) {
    case tensor::DType::kBf16:
    case tensor::DType::kF16:
      return use(std::uint16_t{});
    case tensor::DType::kI8:
      return use(std::int8_t{});
    case tensor::DType::kI32:
      return use(std::int32_t{});
    default:
      return use(float{});
  }
}

template <class Element>
Element encode(tensor::DType type, double value) {
  if constexpr (std::is_same_v<Element, std::uint16_t>) {
    const auto single = static_cast<float>(value);
    return type == tensor::DType::kBf16 ? tensor::to_bf16(single).bits : tensor::to_f16(single).bits;
  } else {
    return static_cast<Element>(value);
  }
}

// Buffers may be misaligned on purpose (-u), so elements are copied, which compiles to plain loads and stores.
template <class Element, class Code>
void fill(void* data, std::size_t count, const std::array<double, 256>& values, tensor::DType type, Code code) {
  std::array<Element, 256> table;
  for (std::size_t i = 0; i < table.size(); ++i) table[i] = encode<Element>(type, values[i]);
  auto* bytes = static_cast<std::byte*>(data);
  for (std::size_t i = 0; i < count; ++i) std::memcpy(bytes + i * sizeof(Element), &table[code(i)], sizeof(Element));
}

// How far apart two values of one float type are, in steps of that type.
std::int64_t steps_between(tensor::DType type, std::uint32_t a, std::uint32_t b) {
  const unsigned bits = type == tensor::DType::kF32 ? 32 : 16;
  const auto ordered = [bits](std::uint32_t value) {
    const std::uint32_t sign = 1U << (bits - 1);
    return value & sign ? -static_cast<std::int64_t>(value & (sign - 1)) : static_cast<std::int64_t>(value);
  };
  return std::llabs(ordered(a) - ordered(b));
}

template <class Element, class Code>
std::int64_t count_wrong(const void* data, std::size_t count, const std::array<double, 256>& values, tensor::DType type,
                         std::int64_t steps_allowed, Code code) {
  std::array<Element, 256> table;
  for (std::size_t i = 0; i < table.size(); ++i) table[i] = encode<Element>(type, values[i]);
  const auto* bytes = static_cast<const std::byte*>(data);
  std::int64_t wrong = 0;
  for (std::size_t i = 0; i < count; ++i) {
    Element got;
    std::memcpy(&got, bytes + i * sizeof(Element), sizeof(Element));
    const Element& wanted = table[code(i)];
    if (std::memcmp(&got, &wanted, sizeof(Element)) == 0) continue;
    std::uint32_t got_bits = 0, wanted_bits = 0;
    std::memcpy(&got_bits, &got, sizeof(Element));
    std::memcpy(&wanted_bits, &wanted, sizeof(Element));
    if (steps_allowed == 0 || steps_between(type, got_bits, wanted_bits) > steps_allowed) ++wrong;
  }
  return wrong;
}

}  // namespace

CheckData::CheckData(tensor::DType type, comm::ReduceOp op, int ranks, std::uint32_t round)
    : type_(type), op_(op), ranks_(ranks), round_(round) {
  digits_ = std::clamp(exact_up_to(type) / ranks, 1, 7) + 1;
}

// Two rounds of multiply and shift (the finalizer of MurmurHash3) spread neighbours over all codes.
std::size_t CheckData::code_of(std::size_t position, std::uint32_t stream) const {
  std::uint64_t h = position * 0x9e3779b97f4a7c15ULL + (std::uint64_t{stream} << 32 | round_) * 0xc2b2ae3d27d4eb4fULL;
  h ^= h >> 29;
  h *= 0xbf58476d1ce4e5b9ULL;
  return static_cast<std::size_t>(h >> 56);
}

// A code's lower three bits, plus the rank, choose the digit; further bits choose sign and scale, the same on all
// ranks. Beyond as many ranks as the type can add, the rest contribute nothing.
CheckData::Values CheckData::inputs_of(int rank) const {
  Values values{};
  for (std::size_t code = 0; code < kCodes; ++code) {
    const int digit = rank < exact_up_to(type_) ? (static_cast<int>(code & 7U) + rank) % digits_ : 0;
    const double sign = code & 8U ? -1 : 1;
    const double scale = is_float(type_) ? std::ldexp(1.0, static_cast<int>(code >> 4 & 3U) - 2) : 1;
    values[code] = digit == 0 ? 0 : sign * scale * digit;  // no negative zero: max of -0 and 0 is either
  }
  return values;
}

CheckData::Values CheckData::results() const {
  Values results = inputs_of(0);
  for (int rank = 1; rank < ranks_; ++rank) {
    const Values inputs = inputs_of(rank);
    for (std::size_t code = 0; code < kCodes; ++code) {
      double& result = results[code];
      if (op_ == comm::ReduceOp::kMax) {
        result = std::max(result, inputs[code]);
      } else if (op_ == comm::ReduceOp::kMin) {
        result = std::min(result, inputs[code]);
      } else {
        result += inputs[code];
      }
    }
  }
  if (op_ == comm::ReduceOp::kAvg) {
    for (double& result : results) result = is_float(type_) ? result / ranks_ : std::trunc(result / ranks_);
  }
  return results;
}

void CheckData::fill_input(void* data, std::size_t first, std::size_t count, int rank) const {
  const Values values = inputs_of(rank);
  with_type(type_, [&](auto element) {
    fill<decltype(element)>(data, count, values, type_, [&](std::size_t i) { return code_of(first + i, 0); });
  });
}

std::int64_t CheckData::count_wrong_result(const void* data, std::size_t first, std::size_t count) const {
  const Values values = results();
  const std::int64_t steps =
      op_ == comm::ReduceOp::kAvg && is_float(type_) ? 2 : 0;  // as nccl-tests allows: a·(1/n) or a/n
  return with_type(type_, [&](auto element) {
    return count_wrong<decltype(element)>(data, count, values, type_, steps,
                                          [&](std::size_t i) { return code_of(first + i, 0); });
  });
}

static std::array<double, 256> moved_values() {
  std::array<double, 256> values;
  for (std::size_t code = 0; code < values.size(); ++code) values[code] = static_cast<double>(code) - 128;
  return values;
}

void CheckData::fill_moved(void* data, std::size_t first, std::size_t count, int source) const {
  with_type(type_, [&](auto element) {
    fill<decltype(element)>(data, count, moved_values(), type_,
                            [&](std::size_t i) { return code_of(first + i, static_cast<std::uint32_t>(source) + 1); });
  });
}

std::int64_t CheckData::count_wrong_moved(const void* data, std::size_t first, std::size_t count, int source) const {
  return with_type(type_, [&](auto element) {
    return count_wrong<decltype(element)>(data, count, moved_values(), type_, 0, [&](std::size_t i) {
      return code_of(first + i, static_cast<std::uint32_t>(source) + 1);
    });
  });
}

}  // namespace yoke::bench

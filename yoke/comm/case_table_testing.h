// The cases of the one test body over all backends (communicator_cases.h), as data: which kinds, types, sizes and
// placements there are, and what each case puts in and must get out, told without any of the code under test.
#pragma once
#include <fmt/format.h>

#include <string>
#include <vector>

#include "yoke/comm/case_buffers_testing.h"
#include "yoke/comm/communicator.h"
#include "yoke/comm/operation.h"

namespace yoke::comm {

enum class CasePlacement { kOutOfPlace, kInPlace };
enum class CaseAlignment { kAligned, kOneElementOff };  // one element is an odd address for i8

struct CommunicatorCase {
  CollectiveKind kind = CollectiveKind::kBarrier;
  tensor::DType type = tensor::DType::kF32;
  ReduceOp op = ReduceOp::kSum;
  std::size_t count = 0;
  CasePlacement placement = CasePlacement::kOutOfPlace;
  CaseAlignment alignment = CaseAlignment::kAligned;
  int root = 0;
  std::uint32_t salt = 0;

  std::string name() const {
    return fmt::format("{} {} {} count {} {}{} root {}", to_string(kind), tensor::to_string(type),
                       reduces(kind) ? to_string(op) : "-", count,
                       placement == CasePlacement::kInPlace ? "in place" : "out of place",
                       alignment == CaseAlignment::kAligned ? "" : ", one element off,", root);
  }
};

// kReceive is the other side of kSend's cases.
inline constexpr std::array kCaseKinds = {
    CollectiveKind::kAllReduce,   CollectiveKind::kAllGather, CollectiveKind::kReduceScatter,
    CollectiveKind::kBroadcast,   CollectiveKind::kReduce,    CollectiveKind::kGather,
    CollectiveKind::kScatter,     CollectiveKind::kAllToAll,  CollectiveKind::kSend,
    CollectiveKind::kSendReceive, CollectiveKind::kBarrier};
inline constexpr std::array kCaseTypes = {tensor::DType::kF32, tensor::DType::kBf16, tensor::DType::kF16,
                                          tensor::DType::kI8, tensor::DType::kI32};
inline constexpr std::array kCaseOps = {ReduceOp::kSum, ReduceOp::kMax, ReduceOp::kMin, ReduceOp::kAvg};

// A size in bytes, plus or minus some elements, made a prime number of elements where asked for. Small sizes are tried
// with every combination of the rest, large ones with one in `every`: a number without common factors with the others,
// so that over the table each kind meets each type at each size.
struct CaseSize {
  std::size_t bytes = 0;
  int extra = 0;
  enum { kAsItIs, kPrime } number = kAsItIs;
  std::size_t every = 1;
};
inline constexpr std::array kCaseSizes = {
    CaseSize{.bytes = 0},
    CaseSize{.bytes = 0, .extra = 1},
    CaseSize{.bytes = 0, .extra = 7},
    CaseSize{.bytes = 0, .extra = 1021, .every = 3},
    CaseSize{.bytes = 4096, .extra = -1},
    CaseSize{.bytes = 4096, .every = 3},
    CaseSize{.bytes = 4096, .extra = 1},
    CaseSize{.bytes = 16 << 10, .every = 3},
    CaseSize{.bytes = (16 << 10) + 64, .extra = 1, .every = 7},
    CaseSize{.bytes = 64 << 10, .number = CaseSize::kPrime, .every = 7},
    CaseSize{.bytes = 1 << 20, .number = CaseSize::kPrime, .every = 13},
    CaseSize{.bytes = 16 << 20, .every = 71},
};

inline std::size_t prime_at_most(std::size_t number) {
  const auto is_prime = [](std::size_t n) {
    for (std::size_t d = 2; d * d <= n; ++d) {
      if (n % d == 0) return false;
    }
    return n >= 2;
  };
  while (number > 2 && !is_prime(number)) --number;
  return number;
}

// Buffers of n·count elements hold what the size says in all, so that a case's memory does not grow with the ranks.
inline std::size_t case_count(const CaseSize& size, CollectiveKind kind, tensor::DType type, int ranks) {
  const bool in_parts = kind == CollectiveKind::kAllGather || kind == CollectiveKind::kReduceScatter ||
                        kind == CollectiveKind::kGather || kind == CollectiveKind::kScatter ||
                        kind == CollectiveKind::kAllToAll;
  const bool is_large = size.bytes > 4096;
  std::size_t count = size.bytes / tensor::size_of(type);
  if (in_parts && is_large) count /= static_cast<std::size_t>(ranks);
  if (size.number == CaseSize::kPrime) return prime_at_most(count);
  return count + static_cast<std::size_t>(size.extra);
}

inline bool can_be_in_place(CollectiveKind kind) {
  return kind != CollectiveKind::kAllToAll && !is_point_to_point(kind) && kind != CollectiveKind::kBarrier;
}

// Every combination but for sizes, all of size 0; the roots take turns.
inline std::vector<CommunicatorCase> case_combinations(const std::vector<CollectiveKind>& kinds, int ranks) {
  std::vector<CommunicatorCase> cases;
  const auto add = [&](CommunicatorCase one) {
    one.root = static_cast<int>(cases.size()) % ranks;
    cases.push_back(one);
  };
  for (const CollectiveKind kind : kinds) {
    if (kind == CollectiveKind::kBarrier) {
      add({.kind = kind});
      continue;
    }
    if (kind == CollectiveKind::kSend && ranks < 2) continue;
    for (const tensor::DType type : kCaseTypes) {
      for (const ReduceOp op : kCaseOps) {
        if (op != ReduceOp::kSum && !reduces(kind)) continue;
        for (const auto placement : {CasePlacement::kOutOfPlace, CasePlacement::kInPlace}) {
          if (placement == CasePlacement::kInPlace && !can_be_in_place(kind)) continue;
          for (const auto alignment : {CaseAlignment::kAligned, CaseAlignment::kOneElementOff}) {
            add({.kind = kind, .type = type, .op = op, .placement = placement, .alignment = alignment});
          }
        }
      }
    }
  }
  return cases;
}

// What `rank` puts in at `index` of its buffer. An average has inputs that are multiples of the number of ranks, so
// that it is exact in the fractional types whether a backend divides before or after it adds.
inline int case_input(const CommunicatorCase& one, int rank, std::size_t index, int ranks) {
  const bool exact_average = reduces(one.kind) && one.op == ReduceOp::kAvg && one.type != tensor::DType::kI8 &&
                             one.type != tensor::DType::kI32;
  return case_value(rank, index, one.salt) * (exact_average ? ranks : 1);
}

inline int case_reduced(const CommunicatorCase& one, std::size_t index, int ranks) {
  int sum = 0, most = -8, least = 7;
  for (int rank = 0; rank < ranks; ++rank) {
    const int value = case_value(rank, index, one.salt);
    sum += value;
    most = std::max(most, value);
    least = std::min(least, value);
  }
  if (one.op == ReduceOp::kMax) return most;
  if (one.op == ReduceOp::kMin) return least;
  const bool is_integer = one.type == tensor::DType::kI8 || one.type == tensor::DType::kI32;
  return one.op == ReduceOp::kAvg && is_integer ? sum / ranks : sum;
}

// What the receive buffer of `rank` must hold afterwards.
inline void write_case_result(std::byte* to, const CommunicatorCase& one, int rank, int ranks) {
  const std::size_t part = one.count * tensor::size_of(one.type);
  const std::size_t own = static_cast<std::size_t>(rank) * one.count;
  const auto put = [&](std::byte* place, auto function) { write_elements(place, one.count, one.type, function); };
  const auto put_from = [&](std::byte* place, int source, std::size_t first) {
    put(place, [&, source, first](std::size_t i) { return case_input(one, source, first + i, ranks); });
  };
  switch (one.kind) {
    case CollectiveKind::kAllReduce:
    case CollectiveKind::kReduce:
      return put(to, [&](std::size_t i) { return case_reduced(one, i, ranks); });
    case CollectiveKind::kReduceScatter:
      return put(to, [&](std::size_t i) { return case_reduced(one, own + i, ranks); });
    case CollectiveKind::kAllGather:
    case CollectiveKind::kGather:
      for (int r = 0; r < ranks; ++r) put_from(to + static_cast<std::size_t>(r) * part, r, 0);
      return;
    case CollectiveKind::kAllToAll:
      for (int r = 0; r < ranks; ++r) put_from(to + static_cast<std::size_t>(r) * part, r, own);
      return;
    case CollectiveKind::kBroadcast:
    case CollectiveKind::kSend:
    case CollectiveKind::kReceive:
      return put_from(to, one.root, 0);
    case CollectiveKind::kScatter:
      return put_from(to, one.root, own);
    case CollectiveKind::kSendReceive:
      return put_from(to, (rank + ranks - 1) % ranks, 0);
    case CollectiveKind::kBarrier:
      return;
  }
}

}  // namespace yoke::comm

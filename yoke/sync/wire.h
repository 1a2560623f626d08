// What goes over one connection of a copy: pieces to the receiver, one byte back for each.
//
//   u32 file | u64 piece | u32 length | hash in hex, 32 characters | `length` bytes        (little-endian)
//
// A file number of 0xFFFFFFFF ends the connection.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "yoke/sync/pieces.h"

namespace yoke::sync {

struct PieceHeader {
  std::uint32_t file = 0;
  std::uint64_t piece = 0;
  std::uint32_t length = 0;
  std::string hash = std::string(kPieceHashLength, '0');
  friend bool operator==(const PieceHeader&, const PieceHeader&) = default;
};

inline constexpr std::uint32_t kNoMorePieces = 0xFFFFFFFF;
inline constexpr std::size_t kPieceHeaderSize = 16 + kPieceHashLength;
inline constexpr char kPieceKept = 'k', kPieceDamaged = 'd';

std::string encode(const PieceHeader& header);
PieceHeader decode(std::string_view bytes);  // of kPieceHeaderSize

}  // namespace yoke::sync

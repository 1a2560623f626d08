#include "yoke/sync/wire.h"

namespace yoke::sync {
namespace {

void put(std::string& bytes, std::uint64_t value, int count) {
  for (int i = 0; i < count; ++i) bytes += static_cast<char>(value >> (8 * i));
}

std::uint64_t take(std::string_view bytes, std::size_t at, int count) {
  std::uint64_t value = 0;
  for (int i = 0; i < count; ++i) {
    value |= static_cast<std::uint64_t>(static_cast<unsigned char>(bytes[at + static_cast<std::size_t>(i)])) << (8 * i);
  }
  return value;
}

}  // namespace

std::string encode(const PieceHeader& header) {
  std::string bytes;
  put(bytes, header.file, 4);
  put(bytes, header.piece, 8);
  put(bytes, header.length, 4);
  return bytes + header.hash;
}

PieceHeader decode(std::string_view bytes) {
  return {.file = static_cast<std::uint32_t>(take(bytes, 0, 4)),
          .piece = take(bytes, 4, 8),
          .length = static_cast<std::uint32_t>(take(bytes, 12, 4)),
          .hash = std::string(bytes.substr(16, kPieceHashLength))};
}

}  // namespace yoke::sync

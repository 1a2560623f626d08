#include "yoke/agent/frame_buffer.h"

#include <fmt/format.h>

#include <algorithm>

#include "yoke/base/error.h"
#include "yoke/base/text.h"

namespace yoke::agent {

std::string little_endian(std::uint32_t value) {
  std::string bytes;
  for (int shift = 0; shift < 32; shift += 8) bytes += static_cast<char>(value >> shift & 0xFFU);
  return bytes;
}

std::uint32_t from_little_endian(std::string_view bytes) {
  std::uint32_t value = 0;
  for (unsigned i = 0; i < 4; ++i) value |= std::uint32_t{static_cast<unsigned char>(bytes[i])} << (8 * i);
  return value;
}

std::string frame_begin(const FrameForm& form, std::size_t payload_size, std::uint8_t kind) {
  std::string frame(form.magic);
  frame += little_endian(static_cast<std::uint32_t>(payload_size));
  frame += static_cast<char>(kind);
  return frame;
}

std::optional<std::string> FrameBuffer::next() {
  const std::string_view rest = std::string_view(held_).substr(begin_);
  const std::size_t magic_size = std::min(rest.size(), form_.magic.size());
  if (rest.substr(0, magic_size) != form_.magic.substr(0, magic_size)) {
    throw Error(ErrorCode::kInvalid,
                fmt::format("what came is no message of yoke's: '{}'", printable(rest.substr(0, 64))));
  }
  if (rest.size() < form_.header_size) return std::nullopt;
  const std::uint32_t size = from_little_endian(rest.substr(4));
  if (size > form_.payload_max) {
    throw Error(ErrorCode::kInvalid,
                fmt::format("a message of {} bytes came; {} is the most", size, form_.payload_max));
  }
  if (const std::uint8_t kind = frame_kind(rest); kind < 1 || kind > form_.kind_max) {
    throw Error(ErrorCode::kInvalid, fmt::format("a message of unknown type {} came", kind));
  }
  const std::size_t whole = form_.header_size + size;
  if (rest.size() < whole) return std::nullopt;
  std::string frame(rest.substr(0, whole));
  begin_ += whole;
  // Moved to the front now and then, not with every frame: many small ones come in one piece.
  if (begin_ == held_.size() || begin_ > form_.payload_max) {
    held_.erase(0, begin_);
    begin_ = 0;
  }
  return frame;
}

}  // namespace yoke::agent

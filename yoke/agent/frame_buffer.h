// Frames on a byte stream, for any protocol: a buffer that takes what comes in pieces of any size and gives
// whole frames, and bounds what it holds.
//
//   magic, 4 bytes | u32 length of the payload, little-endian | u8 kind | rest of the header | payload
//
// What is no frame is Error(kInvalid), again and again: a stream that lost its step does not find it back. Plain data:
// a buffer belongs to one thread.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace yoke::agent {

// What the frames of one protocol look like.
struct FrameForm {
  std::string_view magic;
  std::size_t header_size;  // magic, length, kind and what follows them
  std::size_t payload_max;
  std::uint8_t kind_max;  // kinds are 1 to this
};

std::string little_endian(std::uint32_t value);
std::uint32_t from_little_endian(std::string_view bytes);  // of the first four

// magic, length and kind; the caller adds the rest of the header and the payload.
std::string frame_begin(const FrameForm& form, std::size_t payload_size, std::uint8_t kind);

class FrameBuffer {
 public:
  explicit FrameBuffer(const FrameForm& form) : form_(form) {}

  void feed(std::string_view data) { held_ += data; }
  // The next whole frame, header and payload; nothing where more must come.
  std::optional<std::string> next();

 private:
  FrameForm form_;
  std::string held_;
  std::size_t begin_ = 0;
};

// Of a whole frame.
inline std::uint8_t frame_kind(std::string_view frame) { return static_cast<std::uint8_t>(frame[8]); }

}  // namespace yoke::agent

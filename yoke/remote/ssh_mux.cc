#include "yoke/remote/ssh_mux.h"

#include <array>
#include <cstdint>
#include <string>

#include "yoke/base/socket.h"

namespace yoke {
namespace {

constexpr std::uint32_t kMuxHello = 0x00000001;
constexpr std::uint32_t kMuxVersion = 4;
constexpr std::uint32_t kMuxStopListening = 0x10000009;
constexpr std::uint32_t kMuxOk = 0x80000001;
constexpr std::uint32_t kMuxRequest = 1;
constexpr std::uint32_t kMuxPacketMost = 1 << 16;

std::string big_endian(std::uint32_t value) {
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(value >> shift & 0xFFU);
  return bytes;
}

// Two numbers, behind the length of both.
std::string mux_packet(std::uint32_t first, std::uint32_t second) {
  return big_endian(8) + big_endian(first) + big_endian(second);
}

std::uint32_t receive_number(Socket& socket, Deadline deadline) {
  std::array<std::byte, 4> bytes{};
  socket.receive_exact(bytes, deadline);
  std::uint32_t value = 0;
  for (const std::byte byte : bytes) value = value << 8U | std::to_integer<std::uint32_t>(byte);
  return value;
}

// A packet's first number; the rest is passed over.
std::uint32_t receive_kind(Socket& socket, Deadline deadline) {
  const std::uint32_t size = receive_number(socket, deadline);
  if (size < 4 || size > kMuxPacketMost) return 0;
  const std::uint32_t kind = receive_number(socket, deadline);
  std::string rest(size - 4, '\0');
  socket.receive_exact(std::as_writable_bytes(std::span(rest)), deadline);
  return kind;
}

}  // namespace

bool stop_sharing(const std::filesystem::path& control_path, Deadline deadline) noexcept {
  try {
    Socket socket = connect_unix(control_path, deadline);
    socket.send_all(mux_packet(kMuxHello, kMuxVersion), deadline);
    if (receive_kind(socket, deadline) != kMuxHello) return false;
    socket.send_all(mux_packet(kMuxStopListening, kMuxRequest), deadline);
    return receive_kind(socket, deadline) == kMuxOk;
  } catch (const std::exception&) {
    return false;
  }
}

}  // namespace yoke

#include "yoke/remote/ssh_mux.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "yoke/base/error.h"
#include "yoke/base/files.h"
#include "yoke/base/hash.h"
#include "yoke/base/held_process.h"
#include "yoke/base/socket.h"
#include "yoke/base/text.h"

namespace yoke::remote {
namespace fs = std::filesystem;
namespace {

constexpr std::uint32_t kMuxHello = 0x00000001;
constexpr std::uint32_t kMuxVersion = 4;
constexpr std::uint32_t kMuxStopListening = 0x10000009;
constexpr std::uint32_t kMuxOk = 0x80000001;
constexpr std::uint32_t kMuxRequest = 1;
constexpr std::uint32_t kMaxMuxPacket = 1 << 16;

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
  if (size < 4 || size > kMaxMuxPacket) return 0;
  const std::uint32_t kind = receive_number(socket, deadline);
  std::string rest(size - 4, '\0');
  socket.receive_exact(std::as_writable_bytes(std::span(rest)), deadline);
  return kind;
}

struct FileId {
  dev_t device = 0;
  ino_t number = 0;
  friend bool operator==(const FileId&, const FileId&) = default;
};

std::optional<FileId> file_id(const fs::path& file) {
  struct stat status {};
  if (lstat(file.c_str(), &status) != 0) return std::nullopt;
  return FileId{status.st_dev, status.st_ino};
}

// The kernel's numbers of the listening sockets of this name. ssh binds "NAME.XXXXXXXXXXXXXXXX" and links it to the
// name, and the kernel keeps the first.
std::vector<std::string> listening_sockets(const fs::path& control_path) {
  std::vector<std::string> found;
  for (const std::string& line : split(read_file("/proc/net/unix"), '\n')) {
    const std::size_t path_at = line.find('/');
    if (path_at == std::string::npos) continue;
    const std::string_view path = std::string_view(line).substr(path_at);
    const bool is_it = path == control_path.native() || (path.starts_with(control_path.native() + ".") &&
                                                         path.find('/', control_path.native().size()) == path.npos);
    std::vector<std::string> words;
    for (std::string& word : split(line.substr(0, path_at), ' ')) {
      if (!word.empty()) words.push_back(std::move(word));
    }
    // Num RefCount Protocol Flags Type St Inode; the flag is the kernel's __SO_ACCEPTCON.
    if (is_it && words.size() == 7 && words[3] == "00010000") found.push_back("socket:[" + words[6] + "]");
  }
  return found;
}

bool has_open(const fs::path& process, const std::vector<std::string>& sockets) {
  std::error_code failure;
  for (fs::directory_iterator entry(process / "fd", failure), end; !failure && entry != end; entry.increment(failure)) {
    std::error_code gone;
    const fs::path target = fs::read_symlink(entry->path(), gone);
    if (!gone && std::find(sockets.begin(), sockets.end(), target.native()) != sockets.end()) return true;
  }
  return false;
}

std::vector<HeldProcess> holders_of(const fs::path& control_path) {
  std::vector<HeldProcess> holders;
  const std::vector<std::string> sockets = listening_sockets(control_path);
  if (sockets.empty()) return holders;
  std::error_code failure;
  for (fs::directory_iterator entry("/proc", failure), end; !failure && entry != end; entry.increment(failure)) {
    const std::string name = entry->path().filename().native();
    pid_t pid = 0;
    const auto parsed = std::from_chars(name.data(), name.data() + name.size(), pid);
    if (parsed.ec != std::errc() || parsed.ptr != name.data() + name.size() || pid == getpid()) continue;
    struct stat owner {};
    if (stat(entry->path().c_str(), &owner) != 0 || owner.st_uid != geteuid()) continue;
    // Held before it is looked at: its number may come to mean another.
    const std::optional<ProcessId> process = living_process(pid);
    auto held = process ? HeldProcess::open(*process) : std::nullopt;
    if (held && has_open(entry->path(), sockets)) holders.push_back(*std::move(held));
  }
  return holders;
}

}  // namespace

MuxHolder inspect_holder(const fs::path& control_path, Deadline deadline) noexcept {
  try {
    Socket socket = connect_unix(control_path, deadline);
    return receive_kind(socket, deadline) == kMuxHello ? MuxHolder::kAnswers : MuxHolder::kIsGone;
  } catch (const Error& error) {
    return error.code() == ErrorCode::kTimeout ? MuxHolder::kIsSilent : MuxHolder::kIsGone;
  } catch (const std::exception&) {
    return MuxHolder::kIsGone;
  }
}

bool end_hung_holder(const fs::path& control_path, Seconds limit) noexcept {
  try {
    const std::optional<FileId> probed = file_id(control_path);
    if (!probed || inspect_holder(control_path, Deadline::after(limit)) != MuxHolder::kIsSilent) return false;
    const std::vector<HeldProcess> holders = holders_of(control_path);
    // Another command may have replaced it meanwhile: what is taken away must be what was silent.
    const fs::path aside = control_path.native() + "-" + random_token_hex(4);
    if (rename(control_path.c_str(), aside.c_str()) != 0) return true;
    if (file_id(aside) != probed) {
      renameat2(AT_FDCWD, aside.c_str(), AT_FDCWD, control_path.c_str(), RENAME_NOREPLACE);
      unlink(aside.c_str());
      return true;
    }
    unlink(aside.c_str());
    for (const HeldProcess& holder : holders) holder.send(SIGKILL);
    return true;
  } catch (const std::exception&) {
    return false;
  }
}

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

}  // namespace yoke::remote

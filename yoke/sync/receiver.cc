#include "yoke/sync/receiver.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <thread>

#include "yoke/base/files.h"
#include "yoke/base/result.h"
#include "yoke/base/text.h"

namespace yoke::sync {
namespace {

namespace fs = std::filesystem;
using namespace literals;

constexpr Seconds kConnectionsLimit{10};  // until all connections of a rail have come
constexpr Seconds kSilenceLimit{60};      // the other end may read from a slow disk

Bytes as_bytes(std::uint64_t count) { return Bytes{static_cast<std::int64_t>(count)}; }

// The nearest folder that exists.
fs::path standing_part(fs::path place) {
  std::error_code failure;
  while (!fs::exists(place, failure) && place.has_parent_path() && place != place.parent_path()) {
    place = place.parent_path();
  }
  return place;
}

void check_space(const ReceiverPlan& plan) {
  std::uint64_t needed = 0;
  for (const ExpectedFile& expected : plan.files) {
    needed += expected.present == Present::kComplete ? expected.file.size : expected.bytes_to_come;
  }
  const fs::path place = standing_part(plan.folder);
  std::error_code failure;
  const fs::space_info space = fs::space(place, failure);
  if (failure || space.available >= needed) return;
  throw Error(ErrorCode::kExhausted,
              fmt::format("'{}' needs {} more, and {} are free there", plan.folder, to_string(as_bytes(needed)),
                          to_string(as_bytes(space.available))),
              "free some, or name a folder on another disk with --to");
}

}  // namespace

Present find_present(const fs::path& folder, const FileSize& file) {
  const auto has_size = [&](const fs::path& path) {
    std::error_code failure;
    return fs::file_size(path, failure) == file.size && !failure;
  };
  if (has_size(partial_of(folder) / file.path)) return Present::kPartial;
  return has_size(folder / file.path) ? Present::kComplete : Present::kNowhere;
}

Receiver::Receiver(ReceiverPlan plan)
    : plan_(std::move(plan)), folder_(plan_.folder), partial_(partial_of(plan_.folder)) {
  for (const ExpectedFile& expected : plan_.files) check_inside(expected.file.path);
  check_space(plan_);
  for (const ExpectedFile& expected : plan_.files) prepare(expected);
  for (const link::RailPlace& rail : plan_.rails) listeners_.push_back(link::listen_on_rail(rail));
}

void Receiver::prepare(const ExpectedFile& expected) const {
  const fs::path path = partial_ / expected.file.path;
  make_folder(path.parent_path());
  if (expected.present == Present::kComplete) {
    fs::copy_file(folder_ / expected.file.path, path, fs::copy_options::overwrite_existing);
  }
  const UniqueFd fd = open_file(path, O_WRONLY | O_CREAT);
  if (ftruncate(fd.get(), static_cast<off_t>(expected.file.size)) != 0) {
    throw system_error(errno, fmt::format("cannot make '{}'", printable(path.native())));
  }
}

std::vector<int> Receiver::ports() const {
  std::vector<int> ports;
  for (const Socket& listener : listeners_) ports.push_back(listener.local().port);
  return ports;
}

void Receiver::receive() {
  std::vector<std::thread> threads;
  for (Socket& listener : listeners_) {
    threads.emplace_back([this, &listener] {
      const auto done = try_to([&] { take_connections(listener); });
      if (!done && done.error().code() == ErrorCode::kInterrupted) fail(done.error());
    });
  }
  for (std::thread& thread : threads) thread.join();
  if (failure_) throw Error(*failure_);
}

void Receiver::take_connections(Socket& listener) {
  std::vector<std::thread> threads;
  const Deadline deadline = Deadline::after(kConnectionsLimit);
  link::RailAcceptor acceptor(listener, plan_.token);
  const auto accepted = try_to([&] {
    for (int i = 0; i < plan_.streams; ++i) {
      threads.emplace_back([this, socket = acceptor.next(deadline)]() mutable {
        const auto taken = try_to([&] { take_pieces(std::move(socket)); });
        const bool ours =
            !taken && taken.error().code() != ErrorCode::kUnavailable && taken.error().code() != ErrorCode::kTimeout;
        if (ours) fail(taken.error());
      });
    }
  });
  for (std::thread& thread : threads) thread.join();
  if (!accepted) throw Error(accepted.error());
}

void Receiver::take_pieces(Socket socket) {
  std::string bytes;
  std::string head(kPieceHeaderSize, '\0');
  while (!failed()) {
    socket.receive_exact(std::as_writable_bytes(std::span(head)), Deadline::after(kSilenceLimit));
    const PieceHeader header = decode(head);
    if (header.file == kNoMorePieces) return;
    const bool known = header.file < plan_.files.size() &&
                       header.piece < piece_count(plan_.files[header.file].file.size) &&
                       header.length == piece_length(plan_.files[header.file].file.size, header.piece);
    if (!known) throw Error(ErrorCode::kInvalid, fmt::format("{} sends a piece that no file has", socket.peer()));
    bytes.resize(header.length);
    socket.receive_exact(std::as_writable_bytes(std::span(bytes)), Deadline::after(kSilenceLimit));
    const bool whole = piece_hash(bytes) == header.hash;
    if (whole) write_piece(header, bytes);
    socket.send_all(std::string(1, whole ? kPieceKept : kPieceDamaged), Deadline::after(kSilenceLimit));
  }
}

void Receiver::write_piece(const PieceHeader& header, const std::string& bytes) {
  const fs::path path = partial_ / plan_.files[header.file].file.path;
  const UniqueFd fd = open_file(path, O_WRONLY);
  std::size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t count = pwrite(fd.get(), bytes.data() + done, bytes.size() - done,
                                 static_cast<off_t>(header.piece * kPieceSize + done));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw system_error(errno, fmt::format("cannot write '{}'", printable(path.native())));
    done += static_cast<std::size_t>(count);
  }
}

void Receiver::fail(const Error& error) {
  const std::lock_guard lock(mutex_);
  if (!failure_) failure_ = error;
}

bool Receiver::failed() {
  const std::lock_guard lock(mutex_);
  return failure_.has_value();
}

void Receiver::finish() {
  for (const ExpectedFile& expected : plan_.files) {
    const UniqueFd fd = open_file(partial_ / expected.file.path, O_RDONLY);
    if (fsync(fd.get()) != 0) {
      throw system_error(errno, fmt::format("cannot write '{}' to disk", printable(expected.file.path)));
    }
  }
  std::error_code failure;
  if (!fs::exists(folder_, failure)) {
    fs::rename(partial_, folder_);
  } else {
    for (const ExpectedFile& expected : plan_.files) {
      make_folder((folder_ / expected.file.path).parent_path());
      fs::rename(partial_ / expected.file.path, folder_ / expected.file.path);
    }
    fs::remove_all(partial_);
  }
  sync_folder(folder_);
}

}  // namespace yoke::sync

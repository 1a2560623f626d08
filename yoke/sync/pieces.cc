#include "yoke/sync/pieces.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <mutex>
#include <optional>
#include <thread>

#include "yoke/base/error.h"
#include "yoke/base/hash.h"
#include "yoke/base/interrupt.h"
#include "yoke/base/result.h"
#include "yoke/base/text.h"

namespace yoke::sync {

namespace fs = std::filesystem;

std::uint64_t piece_length(std::uint64_t size, std::uint64_t piece) {
  return std::min(kPieceSize, size - piece * kPieceSize);
}

std::vector<FileSize> list_files(const fs::path& folder) {
  std::vector<FileSize> files;
  std::error_code failure;
  for (fs::recursive_directory_iterator entry(folder, failure), end; !failure && entry != end;
       entry.increment(failure)) {
    std::error_code ignored;
    if (entry->path().filename().native().starts_with('.')) {
      if (entry->is_directory(ignored)) entry.disable_recursion_pending();
      continue;
    }
    if (entry->is_regular_file(ignored)) {
      files.push_back({entry->path().lexically_relative(folder), entry->file_size(ignored)});
    }
  }
  if (failure) {
    throw system_error(failure.value(), fmt::format("cannot list the folder '{}'", printable(folder.native())),
                       "name a folder that is on this node and that you may read");
  }
  std::sort(files.begin(), files.end(), [](const FileSize& a, const FileSize& b) { return a.path < b.path; });
  return files;
}

void check_inside(const std::string& path) {
  const fs::path parsed(path);
  const bool odd = path.empty() || parsed.is_absolute() || path.find('\0') != std::string::npos ||
                   std::any_of(parsed.begin(), parsed.end(),
                               [](const fs::path& part) { return part.empty() || part == "." || part == ".."; });
  if (odd) throw Error(ErrorCode::kInvalid, fmt::format("'{}' is no path inside a folder", printable(path, 80)));
}

void check_listed(const std::vector<FileSize>& files, const std::string& node) {
  constexpr std::size_t kMaxFiles = 100'000;
  constexpr std::uint64_t kMaxFolderBytes = std::uint64_t{64} << 40;
  std::uint64_t left = kMaxFolderBytes;
  for (const FileSize& file : files) {
    check_inside(file.path);
    if (files.size() > kMaxFiles || file.size > left) {
      throw Error(ErrorCode::kInvalid, fmt::format("{} lists more than {} files or 64 TiB", node, kMaxFiles),
                  "name the folder of one model");
    }
    left -= file.size;
  }
}

fs::path partial_of(const fs::path& folder) { return folder.native() + ".partial"; }

std::string piece_hash(std::string_view bytes) { return blake2b_hex(bytes, kPieceHashLength / 2); }

void read_piece(const UniqueFd& fd, const FileSize& file, std::uint64_t piece, std::string& bytes) {
  bytes.resize(piece_length(file.size, piece));
  std::size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t count =
        pread(fd.get(), bytes.data() + done, bytes.size() - done, static_cast<off_t>(piece * kPieceSize + done));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw system_error(errno, fmt::format("cannot read '{}'", printable(file.path, 80)));
    if (count == 0) {
      throw Error(ErrorCode::kInvalid, fmt::format("'{}' became shorter while it was read", printable(file.path, 80)),
                  "start again when nothing writes to the folder");
    }
    done += static_cast<std::size_t>(count);
  }
}

namespace {

struct OnePiece {
  std::size_t file;
  std::uint64_t piece;
};

// The files that are there with the expected size, all pieces in a row.
std::vector<OnePiece> pieces_there(const fs::path& folder, const std::vector<FileSize>& files) {
  std::vector<OnePiece> pieces;
  for (std::size_t i = 0; i < files.size(); ++i) {
    std::error_code failure;
    if (fs::file_size(folder / files[i].path, failure) != files[i].size || failure) continue;
    for (std::uint64_t piece = 0; piece < piece_count(files[i].size); ++piece) pieces.push_back({i, piece});
  }
  return pieces;
}

}  // namespace

std::vector<std::vector<std::string>> hash_files(const fs::path& folder, const std::vector<FileSize>& files,
                                                 const std::function<void(std::uint64_t)>& on_progress) {
  std::vector<std::vector<std::string>> hashes(files.size());
  const std::vector<OnePiece> pieces = pieces_there(folder, files);
  for (const OnePiece& one : pieces) hashes[one.file].resize(piece_count(files[one.file].size));
  std::atomic<std::size_t> next = 0;
  std::atomic<std::uint64_t> done = 0;
  std::atomic<bool> ends = false;
  std::mutex mutex;
  std::optional<Error> failure;
  const auto work = [&] {
    std::string bytes;
    UniqueFd fd;
    std::size_t open = files.size();
    for (std::size_t i = next++; i < pieces.size() && !ends; i = next++) {
      throw_if_interrupted();
      const auto [file, piece] = pieces[i];
      if (file != open) fd = open_file(folder / files[file].path, O_RDONLY);
      open = file;
      read_piece(fd, files[file], piece, bytes);
      hashes[file][piece] = piece_hash(bytes);
      done += bytes.size();
      if (on_progress) on_progress(done);
    }
  };
  std::vector<std::thread> threads;
  const std::size_t count = std::min<std::size_t>(std::max(1U, std::thread::hardware_concurrency()), 16);
  for (std::size_t i = 0; i < std::min(count, pieces.size()); ++i) {
    threads.emplace_back([&] {
      const auto worked = try_to(work);
      if (worked) return;
      ends = true;
      const std::lock_guard lock(mutex);
      if (!failure) failure = worked.error();
    });
  }
  for (std::thread& thread : threads) thread.join();
  if (failure) throw Error(*failure);
  return hashes;
}

}  // namespace yoke::sync

#include "yoke/launch/prep_drive.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <set>

#include "yoke/base/error.h"
#include "yoke/base/files.h"
#include "yoke/base/hash.h"
#include "yoke/base/interrupt.h"
#include "yoke/base/result.h"
#include "yoke/base/text.h"

namespace yoke::launch {
namespace {

namespace fs = std::filesystem;

constexpr const char* kSums = "SHA256SUMS";
constexpr const char* kHowToWrite =
    "in the drive's root: find models images packages -type f | sort | xargs -d '\\n' sha256sum > SHA256SUMS";

bool is_hash(std::string_view text) {
  return text.size() == 64 && std::all_of(text.begin(), text.end(),
                                          [](unsigned char c) { return std::isdigit(c) || (c >= 'a' && c <= 'f'); });
}

// One of our folders, then names: nothing that leads elsewhere.
bool is_inside(const std::string& path) {
  const std::vector<std::string> parts = split(path, '/');
  if (parts.size() < 2 || (parts[0] != "models" && parts[0] != "images" && parts[0] != "packages")) return false;
  return std::none_of(parts.begin(), parts.end(),
                      [](const std::string& part) { return part.empty() || part == "." || part == ".."; });
}

DriveFile parse_sum(const std::string& line, std::size_t number) {
  // "HASH  name", or "HASH *name" of binary mode.
  DriveFile file;
  if (line.size() > 66 && line[64] == ' ' && (line[65] == ' ' || line[65] == '*')) {
    file.sha256 = line.substr(0, 64);
    file.path = line.substr(66);
    if (file.path.starts_with("./")) file.path.erase(0, 2);
  }
  if (!is_hash(file.sha256)) {
    throw Error(ErrorCode::kInvalid, fmt::format("{}:{}: is no sum and no name", kSums, number), kHowToWrite);
  }
  if (!is_inside(file.path)) {
    throw Error(
        ErrorCode::kInvalid,
        fmt::format("{}:{}: '{}' is not below models, images or packages", kSums, number, printable(file.path, 80)),
        kHowToWrite);
  }
  return file;
}

void refuse_unlisted(const Drive& drive) {
  std::set<std::string, std::less<>> listed;
  for (const DriveFile& file : drive.files) listed.insert(file.path);
  for (const char* folder : {"models", "images", "packages"}) {
    std::error_code absent;
    for (const auto& entry : fs::recursive_directory_iterator(drive.root / folder, absent)) {
      if (!entry.is_regular_file()) continue;
      const std::string path = fs::relative(entry.path(), drive.root).native();
      if (listed.contains(path)) continue;
      throw Error(ErrorCode::kInvalid, fmt::format("{} does not name {}", kSums, printable(path, 100)), kHowToWrite);
    }
  }
}

[[noreturn]] void drive_is_gone(const DriveFile& file, int number) {
  throw Error(
      ErrorCode::kUnavailable,
      fmt::format("the drive cannot be read any more, at {}: {}", printable(file.path, 100), std::strerror(number)),
      "connect it again and start the same command: it continues");
}

void copy_bytes(const Drive& drive, const DriveFile& file, const fs::path& to, std::uint64_t before,
                const std::function<void(std::uint64_t)>& on_progress) {
  const auto in = try_to([&] { return open_file(drive.root / file.path, O_RDONLY); });
  if (!in) drive_is_gone(file, EIO);
  const UniqueFd out = open_file(to, O_WRONLY | O_CREAT | O_TRUNC, 0644);
  std::string buffer(4 << 20, '\0');
  std::uint64_t done = 0;
  for (;;) {
    throw_if_interrupted();
    const ssize_t got = read(in->get(), buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) drive_is_gone(file, errno);
    if (got == 0) break;
    write_all(out, std::string_view(buffer).substr(0, static_cast<std::size_t>(got)), to.native());
    done += static_cast<std::uint64_t>(got);
    if (on_progress) on_progress(before + done);
  }
  if (done != file.size) drive_is_gone(file, EIO);
  if (fsync(out.get()) != 0) throw system_error(errno, fmt::format("cannot write {}", to.native()));
}

}  // namespace

std::uint64_t Drive::bytes() const {
  std::uint64_t sum = 0;
  for (const DriveFile& file : files) sum += file.size;
  return sum;
}

std::vector<DriveFile> Drive::below(std::string_view folder) const {
  std::vector<DriveFile> found;
  for (const DriveFile& file : files) {
    if (file.path.starts_with(std::string(folder) + "/")) found.push_back(file);
  }
  return found;
}

Drive read_drive(const fs::path& root) {
  Drive drive{.root = root, .files = {}};
  const auto sums = try_to([&] { return read_file(root / kSums); });
  if (!sums) {
    throw Error(ErrorCode::kNotFound, fmt::format("there is no {} on {}", kSums, root.native()), kHowToWrite);
  }
  std::size_t number = 0;
  for (const std::string& line : split(*sums, '\n')) {
    ++number;
    if (line.empty()) continue;
    DriveFile file = parse_sum(line, number);
    std::error_code missing;
    file.size = fs::file_size(root / file.path, missing);
    if (missing) {
      throw Error(ErrorCode::kNotFound,
                  fmt::format("the drive lacks {}, which {} names", printable(file.path, 100), kSums));
    }
    drive.files.push_back(std::move(file));
  }
  refuse_unlisted(drive);
  return drive;
}

void copy_from_drive(const Drive& drive, const std::vector<DriveFile>& files, const fs::path& target,
                     const std::function<void(std::uint64_t done)>& on_progress) {
  std::uint64_t done = 0;
  for (const DriveFile& file : files) {
    const fs::path to = target / file.path.substr(file.path.find('/') + 1);
    std::error_code absent;
    const bool same_size = fs::file_size(to, absent) == file.size && !absent;
    if (!same_size || sha256_file_hex(to) != file.sha256) {
      make_folder(to.parent_path());
      const fs::path partial = to.native() + ".partial";
      copy_bytes(drive, file, partial, done, on_progress);
      if (sha256_file_hex(partial) != file.sha256) {
        fs::remove(partial);
        throw Error(ErrorCode::kInvalid,
                    fmt::format("{} has other bytes than {} says", printable(file.path, 100), kSums),
                    "write this file to the drive again");
      }
      fs::rename(partial, to);
    }
    done += file.size;
    if (on_progress) on_progress(done);
  }
}

}  // namespace yoke::launch

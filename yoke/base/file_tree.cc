#include "yoke/base/file_tree.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <functional>

#include "yoke/base/error.h"
#include "yoke/base/files.h"
#include "yoke/base/text.h"

namespace yoke {
namespace fs = std::filesystem;
namespace {

constexpr int kMaxLinks = 40;  // as the kernel's own limit

// "/sys//class/./net/" -> "/sys/class/net". The parts are kept as they are: ".." needs links resolved first.
std::vector<std::string> parts_of(std::string_view path) {
  std::vector<std::string> parts;
  for (std::string& part : split(path, '/')) {
    if (!part.empty() && part != ".") parts.push_back(std::move(part));
  }
  return parts;
}

std::string join(const std::vector<std::string>& parts) {
  std::string path;
  for (const std::string& part : parts) path += "/" + part;
  return path.empty() ? "/" : path;
}

// Walks the parts as a kernel would that was chrooted into the tree. `link_at` answers a link's target, or nothing
// where the path is no link.
std::optional<std::string> walk(std::string_view path,
                                const std::function<std::optional<std::string>(const std::string&)>& link_at) {
  std::vector<std::string> todo = parts_of(path);
  std::reverse(todo.begin(), todo.end());
  std::vector<std::string> done;
  for (int links = 0; !todo.empty();) {
    const std::string part = todo.back();
    todo.pop_back();
    if (part == "..") {
      if (!done.empty()) done.pop_back();
      continue;
    }
    done.push_back(part);
    const std::optional<std::string> target = link_at(join(done));
    if (!target) continue;
    if (++links > kMaxLinks) return std::nullopt;
    if (target->starts_with('/'))
      done.clear();
    else
      done.pop_back();
    std::vector<std::string> more = parts_of(*target);
    todo.insert(todo.end(), more.rbegin(), more.rend());
  }
  return join(done);
}

bool means_absent(int error_number) {
  // EINVAL, ENODEV, EOPNOTSUPP, EIO: how drivers say that an attribute has no value now (carrier of a port that is
  // down, an empty GID slot, a sensor that sleeps).
  switch (error_number) {
    case ENOENT:
    case ENOTDIR:
    case EISDIR:
    case EINVAL:
    case ENODEV:
    case ENXIO:
    case EOPNOTSUPP:
    case EIO:
    case ELOOP:
      return true;
    default:
      return false;
  }
}

}  // namespace

std::optional<std::string> FileTree::read_trimmed(std::string_view path) const {
  const std::optional<std::string> content = read(path);
  if (!content) return std::nullopt;
  return std::string(trim(*content));
}

std::optional<std::string> DiskTree::resolve(std::string_view path) const {
  return walk(path, [&](const std::string& at) -> std::optional<std::string> {
    std::error_code failure;
    const fs::path target = fs::read_symlink(root_ / at.substr(1), failure);
    if (failure) return std::nullopt;
    return target.native();
  });
}

std::optional<fs::path> DiskTree::on_disk(std::string_view path) const {
  if (root_ == "/") return fs::path(path);
  const std::optional<std::string> real = resolve(path);
  if (!real) return std::nullopt;
  return root_ / real->substr(1);
}

std::optional<std::string> DiskTree::read(std::string_view path) const {
  const std::optional<fs::path> file = on_disk(path);
  if (!file) return std::nullopt;
  // Without waiting: to open a named pipe takes until somebody writes to it. What is no file has no content.
  const UniqueFd fd(open(file->c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  int failure = fd ? 0 : errno;
  struct stat status {};
  if (fd && fstat(fd.get(), &status) == 0 && !S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode)) return std::nullopt;
  std::string content;
  char buffer[1 << 16];
  while (failure == 0) {
    const ssize_t count = ::read(fd.get(), buffer, sizeof buffer);
    if (count == 0) return content;
    if (count < 0 && errno != EINTR) failure = errno;
    if (count > 0) content.append(buffer, static_cast<std::size_t>(count));
    if (content.size() > (64U << 20U))
      throw Error(ErrorCode::kInvalid, fmt::format("{} is absurdly large", file->native()));
  }
  if (means_absent(failure)) return std::nullopt;
  throw system_error(failure, fmt::format("cannot read {}", file->native()));
}

std::vector<std::string> DiskTree::list(std::string_view path) const {
  std::vector<std::string> names;
  const std::optional<fs::path> folder = on_disk(path);
  if (!folder) return names;
  std::error_code failure;
  for (fs::directory_iterator entry(*folder, failure), end; !failure && entry != end; entry.increment(failure)) {
    names.push_back(entry->path().filename());
  }
  if (failure && !means_absent(failure.value())) {
    throw system_error(failure.value(), fmt::format("cannot list {}", folder->native()));
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::optional<std::string> DiskTree::link(std::string_view path) const {
  const fs::path whole(path);
  const std::optional<fs::path> parent = on_disk(whole.parent_path().native());
  if (!parent) return std::nullopt;
  std::error_code failure;
  const fs::path target = fs::read_symlink(*parent / whole.filename(), failure);
  if (failure) return std::nullopt;
  return target.native();
}

bool DiskTree::exists(std::string_view path) const {
  const std::optional<fs::path> file = on_disk(path);
  std::error_code failure;
  return file && fs::exists(*file, failure);
}

void MemoryTree::add_file(std::string_view path, std::string content) {
  entries_[join(parts_of(path))] = {Entry::Kind::kFile, std::move(content)};
}

void MemoryTree::add_link(std::string_view path, std::string target) {
  entries_[join(parts_of(path))] = {Entry::Kind::kLink, std::move(target)};
}

void MemoryTree::remove(std::string_view path) {
  const std::string whole = join(parts_of(path));
  std::erase_if(entries_,
                [&](const auto& entry) { return entry.first == whole || entry.first.starts_with(whole + "/"); });
}

std::optional<std::string> MemoryTree::resolve(std::string_view path) const {
  return walk(path, [&](const std::string& at) -> std::optional<std::string> {
    const auto entry = entries_.find(at);
    if (entry == entries_.end() || entry->second.kind != Entry::Kind::kLink) return std::nullopt;
    return entry->second.content;
  });
}

std::optional<std::string> MemoryTree::read(std::string_view path) const {
  const std::optional<std::string> real = resolve(path);
  const auto entry = real ? entries_.find(*real) : entries_.end();
  if (entry == entries_.end()) return std::nullopt;
  return entry->second.content;
}

std::vector<std::string> MemoryTree::list(std::string_view path) const {
  std::vector<std::string> names;
  const std::optional<std::string> real = resolve(path);
  if (!real) return names;
  const std::string prefix = *real == "/" ? "/" : *real + "/";
  for (auto entry = entries_.lower_bound(prefix); entry != entries_.end() && entry->first.starts_with(prefix);
       ++entry) {
    std::string name = split(entry->first.substr(prefix.size()), '/').front();
    if (names.empty() || names.back() != name) names.push_back(std::move(name));
  }
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

bool MemoryTree::exists(std::string_view path) const {
  const std::optional<std::string> real = resolve(path);
  return real && (*real == "/" || entries_.contains(*real) || !list(*real).empty());
}

std::optional<std::string> MemoryTree::link(std::string_view path) const {
  const fs::path whole(path);
  const std::optional<std::string> parent = resolve(whole.parent_path().native());
  if (!parent) return std::nullopt;
  const auto entry = entries_.find((*parent == "/" ? "" : *parent) + "/" + whole.filename().native());
  if (entry == entries_.end() || entry->second.kind != Entry::Kind::kLink) return std::nullopt;
  return entry->second.content;
}

}  // namespace yoke

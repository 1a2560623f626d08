#include "yoke/weights/mapped_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <mutex>

#include "yoke/base/error.h"

namespace yoke::weights {
namespace {

// What the SIGBUS handler needs, in a form that it may read: no locks, no allocations. A process-wide table is the one
// way to reach a signal handler. A file beyond the table's end is mapped all the same, and only its name is missing.
struct Guard {
  std::atomic<std::uintptr_t> begin{0};
  std::atomic<std::uintptr_t> end{0};
  std::atomic<const char*> file{nullptr};
};
std::array<Guard, 1024> guards;
struct sigaction previous_action;

void say(const char* text) {
  const ssize_t ignored = write(STDERR_FILENO, text, std::strlen(text));
  static_cast<void>(ignored);  // there is nobody left to tell
}

extern "C" void on_bus_error(int signal_number, siginfo_t* info, void*) {
  const auto address = reinterpret_cast<std::uintptr_t>(info->si_addr);
  for (const Guard& guard : guards) {
    const char* const file = guard.file.load();
    if (file == nullptr || address < guard.begin.load() || address >= guard.end.load()) continue;
    say("yoke: ");
    say(file);
    say(" was cut short, or its disk failed, while it was being read\n");
    _exit(yoke::info(ErrorCode::kConflict).exit_status);
  }
  // Not ours: the one that handled it before does so again when the instruction is repeated.
  sigaction(signal_number, &previous_action, nullptr);
}

void install_bus_error_handler() {
  static std::once_flag once;
  std::call_once(once, [] {
    struct sigaction action {};
    action.sa_sigaction = on_bus_error;
    action.sa_flags = SA_SIGINFO;
    sigemptyset(&action.sa_mask);
    sigaction(SIGBUS, &action, &previous_action);
  });
}

std::mutex guards_mutex;

std::size_t take_guard(std::span<const std::byte> bytes, const char* file) {
  install_bus_error_handler();
  const std::lock_guard lock(guards_mutex);
  for (std::size_t i = 0; i < guards.size(); ++i) {
    if (guards[i].file.load() != nullptr) continue;
    guards[i].begin = reinterpret_cast<std::uintptr_t>(bytes.data());
    guards[i].end = reinterpret_cast<std::uintptr_t>(bytes.data() + bytes.size());
    guards[i].file = file;
    return i;
  }
  return guards.size();
}

}  // namespace

MappedFile::MappedFile(std::filesystem::path file)
    : path_(std::move(file)),
      fd_(open_file(path_, O_RDONLY | O_NONBLOCK)) {  // a pipe must not keep us waiting for its writer
  if (fstat(fd_.get(), &opened_) != 0) throw system_error(errno, fmt::format("cannot look at {}", path_.native()));
  if (!S_ISREG(opened_.st_mode)) {
    throw Error(ErrorCode::kInvalid, fmt::format("{} is not a regular file", path_.native()));
  }
  const auto size = static_cast<std::size_t>(opened_.st_size);
  if (size == 0) return;
  void* const memory = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd_.get(), 0);
  if (memory == MAP_FAILED) throw system_error(errno, fmt::format("cannot map {}", path_.native()));
  bytes_ = {static_cast<const std::byte*>(memory), size};
  guard_ = take_guard(bytes_, path_.c_str());
}

MappedFile::~MappedFile() {
  if (bytes_.empty()) return;
  if (guard_ < guards.size()) {
    const std::lock_guard lock(guards_mutex);
    guards[guard_].file = nullptr;
  }
  munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

void MappedFile::check_unchanged() const {
  struct stat now {};
  if (fstat(fd_.get(), &now) != 0) throw system_error(errno, fmt::format("cannot look at {}", path_.native()));
  const bool same = now.st_size == opened_.st_size && now.st_mtim.tv_sec == opened_.st_mtim.tv_sec &&
                    now.st_mtim.tv_nsec == opened_.st_mtim.tv_nsec;
  if (same) return;
  throw Error(ErrorCode::kConflict, fmt::format("{} was changed while it was being loaded", path_.native()),
              "wait until the program that writes it has finished, then load it again");
}

MappedFile::Pages MappedFile::pages_of(std::span<const std::byte> part) const {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  const std::size_t begin = static_cast<std::size_t>(part.data() - bytes_.data()) / page * page;
  return {begin, static_cast<std::size_t>(part.data() + part.size() - bytes_.data()) - begin};
}

// All of these are advice: where the kernel does not take it, nothing is wrong. Of one advice Linux reads no more than
// the disk's readahead (128 KiB unless somebody changed it), and forgets the rest.
void MappedFile::will_need(std::span<const std::byte> part) const {
  constexpr std::size_t kPiece = std::size_t{128} << 10;
  if (part.empty()) return;
  const Pages pages = pages_of(part);
  for (std::size_t at = 0; at < pages.size; at += kPiece) {
    madvise(const_cast<std::byte*>(bytes_.data()) + pages.begin + at, std::min(kPiece, pages.size - at), MADV_WILLNEED);
  }
}

void MappedFile::drop(std::span<const std::byte> part, PageCache cache) const {
  if (part.empty()) return;
  const Pages pages = pages_of(part);
  // The kernel maps what lies around a page that is read, if it is in the page cache. Nobody may drop that later: the
  // neighbour may be another rank's part.
  constexpr std::size_t kAround = std::size_t{256} << 10;
  const std::size_t begin = pages.begin > kAround ? pages.begin - kAround : 0;
  const std::size_t end = std::min(bytes_.size(), pages.begin + pages.size + kAround);
  madvise(const_cast<std::byte*>(bytes_.data()) + begin, end - begin, MADV_DONTNEED);
  if (cache == PageCache::kKept) return;
  posix_fadvise(fd_.get(), static_cast<off_t>(pages.begin), static_cast<off_t>(pages.size), POSIX_FADV_DONTNEED);
}

}  // namespace yoke::weights

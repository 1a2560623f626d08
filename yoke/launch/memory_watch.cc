#include "yoke/launch/memory_watch.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <limits>

namespace yoke::launch {
namespace {

constexpr std::chrono::milliseconds kLook{50};
// PSI counts over ten seconds: it is late, so it only counts where memory is short already.
constexpr double kPressure = 10;

}  // namespace

MemoryWatch::MemoryWatch(Bytes floor, pid_t group) : floor_(floor.value), start_(gauge_.available()), group_(group) {
  least_ = std::numeric_limits<std::int64_t>::max();
  thread_ = std::thread([this] { run(); });
}

MemoryWatch::~MemoryWatch() {
  ends_ = true;
  thread_.join();
}

void MemoryWatch::set_processes(std::span<const pid_t> processes) {
  count_ = 0;  // a look in between then kills only the group, which is first anyway
  const std::size_t size = std::min(processes.size(), processes_.size());
  for (std::size_t i = 0; i < size; ++i) processes_[i] = processes[i];
  count_ = static_cast<int>(size);
}

void MemoryWatch::kill_all() const {
  kill(-group_, SIGKILL);
  for (int i = 0; i < count_; ++i) {
    const pid_t pid = processes_[static_cast<std::size_t>(i)];
    if (pid > 1) kill(pid, SIGKILL);
  }
}

void MemoryWatch::run() {
  int looks = 0;
  while (!ends_) {
    const std::int64_t available = gauge_.available();
    if (available >= 0) {
      if (available < least_) least_ = available;
      const bool pressed = ++looks % 10 == 0 && available < 2 * floor_ && gauge_.full_pressure() > kPressure;
      if (available < floor_ || pressed) {
        kill_all();
        available_ = available;
        by_pressure_ = available >= floor_;
        tripped_ = true;
        return;
      }
    }
    std::this_thread::sleep_for(kLook);
  }
}

void stay_alive() {
  // Only what is touched: the program carries files that are never read here.
  mlockall(MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT);
  const UniqueFd score(open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC));
  if (!score) return;
  constexpr std::string_view kLast = "-1000";
  if (write(score.get(), kLast.data(), kLast.size()) < 0) return;
}

}  // namespace yoke::launch

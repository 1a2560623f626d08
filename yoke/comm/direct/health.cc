#include "yoke/comm/direct/health.h"

#include <fmt/format.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>

namespace yoke::comm::direct {

Wakeup::Wakeup() : fd_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (!fd_) throw system_error(errno, "cannot make an eventfd");
}

void Wakeup::ring() const noexcept {
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(fd(), &one, sizeof one);  // full is rung enough
}

void Wakeup::clear() const noexcept {
  std::uint64_t rings = 0;
  [[maybe_unused]] const ssize_t got = read(fd(), &rings, sizeof rings);
}

Health::Health(spec::Membership membership, int rank)
    : membership_(std::move(membership)),
      rank_(rank),
      peers_(std::make_unique<PeerHealth[]>(membership_.members.size())) {}

std::string Health::name(int rank) const { return fmt::format("rank {} on {}", rank, member(rank).node); }

void Health::fail(const Error& error) {
  {
    const std::lock_guard lock(mutex_);
    if (failure_) return;
    failure_ = error;
  }
  failed_.store(true, std::memory_order_release);
  caller_wakeup.ring();
  heartbeat_wakeup.ring();
}

std::optional<Error> Health::failure() const {
  const std::lock_guard lock(mutex_);
  return failure_;
}

void Health::report(PathLoss loss) {
  {
    const std::lock_guard lock(mutex_);
    reports_.push_back(std::move(loss));
  }
  heartbeat_wakeup.ring();
}

std::vector<PathLoss> Health::take_reports() {
  const std::lock_guard lock(mutex_);
  return std::exchange(reports_, {});
}

}  // namespace yoke::comm::direct

#include "yoke/comm/direct/vitals.h"

#include <fmt/format.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>

namespace yoke::direct {

Bell::Bell() : fd_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (!fd_) throw system_error(errno, "cannot make an eventfd");
}

void Bell::ring() const noexcept {
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(fd(), &one, sizeof one);  // full is rung enough
}

void Bell::hush() const noexcept {
  std::uint64_t rings = 0;
  [[maybe_unused]] const ssize_t got = read(fd(), &rings, sizeof rings);
}

Vitals::Vitals(Membership membership, int rank)
    : membership_(std::move(membership)),
      rank_(rank),
      peers_(std::make_unique<PeerVitals[]>(membership_.members.size())) {}

std::string Vitals::name(int rank) const { return fmt::format("rank {} on {}", rank, member(rank).node); }

void Vitals::fail(const Error& error) {
  {
    const std::lock_guard lock(mutex_);
    if (failure_) return;
    failure_ = error;
  }
  failed_.store(true, std::memory_order_release);
  caller_bell.ring();
  heart_bell.ring();
}

std::optional<Error> Vitals::failure() const {
  const std::lock_guard lock(mutex_);
  return failure_;
}

void Vitals::report(PathLoss loss) {
  {
    const std::lock_guard lock(mutex_);
    reports_.push_back(std::move(loss));
  }
  heart_bell.ring();
}

std::vector<PathLoss> Vitals::take_reports() {
  const std::lock_guard lock(mutex_);
  return std::exchange(reports_, {});
}

}  // namespace yoke::direct

#include "yoke/job/rank_channel.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>

#include "yoke/base/text.h"
#include "yoke/job/rank_place.h"

namespace yoke::job {
using namespace literals;
namespace {

// The supervisor reads all the time: one that takes nothing for so long is gone.
constexpr Seconds kSendLimit{5};

std::string variable(const Environment& environment, const std::string& name) {
  const auto found = environment.find(name);
  return found == environment.end() ? std::string() : found->second;
}

bool is_socket(int fd) {
  struct stat status {};
  return fstat(fd, &status) == 0 && S_ISSOCK(status.st_mode);
}

}  // namespace

std::string print_rails(const std::vector<RailAddress>& rails) {
  std::string text;
  for (const RailAddress& rail : rails) {
    text += fmt::format("{}{}={}", text.empty() ? "" : ",", rail.rail, rail.address);
  }
  return text;
}

std::vector<RailAddress> parse_rails(std::string_view text) {
  std::vector<RailAddress> rails;
  if (text.empty()) return rails;
  for (const std::string& part : split(text, ',')) {
    const std::size_t equals = part.find('=');
    if (equals == std::string::npos || equals == 0 || equals + 1 == part.size()) {
      throw Error(ErrorCode::kInvalid, fmt::format("YOKE_RAILS is '{}'", printable(text)),
                  "it is set by 'yoke job run': A=192.168.100.1,B=192.168.101.1");
    }
    rails.push_back({part.substr(0, equals), part.substr(equals + 1)});
  }
  return rails;
}

std::unique_ptr<RankChannel> RankChannel::from_environment() {
  const Environment environment = environment_now();
  const std::string number = variable(environment, "YOKE_JOB_FD");
  int fd = -1;
  const auto [rest, failure] = std::from_chars(number.data(), number.data() + number.size(), fd);
  // A program that a rank started has the variable too, but not the descriptor.
  if (failure != std::errc() || rest != number.data() + number.size() || !is_socket(fd)) return nullptr;
  fcntl(fd, F_SETFD, FD_CLOEXEC);
  return std::make_unique<RankChannel>(UniqueFd(fd), parse_rails(variable(environment, "YOKE_RAILS")),
                                       variable(environment, "YOKE_ADDRESS"));
}

RankChannel::RankChannel(UniqueFd socket, std::vector<RailAddress> rails, std::string address)
    : socket_(std::move(socket)),
      wake_(eventfd(0, EFD_CLOEXEC)),
      rails_(std::move(rails)),
      address_(std::move(address)) {
  if (!wake_) throw system_error(errno, "cannot make an event descriptor");
  send(to_message(MessageType::kHello, own_hello()));
  thread_ = std::thread([this] { listen(); });
}

RankChannel::~RankChannel() {
  const std::uint64_t one = 1;
  while (write(wake_.get(), &one, sizeof one) < 0 && errno == EINTR) {
  }
  thread_.join();
}

// Entry of the channel's thread: nothing leaves it.
void RankChannel::listen() {
  MessageReader reader;
  char buffer[1 << 14];
  try {
    for (;;) {
      pollfd fds[2] = {{socket_.get(), POLLIN, 0}, {wake_.get(), POLLIN, 0}};
      if (poll(fds, 2, -1) < 0 && errno != EINTR) throw system_error(errno, "cannot wait for the supervisor");
      if (fds[1].revents != 0) return;
      if (fds[0].revents == 0) continue;
      const ssize_t count = recv(socket_.get(), buffer, sizeof buffer, MSG_DONTWAIT);
      if (count < 0 && (errno == EINTR || errno == EAGAIN)) continue;
      if (count <= 0) break;
      reader.feed({buffer, static_cast<std::size_t>(count)});
      while (const auto message = reader.next()) take(*message);
    }
    end(Error(ErrorCode::kUnavailable, "the supervisor of this node is gone",
              "the job's own messages have the reason"));
  } catch (const Error& error) {
    end(error);
  } catch (const std::exception& failure) {
    end(Error(ErrorCode::kInternal, failure.what()));
  }
}

void RankChannel::take(const Message& message) {
  if (message.type == MessageType::kMembership) {
    const std::lock_guard lock(mutex_);
    membership_ = read_membership(message);
    aborted_.reset();
    changed_.notify_all();
  } else if (message.type == MessageType::kAbort) {
    abort(read_error(message));
  } else if (message.type == MessageType::kStop) {
    end(read_error(message));
  }
}

void RankChannel::abort(const Error& why) {
  std::function<void(const Error&)> function;
  {
    const std::lock_guard lock(mutex_);
    if (aborted_) return;  // the first cause counts
    aborted_ = why;
    function = on_abort_;
  }
  if (function) function(why);
}

void RankChannel::end(const Error& why) {
  {
    const std::lock_guard lock(mutex_);
    if (!ended_) ended_ = why;
    changed_.notify_all();
  }
  abort(why);
}

void RankChannel::on_abort(std::function<void(const Error&)> function) {
  std::optional<Error> missed;
  {
    const std::lock_guard lock(mutex_);
    on_abort_ = function;
    missed = aborted_;
  }
  if (missed && function) function(*missed);
}

void RankChannel::throw_if_aborted() {
  const std::lock_guard lock(mutex_);
  if (aborted_) throw Error(*aborted_);
}

spec::Membership RankChannel::join(const std::vector<spec::RailEndpoint>& endpoints, Deadline deadline) {
  return rejoin(endpoints, "", deadline);
}

spec::Membership RankChannel::rejoin(const std::vector<spec::RailEndpoint>& endpoints, const std::string& why,
                                     Deadline deadline) {
  {
    const std::lock_guard lock(mutex_);
    if (ended_) throw Error(*ended_);
  }
  send(to_message(MessageType::kJoin, Join{.endpoints = endpoints, .why = why}));
  return wait_for_membership(deadline);
}

spec::Membership RankChannel::wait_for_membership(Deadline deadline) {
  std::unique_lock lock(mutex_);
  for (;;) {
    if (ended_) throw Error(*ended_);
    if (membership_ && membership_->epoch > joined_epoch_) {
      joined_epoch_ = membership_->epoch;
      return *membership_;
    }
    if (deadline.expired()) {
      throw Error(ErrorCode::kTimeout, "the job did not announce its members in time",
                  "did every rank start and join?");
    }
    changed_.wait_for(lock, std::chrono::milliseconds(deadline.poll_timeout_ms()));
  }
}

void RankChannel::report_path(int peer, const std::string& rail, PathState state, const std::string& why) {
  PathReport report{.peer = peer, .rail = rail, .state = state, .why = why};
  {
    const std::lock_guard lock(mutex_);
    report.epoch = joined_epoch_;
  }
  send(to_message(MessageType::kPath, report));
}

void RankChannel::report_ready() { send(to_message(MessageType::kReady, RankNote{})); }

// A line that is gone is told by the thread that listens: the one that reports over it has nothing to do about it.
void RankChannel::send(const Message& message) {
  const std::string frame = encode(message);
  const std::lock_guard lock(send_mutex_);
  const Deadline deadline = Deadline::after(kSendLimit);
  for (std::size_t sent = 0; sent < frame.size() && !deadline.expired();) {
    const ssize_t count = ::send(socket_.get(), frame.data() + sent, frame.size() - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (count >= 0) {
      sent += static_cast<std::size_t>(count);
    } else if (errno == EAGAIN) {
      pollfd fd{socket_.get(), POLLOUT, 0};
      poll(&fd, 1, deadline.poll_timeout_ms());
    } else if (errno != EINTR) {
      return;
    }
  }
}

}  // namespace yoke::job

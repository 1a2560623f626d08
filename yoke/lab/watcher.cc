#include "yoke/lab/watcher.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <vector>

#include "yoke/base/clock.h"
#include "yoke/base/error.h"
#include "yoke/base/files.h"
#include "yoke/base/interrupt.h"
#include "yoke/base/log.h"
#include "yoke/lab/hardware_changes.h"
#include "yoke/lab/hardware_functions.h"
#include "yoke/lab/watcher_meminfo.h"
#include "yoke/lab/watcher_netlink.h"

namespace yoke::lab {
namespace {

namespace fs = std::filesystem;

// Setting up an interface is a dozen messages; we wait until they pause.
constexpr int kQuietMs = 20;
constexpr int kMaxQuietTries = 10;  // but not for ever

// SIGTERM, SIGINT and SIGHUP as a descriptor, as long as this lives.
class SignalFd {
 public:
  explicit SignalFd(WatcherSignals signals) {
    if (signals == WatcherSignals::kLeave) return;
    sigset_t taken;
    sigemptyset(&taken);
    for (const int signal : {SIGTERM, SIGINT, SIGHUP}) sigaddset(&taken, signal);
    pthread_sigmask(SIG_BLOCK, &taken, &before_);
    fd_ = UniqueFd(signalfd(-1, &taken, SFD_CLOEXEC | SFD_NONBLOCK));
    if (!fd_) throw system_error(errno, "cannot take signals");
  }
  SignalFd(const SignalFd&) = delete;
  SignalFd& operator=(const SignalFd&) = delete;
  ~SignalFd() {
    if (fd_) pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  int get() const { return fd_.get(); }  // -1, which poll passes over, when signals are left alone

  // The signals that came since last asked.
  std::vector<int> take() const {
    std::vector<int> signals;
    signalfd_siginfo info{};
    while (fd_ && read(fd_.get(), &info, sizeof info) == sizeof info)
      signals.push_back(static_cast<int>(info.ssi_signo));
    return signals;
  }

 private:
  sigset_t before_{};
  UniqueFd fd_;
};

// When something is next due.
class Timer {
 public:
  explicit Timer(Seconds period) : period_(period), due_(Deadline::after(Seconds{0})) {}
  bool take_due() {
    if (!due_.expired()) return false;
    due_ = Deadline::after(period_);
    return true;
  }
  void make_due() { due_ = Deadline::after(Seconds{0}); }
  const Deadline& due() const { return due_; }

 private:
  Seconds period_;
  Deadline due_;
};

// Tells whether a file is another than it was, by what stat says: cheaper than reading, and sees a rename too.
struct FileStamp {
  ino_t inode = 0;
  off_t size = -1;  // absent
  timespec written{};

  static FileStamp of(const fs::path& file) {
    struct stat status {};
    if (stat(file.c_str(), &status) != 0) return {};
    return {.inode = status.st_ino, .size = status.st_size, .written = status.st_mtim};
  }
  friend bool operator==(const FileStamp& a, const FileStamp& b) {
    return a.inode == b.inode && a.size == b.size && a.written.tv_sec == b.written.tv_sec &&
           a.written.tv_nsec == b.written.tv_nsec;
  }
};

std::vector<InterfaceState> without_counters(std::vector<InterfaceState> states) {
  for (InterfaceState& state : states) state.counters.reset();
  return states;
}

class Watcher {
 public:
  explicit Watcher(const WatcherOptions& options)
      : options_(options),
        tree_(options.root),
        faults_file_(options.root / fs::path(kHardwareFaultsPath).relative_path()),
        signals_(options.signals),
        events_(open_link_events()),
        stop_event_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
        links_(options.link_period),
        faults_timer_(options.fault_period),
        memory_(options.memory_period) {
    if (!stop_event_) throw system_error(errno, "cannot make an event");
    for (const RdmaFunction& function : find_rdma_functions(tree_)) {
      interfaces_.push_back(function.interface);
      if (options.split_ports) split_.push_back(function.device);
    }
    faults_.port_speed_100 = split_;
    if (follows_memory()) {
      real_meminfo_.add_file("/proc/meminfo", DiskTree(options.root).read("/proc/meminfo").value_or(""));
    }
  }

  void run() {
    const std::stop_callback wake(options_.stop, [&] { eventfd_write(stop_event_.get(), 1); });
    while (!stopped()) {
      if (faults_timer_.take_due()) attempt([&] { read_faults(); });
      if (links_.take_due())
        attempt([&] {
          follow_interfaces();
          answer_looks();
        });
      if (follows_memory() && memory_.take_due()) attempt([&] { follow_memory(); });
      wait();
    }
  }

 private:
  bool follows_memory() const { return !options_.memory_usage_file.empty() && !options_.meminfo_file.empty(); }

  bool stopped() {
    for (const int signal : signals_.take()) {
      if (signal != SIGHUP) return true;
      ++checks_requested_;
      faults_stamp_.reset();
      faults_timer_.make_due();
      links_.make_due();
    }
    return options_.stop.stop_requested() || interrupt_signal() != 0;
  }

  template <class Function>
  static void attempt(Function&& function) {
    try {
      function();
    } catch (const Error& error) {
      log(LogLevel::kDebug, "hardware watcher: {}", error.message());
    }
  }

  void read_faults() {
    const FileStamp stamp = FileStamp::of(faults_file_);
    if (stamp == faults_stamp_) return;
    faults_stamp_ = stamp;  // also of a file that makes no sense: it is reported once, not with every look
    HardwareFaults faults;
    if (stamp.size >= 0) {
      faults = parse_hardware_faults(read_file(faults_file_, Bytes{1 << 20}), faults_file_.native());
      check_hardware_faults(tree_, faults);
    }
    faults.port_speed_100.insert(faults.port_speed_100.end(), split_.begin(), split_.end());
    if (faults == faults_) return;
    faults_ = std::move(faults);
    links_.make_due();
    done_.reset();
  }

  // The tree is looked at only as far as something has changed: asking for some 50 files a port is most of the work.
  void follow_interfaces() {
    std::vector<InterfaceState> states = read_interfaces();
    std::erase_if(states, [&](const InterfaceState& state) {
      return std::find(interfaces_.begin(), interfaces_.end(), state.name) == interfaces_.end();
    });
    if (states == done_) return;
    const bool only_counted = done_ && without_counters(states) == without_counters(*done_);
    apply_changes(only_counted ? counter_changes(tree_, states) : hardware_changes(tree_, states, faults_),
                  options_.root);
    done_ = std::move(states);
  }

  // After the tree has followed what was there when SIGHUP came: the one that sent it waits for another number in this
  // file.
  void answer_looks() {
    if (checks_done_ == checks_requested_) return;
    write_file_atomically(options_.root / fs::path(kHardwareLooksPath).relative_path(),
                          fmt::format("{}\n", checks_requested_));
    checks_done_ = checks_requested_;
  }

  void follow_memory() {
    const Bytes used = cgroup_memory_used(options_.memory_usage_file);
    write_in_place(options_.meminfo_file, lab_meminfo(real_meminfo_, options_.memory_limit, used));
  }

  void wait() {
    int timeout = std::min(links_.due().poll_timeout_ms(), faults_timer_.due().poll_timeout_ms());
    if (follows_memory()) timeout = std::min(timeout, memory_.due().poll_timeout_ms());
    std::array<pollfd, 3> waiting = {{{.fd = events_.get(), .events = POLLIN},
                                      {.fd = stop_event_.get(), .events = POLLIN},
                                      {.fd = signals_.get(), .events = POLLIN}}};
    if (poll(waiting.data(), waiting.size(), timeout) <= 0 || waiting[0].revents == 0) return;
    for (int tries = 0; tries < kMaxQuietTries; ++tries) {
      drain_link_events(events_);
      if (poll(waiting.data(), 1, kQuietMs) <= 0) break;
    }
    links_.make_due();
  }

  const WatcherOptions& options_;
  const DiskTree tree_;
  const fs::path faults_file_;
  SignalFd signals_;
  UniqueFd events_;
  UniqueFd stop_event_;
  Timer links_, faults_timer_, memory_;
  std::vector<std::string> interfaces_;  // those of the tree
  std::vector<std::string> split_;       // RDMA devices whose port is split
  MemoryTree real_meminfo_;
  HardwareFaults faults_;
  std::optional<FileStamp> faults_stamp_;
  int checks_requested_ = 0, checks_done_ = 0;       // by SIGHUP
  std::optional<std::vector<InterfaceState>> done_;  // what the tree shows
};

}  // namespace

void watch_hardware(const WatcherOptions& options) { Watcher(options).run(); }

}  // namespace yoke::lab

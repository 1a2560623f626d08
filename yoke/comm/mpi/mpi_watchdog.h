// Ends the job when a blocking MPI call does not return: such a call cannot be left, and a rank stuck for ever is worse
// than a job that ends saying why. One thread per MpiSession; any thread may watch calls of its own.
//
//   const MpiWatchdog::Guard guard(watchdog, [&] { return signature(operation); }, deadline);   // around the call
#pragma once
#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "yoke/comm/communicator.h"

namespace yoke::comm::mpi {

// Says what is under way, asked only when it does not end: describing a small operation would cost as much as doing it.
using MpiWhat = std::function<std::string()>;

class MpiWatchdog {
 public:
  // `end_job` gets the reason, in the watchdog's thread; it does not return in earnest.
  explicit MpiWatchdog(std::function<void(const Error& reason)> end_job);
  ~MpiWatchdog();

  class Guard {
   public:
    Guard(MpiWatchdog& watchdog, MpiWhat what, Deadline deadline);
    ~Guard();
    Guard(const Guard&) = delete;
    Guard& operator=(const Guard&) = delete;

   private:
    friend class MpiWatchdog;
    MpiWatchdog& watchdog_;
    MpiWhat what_;
    Deadline deadline_;
  };

  // Whatever is under way gets a moment to end, then the job ends with `reason`.
  void hurry(const Error& reason);

 private:
  void watch();
  std::optional<Error> overdue() const;  // with mutex_ held

  std::function<void(const Error&)> end_job_;
  std::mutex mutex_;
  std::condition_variable stop_changed_;
  bool stop_ = false;
  std::vector<const Guard*> guards_;  // they lie on the stacks of the calling threads
  std::optional<Error> hurry_reason_;
  Deadline hurry_deadline_ = Deadline::never();
  std::jthread thread_;  // last: it uses all of the above
};

}  // namespace yoke::comm::mpi

// This process as a rank under MPI: from MPI_Init_thread to MPI_Finalize, of which MPI allows one each in a process.
//
//   const auto session = MpiSession::start();
//   const std::vector<std::string> endpoints = session->exchange(my_endpoint);   // to set up another backend
//   session->plain_all_reduce(…);                                                // one MPI_Allreduce, to compare with
//   auto comm = make_mpi(session);                                               // mpi.h
//
// Shared by the communicators made from it; the last owner finalizes MPI, unless an operation was left unfinished: then
// MPI may still write to its buffers, so no further call is made and the launcher sees a rank end without finalizing.
#pragma once
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "yoke/comm/mpi/mpi_library.h"
#include "yoke/comm/mpi/mpi_watchdog.h"

namespace yoke::comm::mpi {

class MpiSession {
 public:
  // What MPI's int counts in one call. Tests ask for less, to see larger operations go in parts.
  static constexpr std::size_t kMaxCount = std::numeric_limits<int>::max();

  // Throws kNotFound where there is no MPI, kConflict the second time.
  static std::shared_ptr<MpiSession> start(std::size_t count_max = kMaxCount);
  ~MpiSession();
  MpiSession(const MpiSession&) = delete;
  MpiSession& operator=(const MpiSession&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }
  std::string version() const { return library_.version(); }  // "Open MPI 4.1.4"

  // Everybody's text, by rank; all ranks call it.
  std::vector<std::string> exchange(const std::string& mine, Deadline deadline = Deadline::after({30}));

  // MPI's own blocking call on all ranks, with nothing around it but the watchdog, which ends the job at the deadline.
  // f32, i32 or i8; sum, max or min.
  void plain_all_reduce(const Collective& operation, Deadline deadline);

  // The rest is for communicators.
  const MpiLibrary& library() const { return library_; }
  MpiHandle comm() const { return comm_; }
  std::size_t count_max() const { return count_max_; }  // elements of one call
  MpiWatchdog& watchdog() { return *watchdog_; }
  // Makes every operation of this process throw `reason` from now on.
  void fail(const Error& reason);
  std::optional<Error> failure() const;
  // Waits for a non-blocking call; at the deadline it throws kTimeout naming `what`, and the session has failed.
  void finish(MpiHandle request, const MpiWhat& what, Deadline deadline);

 private:
  explicit MpiSession(std::size_t count_max);

  std::size_t count_max_;
  MpiLibrary library_;
  MpiHandle comm_ = nullptr;  // a copy of MPI_COMM_WORLD, so that nobody else's messages meet ours
  int rank_ = 0;
  int size_ = 1;
  mutable std::mutex failure_mutex_;
  std::optional<Error> failure_;
  std::unique_ptr<MpiWatchdog> watchdog_;
};

}  // namespace yoke::comm::mpi

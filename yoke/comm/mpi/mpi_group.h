// The operations of one group of ranks, as MPI calls. A group belongs to one MpiCommunicator and is used by its thread.
#pragma once
#include <memory>
#include <vector>

#include "yoke/comm/communicator.h"
#include "yoke/comm/mpi/mpi_session.h"

namespace yoke::comm::mpi {

class MpiGroup {
 public:
  explicit MpiGroup(std::shared_ptr<MpiSession> session);  // all ranks of the session
  ~MpiGroup();
  MpiGroup(const MpiGroup&) = delete;
  MpiGroup& operator=(const MpiGroup&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }
  MpiSession& session() { return *session_; }

  // Carries out a checked operation of at least one element, or a barrier.
  void carry_out(const Collective& operation, Deadline deadline);
  std::unique_ptr<MpiGroup> split(const std::vector<int>& ranks, Deadline deadline);

 private:
  // What errors call the operation under way, whatever calls it is made of, and when it must end.
  struct Bound {
    const Collective& named;
    Deadline deadline;
  };

  MpiGroup(std::shared_ptr<MpiSession> session, MpiHandle comm);

  void execute_all(const Collective& operation, const Bound& bound);
  void start_and_finish(const Collective& operation, const Bound& bound);
  void reduce_by_mpi(const Collective& operation, const Bound& bound);
  void reduce_here(const Collective& operation, const Bound& bound);
  void all_reduce_of_two(const Collective& operation, const Bound& bound);
  void all_reduce_in_parts(const Collective& operation, const Bound& bound);
  void exchange(const Collective& operation, const Bound& bound);
  void finish(MpiHandle request, const Bound& bound);
  MpiWhat name_of(const Bound& bound) const;

  const MpiFunctions& mpi() const { return session_->library().call(); }
  void check(int code, std::string_view what) const { session_->library().check(code, what); }
  std::byte* scratch(std::size_t bytes);  // grows, and stays for the next operation

  std::shared_ptr<MpiSession> session_;
  MpiHandle comm_;
  bool owns_comm_;
  int rank_ = 0;
  int size_ = 1;
  std::vector<std::byte> scratch_;
};

}  // namespace yoke::comm::mpi

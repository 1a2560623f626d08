#include "yoke/comm/mpi/mpi.h"

#include <fmt/format.h>

#include "yoke/comm/interface_choice.h"
#include "yoke/comm/mpi/mpi_group.h"
#include "yoke/comm/operation.h"

namespace yoke::comm::mpi {
namespace {

class MpiCommunicator final : public Communicator {
 public:
  MpiCommunicator(std::unique_ptr<MpiGroup> group, CommunicatorOptions options)
      : group_(std::move(group)), options_(std::move(options)) {}

  int rank() const override { return group_->rank(); }
  int size() const override { return group_->size(); }

  void enqueue(const Collective& operation, tensor::Stream stream) override {
    if (!stream.is_cpu()) {
      throw Error(ErrorCode::kUnsupported, "the mpi backend works on processor memory", "choose the nccl backend");
    }
    check_operation(operation, rank(), size());
    throw_if_failed();
    // Of no elements there is nothing to wait for either; all ranks name the same count.
    if (operation.count == 0 && operation.kind != CollectiveKind::kBarrier) return;
    try {
      group_->carry_out(operation, Deadline::after(options_.operation_timeout));
    } catch (const Error& error) {
      // MPI says nothing about what a failed call leaves behind, so it was the last one.
      if (error.code() != ErrorCode::kUnsupported) abort(error);
      throw;
    }
  }
  tensor::Event record(tensor::Stream) override { return {}; }
  void wait(tensor::Event, Deadline) override {}  // operations on a CPU stream ended, or threw, in enqueue()

  void limit_operations(Seconds limit) override { options_.operation_timeout = limit; }
  void abort(const Error& reason) override { group_->session().fail(reason); }
  void rebuild(const spec::Membership&, Deadline) override {
    throw Error(ErrorCode::kUnsupported, "MPI cannot rebuild a group: a lost rank ends the whole job",
                "start the job again, or use the direct backend, which survives a rank");
  }
  std::unique_ptr<Communicator> split(const std::vector<int>& ranks) override {
    place_in_group(ranks, rank(), size());
    throw_if_failed();
    return std::make_unique<MpiCommunicator>(group_->split(ranks, Deadline::after(options_.operation_timeout)),
                                             options_);
  }

  std::string describe() const override {
    // mpirun's --mca reaches the ranks as these variables; MPICH goes through libfabric or UCX.
    return fmt::format("mpi: {}, {} rank{}; {}", group_->session().version(), size(), size() == 1 ? "" : "s",
                       describe_interfaces("MPI", {"OMPI_MCA_btl_tcp_if_include", "OMPI_MCA_btl_tcp_if_exclude",
                                                   "FI_TCP_IFACE", "UCX_NET_DEVICES"}));
  }

 private:
  void throw_if_failed() const {
    if (const auto reason = group_->session().failure()) throw *reason;
  }

  std::unique_ptr<MpiGroup> group_;
  CommunicatorOptions options_;
};

}  // namespace

std::unique_ptr<Communicator> make_mpi(std::shared_ptr<MpiSession> session, CommunicatorOptions options) {
  return std::make_unique<MpiCommunicator>(std::make_unique<MpiGroup>(std::move(session)), std::move(options));
}

}  // namespace yoke::comm::mpi

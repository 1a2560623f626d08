// Collectives of device memory by a communicator that exchanges the processors': each operation waits for what its
// stream has to give, copies it into pinned memory, exchanges it there, and enqueues the copy back. For clusters
// without NCCL, and for several ranks on one GPU, which NCCL refuses. On the CPU stream operations go straight through.
//
//   StagedCommunicator staged(world.comm(), world.device());    // the communicator must outlive it
//   all_reduce(staged, values, count, DType::kF32, ReduceOp::kSum, stream);
#pragma once
#include <memory>
#include <optional>
#include <vector>

#include "yoke/comm/communicator.h"
#include "yoke/cuda/kernels.h"

namespace yoke::comm {

class StagedCommunicator final : public Communicator {
 public:
  StagedCommunicator(Communicator& inner, int device) : inner_(inner), device_(device) {}
  StagedCommunicator(std::unique_ptr<Communicator> inner, int device)
      : owned_(std::move(inner)), inner_(*owned_), device_(device) {}

  int rank() const override { return inner_.rank(); }
  int size() const override { return inner_.size(); }
  void enqueue(const Collective& operation, tensor::Stream stream) override;
  tensor::Event record(tensor::Stream stream) override;
  void wait(tensor::Event event, Deadline deadline) override;
  void limit_operations(Seconds limit) override;
  void abort(const Error& reason) override { inner_.abort(reason); }
  void rebuild(const spec::Membership& membership, Deadline deadline) override { inner_.rebuild(membership, deadline); }
  std::unique_ptr<Communicator> split(const std::vector<int>& ranks) override {
    return std::make_unique<StagedCommunicator>(inner_.split(ranks), device_.index());
  }
  std::string describe() const override { return inner_.describe() + ", copied to and from the GPU"; }
  std::vector<spec::RailUse> rail_uses() const override { return inner_.rail_uses(); }

 private:
  std::byte* room(std::optional<cuda::CudaHostMemory>& memory, std::size_t bytes) const;
  tensor::Event recorded(tensor::Stream stream);
  void wait_for(tensor::Event event, Deadline deadline) const;

  std::unique_ptr<Communicator> owned_;
  Communicator& inner_;
  cuda::CudaDevice device_;
  std::optional<cuda::CudaHostMemory> send_, receive_;
  std::vector<cuda::CudaEvent> events_;  // used in turns
  std::size_t next_event_ = 0;
  Seconds limit_{30};
};

}  // namespace yoke::comm

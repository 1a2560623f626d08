// NCCL's own all-reduce with nothing around it but a wait for its end, to compare with: a blocking communicator, as
// most programs have. No deadline, no recovery: for measurements only.
#pragma once
#include <string>

#include "yoke/comm/communicator.h"
#include "yoke/cuda/driver.h"

namespace yoke::comm::nccl {

class PlainNccl {
 public:
  // All ranks at once, with the same id (make_nccl_id() of one of them).
  PlainNccl(int device, int rank, int size, const std::string& id);
  PlainNccl(const PlainNccl&) = delete;
  PlainNccl& operator=(const PlainNccl&) = delete;
  ~PlainNccl();

  void all_reduce(const Collective& operation);  // returns when it is done
  std::string version() const;                   // "NCCL 2.28.3"

 private:
  cuda::CudaDevice device_;
  cuda::CudaStream stream_;
  int rank_, size_;
  void* comm_ = nullptr;
};

}  // namespace yoke::comm::nccl

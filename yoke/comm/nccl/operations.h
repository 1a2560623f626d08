// How each kind of operation is said to NCCL: its own collective where it has one in all versions that we take, else a
// group of sends and receives. Nothing is waited for here; the caller holds the session (session.h).
#pragma once
#include "yoke/comm/communicator.h"
#include "yoke/comm/nccl/library.h"
#include "yoke/cuda/driver.h"

namespace yoke::comm::nccl {

struct NcclPlace {
  const NcclFunctions& nccl;
  const cuda::CudaDevice& device;
  NcclComm comm = nullptr;
  int rank = 0;
  int size = 1;
  void* word = nullptr;   // four bytes of device memory, for the barrier
  tensor::Stream stream;  // a CUDA stream
};

// kSuccess and kInProgress are both good. Throws what the driver says against a copy of the rank's own part.
NcclResult issue(const NcclPlace& at, const Collective& operation);

}  // namespace yoke::comm::nccl

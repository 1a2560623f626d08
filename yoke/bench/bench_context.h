// What a measurement runs on: the communicator that is measured, with the memory that it takes, and the one by which
// the ranks tell each other numbers and wait for each other. They are the same but for GPUs, whose communicators carry
// device memory only.
#pragma once
#include "yoke/comm/communicator.h"

namespace yoke::cuda {
class CudaDevice;
}
namespace yoke::bench {

struct BenchContext {
  comm::Communicator& comm;
  comm::Communicator& control;
  tensor::Stream stream = tensor::Stream::cpu();
  const cuda::CudaDevice* device = nullptr;  // whose memory is measured; null: the processor's
};

}  // namespace yoke::bench

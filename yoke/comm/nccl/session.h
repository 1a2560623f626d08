// One life of an NCCL communicator, from the id to the end, with the stream and the device memory that it needs. A
// rebuilt communicator is a new session.
//
// NCCL frees a communicator in aborting it, no matter who still uses it. Therefore the handle is used only under the
// session's mutex, in calls that return at once (the communicator does not block), and who ends it takes it out first.
// abort() may come from any thread; the rest belongs to the owner's. Owned by shared_ptr: an end that NCCL does not
// come back from keeps its session, instead of the caller.
#pragma once
#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "yoke/comm/nccl/library.h"
#include "yoke/cuda/driver.h"

namespace yoke::comm::nccl {

class NcclSession : public std::enable_shared_from_this<NcclSession> {
 public:
  explicit NcclSession(std::shared_ptr<const cuda::CudaDevice> device);

  const cuda::CudaDevice& device() const { return *device_; }
  const cuda::CudaStream& stream() const { return stream_; }  // for operations on the CPU stream
  void* word() const { return word_.data(); }                 // for the barrier

  // Begins to connect: state() is kInProgress until all ranks have come. Returns what NCCL says against it.
  NcclResult start(int rank, int size, const std::string& id);
  // Calls NCCL with the handle and the device current; kInvalidUsage after the end.
  NcclResult call(const std::function<NcclResult(NcclComm)>& function);
  // Of all that was called: kSuccess, kInProgress, or the error that came in the background.
  NcclResult state();

  // Frees it and stops what still runs on the device. At most about ten seconds.
  void abort() noexcept;
  // Lets what was enqueued end before; where that does not happen until the deadline, aborts.
  void close(Deadline deadline) noexcept;

 private:
  using End = NcclResult (*)(NcclComm);
  void end(End how) noexcept;

  const NcclLibrary& nccl_;
  std::shared_ptr<const cuda::CudaDevice> device_;
  cuda::CudaStream stream_;
  cuda::CudaMemory word_;
  std::mutex mutex_;
  NcclComm comm_ = nullptr;  // under mutex_; null before the start and after the end
};

}  // namespace yoke::comm::nccl

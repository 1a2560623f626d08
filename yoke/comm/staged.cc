#include "yoke/comm/staged.h"

#include <algorithm>

#include "yoke/base/error.h"

namespace yoke::comm {
namespace {

constexpr std::size_t kEvents = 16;
constexpr std::size_t kRoomMin = std::size_t{1} << 20;

}  // namespace

std::byte* StagedCommunicator::room(std::optional<cuda::CudaHostMemory>& memory, std::size_t bytes) const {
  if (!memory || memory->size() < bytes) {
    memory.reset();
    memory.emplace(device_, std::max(bytes, kRoomMin));
  }
  return memory->data();
}

tensor::Event StagedCommunicator::recorded(tensor::Stream stream) {
  if (events_.size() < kEvents) events_.emplace_back(device_);
  const cuda::CudaEvent& event = events_[next_event_++ % events_.size()];
  event.record(stream);
  return event.event();
}

void StagedCommunicator::wait_for(tensor::Event event, Deadline deadline) const {
  cuda::PollPause between;
  while (!cuda::has_passed(device_, event)) {
    if (deadline.expired()) {
      throw Error(ErrorCode::kTimeout, "the GPU did not finish the work before an exchange in time",
                  "see what nvidia-smi prints on this machine");
    }
    between.pause();
  }
}

void StagedCommunicator::enqueue(const Collective& operation, tensor::Stream stream) {
  if (stream.is_cpu()) return inner_.enqueue(operation, stream);
  const CollectiveCounts counts = counts_of(operation, rank(), size());
  const std::size_t element = tensor::size_of(operation.type);
  // What was copied back before has left its room when the stream has come here.
  wait_for(recorded(stream), Deadline::after(limit_));
  Collective staged = operation;
  std::byte* const to_send = room(send_, counts.send * element);
  std::byte* const received = room(receive_, counts.receive * element);
  staged.send = to_send;
  staged.receive = received;
  if (counts.send > 0) {
    cuda::cuda_copy(device_, stream, to_send, operation.send, counts.send * element);
    wait_for(recorded(stream), Deadline::after(limit_));
  }
  inner_.enqueue(staged, tensor::Stream::cpu());
  if (counts.receive > 0) cuda::cuda_copy(device_, stream, operation.receive, received, counts.receive * element);
}

tensor::Event StagedCommunicator::record(tensor::Stream stream) {
  return stream.is_cpu() ? inner_.record(stream) : recorded(stream);
}

void StagedCommunicator::wait(tensor::Event event, Deadline deadline) {
  if (event.cuda != nullptr) wait_for(event, deadline);
  inner_.wait({}, deadline);
}

void StagedCommunicator::limit_operations(Seconds limit) {
  limit_ = limit;
  inner_.limit_operations(limit);
}

}  // namespace yoke::comm

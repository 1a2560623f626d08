// The order in which work is done. Work for the processor is done at once, in the caller's thread: a CPU stream is only
// a word for that. A CUDA stream is the driver's, which cuda/ makes and owns; here it is carried as a pointer.
#pragma once

namespace yoke::tensor {

struct Stream {
  void* cuda = nullptr;  // a CUstream; null: the processor, inline

  static Stream cpu() { return {}; }
  bool is_cpu() const { return cuda == nullptr; }
};

// A point in a stream: everything enqueued before it.
struct Event {
  void* cuda = nullptr;  // a CUevent, owned by the one that recorded it; null: passed already
};

}  // namespace yoke::tensor

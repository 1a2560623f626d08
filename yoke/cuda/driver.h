// The CUDA driver behind our types, in every build: libcuda.so.1 is loaded when it is first asked for, so that the
// program needs neither the toolkit to be built nor a GPU to start (docs/decisions/0004). YOKE_CUDA names another file.
//
//   CudaDevice device(0);
//   CudaStream stream(device);
//   CudaMemory values(device, 4096);
//   stream.copy(values.data(), host, 4096);
//   stream.wait(Deadline::after(5_s));
//
// A device's primary context is the one that the CUDA runtime uses too (NCCL, kernels compiled by nvcc). It is made
// current for each call by the call itself, in any thread; who calls another library that needs it holds current().
// A CudaDevice outlives what was made on it. Return codes become Errors in CudaDriver::check, and only there.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "yoke/base/clock.h"
#include "yoke/base/result.h"
#include "yoke/tensor/stream.h"

namespace yoke::cuda {

// The functions of libcuda.so.1 that we call, with the symbol that each is bound to in driver.cc. Handles are opaque
// pointers, a device is its number, an address in device memory is 64 bits wide.
struct CudaFunctions {
  int (*init)(unsigned flags) = nullptr;
  int (*driver_version)(int* version) = nullptr;
  int (*error_string)(int error, const char** text) = nullptr;
  int (*device_count)(int* count) = nullptr;
  int (*device_get)(int* device, int ordinal) = nullptr;
  int (*device_name)(char* name, int size, int device) = nullptr;
  int (*device_bus)(char* name, int size, int device) = nullptr;
  int (*device_attribute)(int* value, int attribute, int device) = nullptr;
  int (*context_retain)(void** context, int device) = nullptr;
  int (*context_release)(int device) = nullptr;
  int (*context_push)(void* context) = nullptr;
  int (*context_pop)(void** context) = nullptr;
  int (*memory_allocate)(std::uint64_t* address, std::size_t size) = nullptr;
  int (*memory_free)(std::uint64_t address) = nullptr;
  int (*memory_info)(std::size_t* available, std::size_t* whole) = nullptr;
  int (*memory_copy)(std::uint64_t to, std::uint64_t from, std::size_t size, void* stream) = nullptr;
  int (*stream_create)(void** stream, unsigned flags) = nullptr;
  int (*stream_query)(void* stream) = nullptr;
  int (*stream_destroy)(void* stream) = nullptr;
  int (*event_create)(void** event, unsigned flags) = nullptr;
  int (*event_record)(void* event, void* stream) = nullptr;
  int (*event_query)(void* event) = nullptr;
  int (*event_elapsed)(float* milliseconds, void* from, void* to) = nullptr;
  int (*event_destroy)(void* event) = nullptr;
  int (*memory_set)(std::uint64_t to, unsigned char value, std::size_t size, void* stream) = nullptr;
  int (*host_allocate)(void** memory, std::size_t size, unsigned flags) = nullptr;
  int (*host_free)(void* memory) = nullptr;
  int (*module_load)(void** module, const void* image) = nullptr;
  int (*module_function)(void** function, void* module, const char* name) = nullptr;
  int (*function_attribute)(void* function, int attribute, int value) = nullptr;
  int (*launch)(const void* config, void* function, void** arguments, void** extra) = nullptr;
};

class CudaDriver {
 public:
  // The driver, loaded and initialized once per process; where there is none or no device, kUnavailable with the
  // reason.
  static Result<const CudaDriver*> find();
  static const CudaDriver& get();  // the same, thrown

  int version() const;  // 13000 is CUDA 13.0
  int device_count() const;
  std::string device_name(int device) const;

  const CudaFunctions& call() const { return functions_; }
  void check(int result, const char* what) const;    // "cannot <what>: out of memory"
  bool is_done(int result, const char* what) const;  // of a query: false where it is not ready yet

 private:
  CudaDriver() = default;
  static Result<CudaDriver> load();
  CudaFunctions functions_;
};

// The context of a device is current in this thread until this goes; then what was current before is again.
class CudaCurrent {
 public:
  CudaCurrent(const CudaDriver& driver, void* context);
  CudaCurrent(const CudaCurrent&) = delete;
  CudaCurrent& operator=(const CudaCurrent&) = delete;
  ~CudaCurrent();

 private:
  const CudaDriver& driver_;
};

class CudaDevice {
 public:
  explicit CudaDevice(int index);  // throws kUnavailable without a driver, kNotFound for a device that is not there
  CudaDevice(const CudaDevice&) = delete;
  CudaDevice& operator=(const CudaDevice&) = delete;
  ~CudaDevice();

  int index() const { return index_; }
  const std::string& name() const { return name_; }  // "NVIDIA H200"
  std::string bus() const;                           // "000f:01:00": domain, bus and device
  bool has_unified_memory() const;                   // its memory is the host's, as on a Spark
  int architecture() const;                          // 90 of compute capability 9.0
  int multiprocessors() const;
  int shared_memory_max() const;         // bytes that a block of threads may have
  std::size_t memory_available() const;  // on the device, as the driver says
  const CudaDriver& driver() const { return driver_; }
  [[nodiscard]] CudaCurrent current() const { return {driver_, context_}; }

 private:
  int attribute(int which) const;

  const CudaDriver& driver_;
  int index_ = 0;
  int handle_ = 0;  // the driver's word for the device
  void* context_ = nullptr;
  std::string name_;
};

// Device memory. Freeing it waits for all work of the device.
class CudaMemory {
 public:
  CudaMemory(const CudaDevice& device, std::size_t size);  // kExhausted where it does not fit; 0 allocates nothing
  CudaMemory(CudaMemory&& other) noexcept;
  CudaMemory& operator=(CudaMemory&&) = delete;
  ~CudaMemory();

  void* data() const;
  std::size_t size() const { return size_; }

 private:
  const CudaDevice* device_;
  std::uint64_t address_ = 0;
  std::size_t size_ = 0;
};

// One at a time: all work enqueued on it happens in order. It does not wait for the default stream, nor that for it.
class CudaStream {
 public:
  explicit CudaStream(const CudaDevice& device);
  CudaStream(CudaStream&& other) noexcept;
  CudaStream& operator=(CudaStream&&) = delete;
  ~CudaStream();

  tensor::Stream stream() const { return {.cuda = handle_}; }

  // Host or device memory on either side. Host memory must stay until the stream has come past the copy.
  void copy(void* to, const void* from, std::size_t size) const;
  bool is_done() const;
  void wait(Deadline deadline) const;  // until all enqueued work is done; kTimeout at the deadline

 private:
  const CudaDevice* device_;
  void* handle_ = nullptr;
};

// Enqueues a copy on a stream that somebody else owns; null is no stream here.
void cuda_copy(const CudaDevice& device, tensor::Stream stream, void* to, const void* from, std::size_t size);

enum class CudaEventUse {
  kOrder,  // cheaper
  kTime,   // for seconds_between()
};

class CudaEvent {
 public:
  explicit CudaEvent(const CudaDevice& device, CudaEventUse use = CudaEventUse::kOrder);
  CudaEvent(CudaEvent&& other) noexcept;
  CudaEvent& operator=(CudaEvent&&) = delete;
  ~CudaEvent();

  tensor::Event event() const { return {.cuda = handle_}; }
  const CudaDevice& device() const { return *device_; }
  void record(tensor::Stream stream) const;
  bool passed() const;  // also true when it was never recorded

 private:
  const CudaDevice* device_;
  void* handle_ = nullptr;
};

// On the device's clock, of two events for time that both have passed.
double seconds_between(const CudaEvent& from, const CudaEvent& to);

// Of an event known only by its handle, such as one that a Communicator recorded.
bool has_passed(const CudaDevice& device, tensor::Event event);

// What a loop that polls the device does between two looks: it yields at first, because most waits are short, and
// sleeps after the first millisecond, so that a long wait does not burn a core.
class PollPause {
 public:
  void pause();

 private:
  std::optional<Instant> started_;
};

}  // namespace yoke::cuda

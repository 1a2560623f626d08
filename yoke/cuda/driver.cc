#include "yoke/cuda/driver.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <thread>

#include "yoke/base/check.h"
#include "yoke/base/log.h"
#include "yoke/base/shared_library.h"

namespace yoke::cuda {
namespace {

// Of CUresult, in cuda.h of the toolkit; the numbers are part of the driver's ABI.
enum : int {
  kCudaOutOfMemory = 2,
  kCudaNoDevice = 100,
  kCudaInvalidDevice = 101,
  kCudaNoBinary = 209,
  kCudaEccUncorrectable = 214,
  kCudaInvalidPtx = 218,
  kCudaUnsupportedPtx = 222,
  kCudaNotReady = 600,
  kCudaIllegalAddress = 700,
  kCudaLaunchTimeout = 702,
  kCudaIllegalInstruction = 715,
  kCudaMisalignedAddress = 716,
  kCudaLaunchFailed = 719,
  kCudaDeviceUnavailable = 46,
  kCudaUnknown = 999,
};
constexpr unsigned kStreamNonBlocking = 1;
constexpr unsigned kEventDefault = 0;
constexpr unsigned kEventDisableTiming = 2;
// Of CUdevice_attribute.
constexpr int kAttributeMultiprocessors = 16;
constexpr int kAttributeIntegrated = 18;  // the GPU shares the host's memory
constexpr int kAttributeMajor = 75;       // of the compute capability
constexpr int kAttributeMinor = 76;
constexpr int kAttributeSharedMax = 97;

ErrorCode code_of(int result) {
  switch (result) {
    case kCudaOutOfMemory:
      return ErrorCode::kExhausted;
    case kCudaNoDevice:
    case kCudaNoBinary:
    case kCudaInvalidPtx:
    case kCudaUnsupportedPtx:
      return ErrorCode::kUnsupported;
    case kCudaInvalidDevice:
      return ErrorCode::kNotFound;
    // A GPU that is lost, broken or taken, or a kernel that failed: the context is of no more use.
    case kCudaEccUncorrectable:
    case kCudaIllegalAddress:
    case kCudaLaunchTimeout:
    case kCudaIllegalInstruction:
    case kCudaMisalignedAddress:
    case kCudaLaunchFailed:
    case kCudaDeviceUnavailable:
    case kCudaUnknown:
      return ErrorCode::kUnavailable;
    default:
      return ErrorCode::kInternal;
  }
}

// The suffixes are those that cuda.h of CUDA 12 and 13 maps the plain names to; the symbols without them are older
// functions with narrower arguments.
CudaFunctions bind_all(const SharedLibrary& library) {
  CudaFunctions f;
  library.bind("cuInit", f.init);
  library.bind("cuDriverGetVersion", f.driver_version);
  library.bind("cuGetErrorString", f.error_string);
  library.bind("cuDeviceGetCount", f.device_count);
  library.bind("cuDeviceGet", f.device_get);
  library.bind("cuDeviceGetName", f.device_name);
  library.bind("cuDeviceGetPCIBusId", f.device_bus);
  library.bind("cuDeviceGetAttribute", f.device_attribute);
  library.bind("cuDevicePrimaryCtxRetain", f.context_retain);
  library.bind("cuDevicePrimaryCtxRelease_v2", f.context_release);
  library.bind("cuCtxPushCurrent_v2", f.context_push);
  library.bind("cuCtxPopCurrent_v2", f.context_pop);
  library.bind("cuMemAlloc_v2", f.memory_allocate);
  library.bind("cuMemFree_v2", f.memory_free);
  library.bind("cuMemGetInfo_v2", f.memory_info);
  library.bind("cuMemcpyAsync", f.memory_copy);
  library.bind("cuStreamCreate", f.stream_create);
  library.bind("cuStreamQuery", f.stream_query);
  library.bind("cuStreamDestroy_v2", f.stream_destroy);
  library.bind("cuEventCreate", f.event_create);
  library.bind("cuEventRecord", f.event_record);
  library.bind("cuEventQuery", f.event_query);
  library.bind("cuEventElapsedTime", f.event_elapsed);
  library.bind("cuEventDestroy_v2", f.event_destroy);
  library.bind("cuMemsetD8Async", f.memory_set);
  library.bind("cuMemHostAlloc", f.host_allocate);
  library.bind("cuMemFreeHost", f.host_free);
  library.bind("cuModuleLoadData", f.module_load);
  library.bind("cuModuleGetFunction", f.module_function);
  library.bind("cuFuncSetAttribute", f.function_attribute);
  library.bind("cuLaunchKernelEx", f.launch);
  return f;
}

// For destructors: at the end of the process the driver may be gone before our objects, and has then freed all itself.
template <class Function, class Handle>
void let_go(const CudaDevice& device, Function free, Handle handle) noexcept {
  try {
    const auto current = device.current();
    free(handle);
  } catch (const Error& error) {
    log(LogLevel::kDebug, "cuda: {}", error.message());
  }
}

std::uint64_t address_of(const void* pointer) { return reinterpret_cast<std::uintptr_t>(pointer); }

}  // namespace

Result<CudaDriver> CudaDriver::load() {
  const char* named = std::getenv("YOKE_CUDA");
  const std::string path = named != nullptr && *named != '\0' ? named : "libcuda.so.1";
  return try_to([&] {
    CudaDriver driver;
    driver.functions_ = bind_all(value_or_throw(
        SharedLibrary::open({.what = "the CUDA driver",
                             .names = {path},
                             .missing_hint = "install the NVIDIA driver; in a container, start it with --gpus all",
                             .old_hint = "install a newer NVIDIA driver"})));
    if (const int result = driver.functions_.init(0); result != 0) {
      const char* text = nullptr;
      driver.functions_.error_string(result, &text);
      throw Error(result == kCudaNoDevice ? ErrorCode::kUnsupported : ErrorCode::kUnavailable,
                  fmt::format("the CUDA driver does not start: {} (CUDA error {})", text ? text : "unknown", result),
                  "see what nvidia-smi prints on this machine");
    }
    return driver;
  });
}

Result<const CudaDriver*> CudaDriver::find() {
  static const Result<CudaDriver> loaded = load();
  if (!loaded) return Unexpected(loaded.error());
  return &*loaded;
}

const CudaDriver& CudaDriver::get() { return *value_or_throw(find()); }

void CudaDriver::check(int result, const char* what) const {
  if (result == 0) return;
  const char* text = nullptr;
  functions_.error_string(result, &text);
  throw Error(code_of(result), fmt::format("cannot {}: {} (CUDA error {})", what, text ? text : "unknown", result));
}

bool CudaDriver::is_done(int result, const char* what) const {
  if (result == kCudaNotReady) return false;
  check(result, what);
  return true;
}

int CudaDriver::version() const {
  int version = 0;
  check(functions_.driver_version(&version), "ask for the version of CUDA");
  return version;
}

int CudaDriver::device_count() const {
  int count = 0;
  check(functions_.device_count(&count), "count the GPUs");
  return count;
}

std::string CudaDriver::device_name(int device) const {
  int handle = 0;
  check(functions_.device_get(&handle, device), "find the GPU");
  char name[256] = {};
  check(functions_.device_name(name, sizeof name - 1, handle), "ask for the name of the GPU");
  return name;
}

CudaCurrent::CudaCurrent(const CudaDriver& driver, void* context) : driver_(driver) {
  driver_.check(driver_.call().context_push(context), "use the GPU in this thread");
}

CudaCurrent::~CudaCurrent() {
  void* popped = nullptr;
  driver_.call().context_pop(&popped);
}

CudaDevice::CudaDevice(int index) : driver_(CudaDriver::get()), index_(index) {
  const int count = driver_.device_count();
  if (index < 0 || index >= count) {
    throw Error(ErrorCode::kNotFound, fmt::format("there is no GPU {} here: the driver sees {}", index, count),
                "GPUs are counted from 0; CUDA_VISIBLE_DEVICES may hide some");
  }
  driver_.check(driver_.call().device_get(&handle_, index), "find the GPU");
  name_ = driver_.device_name(index);
  driver_.check(driver_.call().context_retain(&context_, handle_), "start the GPU");
}

CudaDevice::~CudaDevice() { driver_.call().context_release(handle_); }

std::string CudaDevice::bus() const {
  char name[32] = {};
  driver_.check(driver_.call().device_bus(name, sizeof name - 1, handle_), "ask for the bus of the GPU");
  std::string text = name;  // "000F:01:00.0"
  text.resize(std::min(text.size(), text.rfind('.')));
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

int CudaDevice::attribute(int which) const {
  int value = 0;
  driver_.check(driver_.call().device_attribute(&value, which, handle_), "ask what a GPU is");
  return value;
}

bool CudaDevice::has_unified_memory() const { return attribute(kAttributeIntegrated) != 0; }
int CudaDevice::architecture() const { return 10 * attribute(kAttributeMajor) + attribute(kAttributeMinor); }
int CudaDevice::multiprocessors() const { return attribute(kAttributeMultiprocessors); }
int CudaDevice::shared_memory_max() const { return attribute(kAttributeSharedMax); }

std::size_t CudaDevice::memory_available() const {
  const auto now = current();
  std::size_t available = 0, whole = 0;
  driver_.check(driver_.call().memory_info(&available, &whole), "ask for the memory of the GPU");
  return available;
}

CudaMemory::CudaMemory(const CudaDevice& device, std::size_t size) : device_(&device), size_(size) {
  if (size == 0) return;
  const auto current = device.current();
  const std::string what = fmt::format("allocate {} bytes on GPU {}", size, device.index());
  device.driver().check(device.driver().call().memory_allocate(&address_, size), what.c_str());
}

CudaMemory::CudaMemory(CudaMemory&& other) noexcept
    : device_(other.device_), address_(std::exchange(other.address_, 0)), size_(std::exchange(other.size_, 0)) {}

CudaMemory::~CudaMemory() {
  if (address_ != 0) let_go(*device_, device_->driver().call().memory_free, address_);
}

void* CudaMemory::data() const { return reinterpret_cast<void*>(static_cast<std::uintptr_t>(address_)); }

CudaStream::CudaStream(const CudaDevice& device) : device_(&device) {
  const auto current = device.current();
  device.driver().check(device.driver().call().stream_create(&handle_, kStreamNonBlocking), "make a stream");
}

CudaStream::CudaStream(CudaStream&& other) noexcept
    : device_(other.device_), handle_(std::exchange(other.handle_, nullptr)) {}

CudaStream::~CudaStream() {
  if (handle_ != nullptr) let_go(*device_, device_->driver().call().stream_destroy, handle_);
}

void CudaStream::copy(void* to, const void* from, std::size_t size) const {
  cuda_copy(*device_, stream(), to, from, size);
}

bool CudaStream::is_done() const {
  const auto current = device_->current();
  return device_->driver().is_done(device_->driver().call().stream_query(handle_), "do the work of a stream");
}

void CudaStream::wait(Deadline deadline) const {
  PollPause between;
  while (!is_done()) {
    if (deadline.expired()) throw Error(ErrorCode::kTimeout, "the work of a CUDA stream was not done in time");
    between.pause();
  }
}

void cuda_copy(const CudaDevice& device, tensor::Stream stream, void* to, const void* from, std::size_t size) {
  YOKE_CHECK(!stream.is_cpu());
  if (size == 0) return;
  const auto current = device.current();
  const CudaDriver& driver = device.driver();
  driver.check(driver.call().memory_copy(address_of(to), address_of(from), size, stream.cuda), "copy memory");
}

CudaEvent::CudaEvent(const CudaDevice& device, CudaEventUse use) : device_(&device) {
  const auto current = device.current();
  const unsigned flags = use == CudaEventUse::kTime ? kEventDefault : kEventDisableTiming;
  device.driver().check(device.driver().call().event_create(&handle_, flags), "make an event");
}

CudaEvent::CudaEvent(CudaEvent&& other) noexcept
    : device_(other.device_), handle_(std::exchange(other.handle_, nullptr)) {}

CudaEvent::~CudaEvent() {
  if (handle_ != nullptr) let_go(*device_, device_->driver().call().event_destroy, handle_);
}

void CudaEvent::record(tensor::Stream stream) const {
  YOKE_CHECK(!stream.is_cpu());
  const auto current = device_->current();
  device_->driver().check(device_->driver().call().event_record(handle_, stream.cuda), "record an event");
}

bool CudaEvent::passed() const { return has_passed(*device_, event()); }

double seconds_between(const CudaEvent& from, const CudaEvent& to) {
  const auto current = from.device().current();
  const CudaDriver& driver = from.device().driver();
  float milliseconds = 0;
  driver.check(driver.call().event_elapsed(&milliseconds, from.event().cuda, to.event().cuda), "read a GPU's clock");
  return milliseconds / 1e3;
}

bool has_passed(const CudaDevice& device, tensor::Event event) {
  if (event.cuda == nullptr) return true;
  const auto current = device.current();
  return device.driver().is_done(device.driver().call().event_query(event.cuda), "do the work before an event");
}

void PollPause::pause() {
  const Instant now = real_clock().now();
  if (!started_) started_ = now;
  if (now - *started_ < std::chrono::milliseconds(1)) {
    std::this_thread::yield();
  } else {
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
}

}  // namespace yoke::cuda

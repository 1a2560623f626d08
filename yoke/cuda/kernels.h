// Compiled kernels on a device, and memory of the host that copies to and from it do not have to wait for.
//
//   const CudaModule module(device, image);                       // a fat binary, or PTX
//   const CudaKernel add = module.kernel("yoke_add");
//   add.launch(stream, {.blocks = {8}, .threads = 256}, x, y, count);
//
// A CudaModule stays loaded as long as its device's context does. Arguments of launch() must have the types of the
// kernel's parameters, exactly.
#pragma once
#include <array>
#include <span>

#include "yoke/cuda/driver.h"

namespace yoke::cuda {

struct LaunchShape {
  std::array<unsigned, 3> blocks = {1, 1, 1};
  unsigned threads = 1;
  unsigned shared = 0;  // bytes of shared memory beyond what the kernel declares
};

// When a kernel may begin: after the one before it in the stream has ended, or before, as it waits for that by itself
// (griddepcontrol.wait) once it has done what does not depend on it.
enum class KernelStart { kAfterPrevious, kWaitsItself };

class CudaKernel {
 public:
  CudaKernel() = default;
  CudaKernel(const CudaDevice& device, void* function, const char* name, KernelStart start)
      : device_(&device), function_(function), name_(name), start_(start) {}

  void allow_shared(unsigned bytes) const;  // more than 48 KiB must be asked for, once

  // Enqueued; an axis without blocks launches nothing.
  template <class... Arguments>
  void launch(tensor::Stream stream, const LaunchShape& shape, Arguments... arguments) const {
    std::array<void*, sizeof...(Arguments)> pointers{static_cast<void*>(&arguments)...};
    launch_with(stream, shape, pointers.data());
  }

 private:
  void launch_with(tensor::Stream stream, const LaunchShape& shape, void** arguments) const;

  const CudaDevice* device_ = nullptr;
  void* function_ = nullptr;
  const char* name_ = "";
  KernelStart start_ = KernelStart::kAfterPrevious;
};

class CudaModule {
 public:
  // Error(kUnsupported) where the image has nothing for this GPU's architecture.
  CudaModule(const CudaDevice& device, std::span<const std::byte> image);

  // The name lives as long as the kernel.
  CudaKernel kernel(const char* name, KernelStart start = KernelStart::kAfterPrevious) const;

 private:
  const CudaDevice* device_;
  void* module_ = nullptr;
};

// Pinned: the device reads and writes it without the processor's help.
class CudaHostMemory {
 public:
  CudaHostMemory(const CudaDevice& device, std::size_t size);  // kExhausted where it does not fit
  CudaHostMemory(const CudaHostMemory&) = delete;
  ~CudaHostMemory();

  std::byte* data() const { return data_; }
  std::size_t size() const { return size_; }

 private:
  const CudaDevice* device_;
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

void cuda_clear(const CudaDevice& device, tensor::Stream stream, void* to, std::size_t size);  // with zeros

}  // namespace yoke::cuda

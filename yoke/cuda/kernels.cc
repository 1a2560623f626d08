#include "yoke/cuda/kernels.h"

#include <fmt/format.h>

#include <algorithm>

#include "yoke/base/check.h"
#include "yoke/base/error.h"

namespace yoke::cuda {
namespace {

constexpr int kAttributeMaxDynamicShared = 8;  // of CUfunction_attribute

// CUlaunchConfig and CUlaunchAttribute of cuda.h.
constexpr int kProgrammaticSerialization = 6;
struct LaunchAttribute {
  int id = kProgrammaticSerialization;
  int padding = 0;
  std::array<int, 16> value{1};
};
struct LaunchConfig {
  std::array<unsigned, 3> blocks, threads;
  unsigned shared = 0;
  void* stream = nullptr;
  LaunchAttribute* attributes = nullptr;
  unsigned attribute_count = 0;
};

}  // namespace

void CudaKernel::allow_shared(unsigned bytes) const {
  const auto current = device_->current();
  device_->driver().check(
      device_->driver().call().function_attribute(function_, kAttributeMaxDynamicShared, static_cast<int>(bytes)),
      "reserve shared memory for a kernel");
}

void CudaKernel::launch_with(tensor::Stream stream, const LaunchShape& shape, void** arguments) const {
  YOKE_CHECK(function_ != nullptr && !stream.is_cpu());
  if (std::ranges::find(shape.blocks, 0U) != shape.blocks.end()) return;
  const auto current = device_->current();
  LaunchAttribute overlap;
  const LaunchConfig config{.blocks = shape.blocks,
                            .threads = {shape.threads, 1, 1},
                            .shared = shape.shared,
                            .stream = stream.cuda,
                            .attributes = &overlap,
                            .attribute_count = start_ == KernelStart::kWaitsItself ? 1U : 0U};
  const int result = device_->driver().call().launch(&config, function_, arguments, nullptr);
  if (result != 0) device_->driver().check(result, fmt::format("launch the kernel {}", name_).c_str());
}

CudaModule::CudaModule(const CudaDevice& device, std::span<const std::byte> image) : device_(&device) {
  const auto current = device.current();
  const int result = device.driver().call().module_load(&module_, image.data());
  if (result == 0) return;
  try {
    device.driver().check(result, "load the kernels");
  } catch (const Error& error) {
    throw Error(
        error.code(),
        fmt::format("GPU {} ({}, sm_{}): {}", device.index(), device.name(), device.architecture(), error.message()),
        fmt::format("the driver supports CUDA {}.{}: install a newer one, or a build of yoke with kernels for "
                    "this GPU; --backend cpu does without",
                    device.driver().version() / 1000, device.driver().version() % 1000 / 10));
  }
}

CudaKernel CudaModule::kernel(const char* name, KernelStart start) const {
  const auto current = device_->current();
  void* function = nullptr;
  device_->driver().check(device_->driver().call().module_function(&function, module_, name),
                          fmt::format("find the kernel {}", name).c_str());
  return {*device_, function, name, start};
}

CudaHostMemory::CudaHostMemory(const CudaDevice& device, std::size_t size) : device_(&device), size_(size) {
  if (size == 0) return;
  const auto current = device.current();
  void* memory = nullptr;
  device.driver().check(device.driver().call().host_allocate(&memory, size, 0),
                        fmt::format("pin {} bytes of memory", size).c_str());
  data_ = static_cast<std::byte*>(memory);
}

CudaHostMemory::~CudaHostMemory() {
  if (data_ == nullptr) return;
  try {
    const auto current = device_->current();
    device_->driver().call().host_free(data_);
  } catch (const Error&) {
    // The driver is gone, and has freed it.
  }
}

void cuda_clear(const CudaDevice& device, tensor::Stream stream, void* to, std::size_t size) {
  if (size == 0) return;
  const auto current = device.current();
  device.driver().check(device.driver().call().memory_set(reinterpret_cast<std::uintptr_t>(to), 0, size, stream.cuda),
                        "clear memory");
}

}  // namespace yoke::cuda

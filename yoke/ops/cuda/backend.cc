#include "yoke/ops/cuda/backend.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "yoke/base/error.h"

namespace yoke::ops::cuda {
namespace {

constexpr std::size_t kEvents = 64;
constexpr Seconds kDeviceLimit{60};
constexpr int kDriverMin = 12000;  // of the functions that we call; kernels may need a newer one, which the driver says
constexpr int kOldestArchitecture = 90;  // that kernels are compiled for; newer ones take the PTX

class DeviceMemory final : public SlabMemory {
 public:
  DeviceMemory(const yoke::cuda::CudaDevice& device, const tensor::Shape& shape, tensor::DType type)
      : SlabMemory({0, shape, type}), memory_(device, slab_.bytes()) {
    slab_.address = reinterpret_cast<std::uintptr_t>(memory_.data());
  }

 private:
  yoke::cuda::CudaMemory memory_;
};

class StreamTimer final : public DeviceTimer {
 public:
  StreamTimer(const yoke::cuda::CudaDevice& device, tensor::Stream stream) : device_(device), stream_(stream) {}
  std::size_t mark() override {
    if (used_ == events_.size()) events_.emplace_back(device_, yoke::cuda::CudaEventUse::kTime);
    events_[used_].record(stream_);
    return used_++;
  }
  double seconds(std::size_t from, std::size_t to) const override {
    return yoke::cuda::seconds_between(events_.at(from), events_.at(to));
  }
  void forget() override { used_ = 0; }

 private:
  const yoke::cuda::CudaDevice& device_;
  tensor::Stream stream_;
  std::deque<yoke::cuda::CudaEvent> events_;
  std::size_t used_ = 0;
};

void* pointer(const Slab& slab) { return reinterpret_cast<void*>(slab.address); }

int usable_device(int wanted) {
  value_or_throw(cuda_usable());
  return wanted % yoke::cuda::CudaDriver::get().device_count();
}

}  // namespace

Result<void> cuda_usable() {
  if (!has_kernels()) {
    return Unexpected(Error(ErrorCode::kUnsupported, "this program was built without CUDA kernels",
                            "build it where nvcc of CUDA 13 is (make build PRESET=cuda), or use --backend cpu"));
  }
  const auto driver = yoke::cuda::CudaDriver::find();
  if (!driver) return Unexpected(driver.error());
  return try_to([&] {
    if ((*driver)->version() < kDriverMin) {
      throw Error(ErrorCode::kUnsupported,
                  fmt::format("the NVIDIA driver supports CUDA {}.{}, older than 12.0", (*driver)->version() / 1000,
                              (*driver)->version() % 1000 / 10),
                  "install a newer NVIDIA driver, or use --backend cpu");
    }
    if ((*driver)->device_count() == 0) {
      throw Error(ErrorCode::kUnsupported, "the NVIDIA driver sees no GPU",
                  "CUDA_VISIBLE_DEVICES may hide it; see what nvidia-smi prints");
    }
    const yoke::cuda::CudaDevice device(0);
    if (device.architecture() < kOldestArchitecture) {
      throw Error(ErrorCode::kUnsupported,
                  fmt::format("this program has no kernels for {} (sm_{})", device.name(), device.architecture()),
                  "the cuda backend needs sm_90 (H100) or newer: use --backend cpu");
    }
  });
}

CudaBackend::CudaBackend(Options options)
    : device_(usable_device(options.device)),
      stream_(device_),
      multiprocessors_(device_.multiprocessors()),
      is_exact_(options.is_exact),
      host_(std::move(options.host)) {}

CudaBackend::~CudaBackend() {
  try {
    wait();  // what is still at work must not lose its memory
  } catch (const Error&) {
    // It was reported where it was waited for.
  }
}

const Kernels& CudaBackend::kernels() {
  const std::lock_guard lock(loading_);
  if (!kernels_) kernels_.emplace(device_);
  return *kernels_;
}

void CudaBackend::wait() { stream_.wait(Deadline::after(kDeviceLimit)); }

tensor::Event CudaBackend::record() {
  if (events_.size() < kEvents) {
    events_.emplace_back(device_);
  } else {
    events_.push_back(std::move(events_.front()));
    events_.pop_front();
  }
  events_.back().record(stream());
  return events_.back().event();
}

bool CudaBackend::passed(tensor::Event event) { return yoke::cuda::has_passed(device_, event); }

std::unique_ptr<DeviceTimer> CudaBackend::make_timer() { return std::make_unique<StreamTimer>(device_, stream()); }

std::optional<Bytes> CudaBackend::memory_available() const {
  if (device_.has_unified_memory()) return std::nullopt;
  return Bytes{static_cast<std::int64_t>(device_.memory_available())};
}

std::unique_ptr<SlabMemory> CudaBackend::allocate(const tensor::Shape& shape, tensor::DType type) {
  return std::make_unique<DeviceMemory>(device_, shape, type);
}

void CudaBackend::upload(std::span<const std::byte> from, const Slab& to) {
  YOKE_CHECK_EQ(from.size(), to.bytes());
  stream_.copy(pointer(to), from.data(), from.size());
  if (from.size() > (std::size_t{64} << 10)) wait();  // smaller ones the driver has taken when it returns
}

void CudaBackend::download(const Slab& from, std::span<std::byte> to) {
  YOKE_CHECK_EQ(from.bytes(), to.size());
  stream_.copy(to.data(), pointer(from), to.size());
}

std::size_t CudaBackend::packed_bytes(std::span<const tensor::MatrixInfo> stack, MatrixUse use) const {
  std::size_t bytes = 0;
  for (const PieceShape& piece : shape_stack(stack, use)) bytes += piece.bytes;
  return bytes;
}

std::unique_ptr<PackedStack> CudaBackend::pack(std::span<const tensor::Matrix> stack, MatrixUse use) {
  const Kernels& loaded = kernels();
  {
    const std::lock_guard lock(loading_);
    if (!packer_) packer_.emplace(device_, loaded);
  }
  return packer_->pack(stack, use);
}

void* CudaBackend::Room::need(std::size_t bytes, bool is_cleared) {
  if (memory_ && memory_->size() >= bytes) return memory_->data();
  ops_.wait();
  memory_.reset();
  memory_.emplace(ops_.device_, std::max<std::size_t>(bytes, 256));
  if (is_cleared) yoke::cuda::cuda_clear(ops_.device_, ops_.stream(), memory_->data(), memory_->size());
  return memory_->data();
}

}  // namespace yoke::ops::cuda

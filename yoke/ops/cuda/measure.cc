#include "yoke/ops/cuda/measure.h"

#include <algorithm>

#include "yoke/cuda/kernels.h"
#include "yoke/ops/cuda/backend.h"

namespace yoke::ops::cuda {
namespace {

using yoke::cuda::CudaEvent;
using yoke::cuda::CudaEventUse;

constexpr std::size_t kBlockMax = std::size_t{1} << 30;
constexpr int kRounds = 7;
constexpr unsigned kReadThreads = 512;
constexpr int kProducts = 20000;                          // rounds of eight in the kernel
constexpr double kProductOperations = 2.0 * 16 * 8 * 16;  // of one product
constexpr unsigned kProductThreads = 256;

// The median of some rounds, after one that warms up.
template <class Work>
double median_seconds(const yoke::cuda::CudaDevice& device, const yoke::cuda::CudaStream& stream, const Work& work) {
  const CudaEvent begin(device, CudaEventUse::kTime), end(device, CudaEventUse::kTime);
  std::vector<double> seconds;
  for (int round = 0; round <= kRounds; ++round) {
    begin.record(stream.stream());
    work();
    end.record(stream.stream());
    stream.wait(Deadline::after(Seconds{30}));
    if (round > 0) seconds.push_back(yoke::cuda::seconds_between(begin, end));
  }
  std::sort(seconds.begin(), seconds.end());
  return seconds[seconds.size() / 2];
}

}  // namespace

DeviceRates measure_device(int device) {
  value_or_throw(cuda_usable());
  const yoke::cuda::CudaDevice gpu(device % yoke::cuda::CudaDriver::get().device_count());
  const yoke::cuda::CudaStream stream(gpu);
  const yoke::cuda::CudaModule module = load_kernels(gpu, "measure");
  const auto read = module.kernel("yoke_read");
  const auto copy = module.kernel("yoke_copy");
  const auto multiply = module.kernel("yoke_multiply_rate");
  const std::size_t bytes = std::min(kBlockMax, gpu.memory_available() / 8) / 4096 * 4096;
  const yoke::cuda::CudaMemory from(gpu, bytes), to(gpu, bytes);
  const auto pieces = static_cast<long long>(bytes / 16);
  load_kernels(gpu, "pack")
      .kernel("yoke_fill")
      .launch(stream.stream(), {.blocks = {1024, 1, 1}, .threads = 256}, from.data(), pieces, 1ULL, 0xffffffffU, 0U);
  const auto processors = static_cast<unsigned>(gpu.multiprocessors());
  DeviceRates rates;
  rates.read = static_cast<double>(bytes) / median_seconds(gpu, stream, [&] {
                 read.launch(stream.stream(), {.blocks = {8 * processors, 1, 1}, .threads = kReadThreads}, from.data(),
                             pieces, to.data());
               });
  rates.copy = 2 * static_cast<double>(bytes) / median_seconds(gpu, stream, [&] {
                 copy.launch(stream.stream(), {.blocks = {8 * processors, 1, 1}, .threads = kReadThreads}, from.data(),
                             pieces, to.data());
               });
  const unsigned blocks = 4 * processors;
  const double products = 8.0 * kProducts * blocks * (kProductThreads / 32);
  rates.multiply = products * kProductOperations / median_seconds(gpu, stream, [&] {
                     multiply.launch(stream.stream(), {.blocks = {blocks, 1, 1}, .threads = kProductThreads},
                                     static_cast<int>(kProducts), 0x3f803f80U, static_cast<float*>(to.data()));
                   });
  return rates;
}

}  // namespace yoke::ops::cuda

// A ladder: one row (or a few) of activations times int4 weights with a bf16 scale for each 128 columns, the shapes of
// one half of Llama 3.1 405B. Never part of the program; README.md beside it says what each rung showed.
//
//   nvcc -std=c++20 -O3 -gencode arch=compute_90,code=sm_90 -I../.. -o int4_decode int4_decode.cu && ./int4_decode
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "planes.cuh"
#include "ring.cuh"

#define CHECK(call)                                                              \
  do {                                                                           \
    const cudaError_t error = (call);                                            \
    if (error != cudaSuccess) {                                                  \
      std::printf("%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(error)); \
      std::exit(1);                                                              \
    }                                                                            \
  } while (0)

namespace {

struct Shape {
  const char* name;
  int rows, columns;
};
constexpr Shape kShapes[] = {{"qkv", 9216, 16384},    {"o", 16384, 8192},     {"gate_up", 53248, 16384},
                             {"down", 16384, 26624},  {"8b_qkv", 6144, 4096}, {"8b_gate_up", 28672, 4096},
                             {"8b_down", 4096, 14336}};

// ---- rung 1: the same bytes, only read
__global__ void __launch_bounds__(512) read_only(const uint4* from, long long count, uint4* to) {
  const long long stride = static_cast<long long>(gridDim.x) * blockDim.x;
  uint4 all = {};
  for (long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += 8 * stride) {
    uint4 values[8];
#pragma unroll
    for (int j = 0; j < 8; ++j) values[j] = i + j * stride < count ? __ldcs(from + i + j * stride) : uint4{};
#pragma unroll
    for (int j = 0; j < 8; ++j) all.x ^= values[j].x ^ values[j].y ^ values[j].z ^ values[j].w;
  }
  if (all.x == 0x1234567) *to = all;
}

// How many products of each kind a multiprocessor makes.
template <bool IS_INT>
__global__ void product_rate(int rounds, u32 seed, float* to) {
  int whole[8][4] = {};
  float sums[8][4] = {};
  const u32 a = seed + threadIdx.x;
  for (int round = 0; round < rounds; ++round) {
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      if constexpr (IS_INT)
        multiply_add_int(whole[i], a, a * 3, a ^ 5, a + 7, a + i, a - i);
      else
        multiply_add_f16(sums[i], a, a * 3, a ^ 5, a + 7, a + i, a - i);
    }
  }
  float all = 0;
  for (int i = 0; i < 8; ++i) all += sums[i][0] + static_cast<float>(whole[i][0]);
  if (all == 12345.678F) *to = all;
}

// ---- the oracle: f64, one thread for each result
__global__ void oracle(const Call call, double* y) {
  const int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= call.panels * 16) return;
  const int panel = row / 16, r = row % 16, g = r % 8;
  for (int m = 0; m < call.rows; ++m) {
    double sum = 0;
    for (int block = 0; block < call.blocks; ++block) {
      const u32 pair = *reinterpret_cast<const u32*>(
          call.scales + (static_cast<long long>(panel) * (call.blocks / 2) + block / 2) * 32 + g * 4);
      const double scale = r < 8 ? low_of(pair) : high_of(pair);
      for (int t = 0; t < 4; ++t) {
        const u32* const words = reinterpret_cast<const u32*>(
            call.values + (static_cast<long long>(panel) * call.blocks + block) * 512 + (g * 4 + t) * 16);
        for (int s = 0; s < 4; ++s) {
          for (int c = 0; c < 4; ++c) {
            const int p = (c / 2) * 2 + (r >= 8 ? 1 : 0);
            const int q = words[s] >> (4 * (p + 4 * (c % 2))) & 15;
            sum += scale * (q - 8) *
                   static_cast<double>(
                       call.x[static_cast<long long>(m) * call.blocks * 64 + block * 64 + s * 16 + 4 * t + c]);
          }
        }
      }
    }
    y[static_cast<long long>(m) * call.panels * 16 + row] = sum;
  }
}

__global__ void fill_random(u32* to, long long count, u32 seed) {
  for (long long i = blockIdx.x * static_cast<long long>(blockDim.x) + threadIdx.x; i < count;
       i += static_cast<long long>(gridDim.x) * blockDim.x) {
    u32 h = static_cast<u32>(i) * 2654435761U + seed;
    h ^= h >> 15;
    h *= 2246822519U;
    h ^= h >> 13;
    h *= 3266489917U;
    h ^= h >> 16;
    to[i] = h;
  }
}
__global__ void make_scales(unsigned short* to, long long count) {
  for (long long i = blockIdx.x * static_cast<long long>(blockDim.x) + threadIdx.x; i < count;
       i += static_cast<long long>(gridDim.x) * blockDim.x) {
    to[i] = static_cast<unsigned short>(__float_as_uint(0.01F + 0.001F * static_cast<float>(i % 17)) >> 16);
  }
}
__global__ void make_x(float* x, int count) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) {
    u32 h = static_cast<u32>(i) * 747796405U + 1;
    h ^= h >> 16;
    h *= 2246822519U;
    h ^= h >> 13;
    x[i] = (static_cast<float>(h & 0xffff) / 32768.0F - 1) * (i % 997 == 5 ? 30.0F : 1.0F);
  }
}

template <class F>
double median_us(F run, int rounds) {
  cudaEvent_t begin, end;
  CHECK(cudaEventCreate(&begin));
  CHECK(cudaEventCreate(&end));
  std::vector<double> times;
  for (int i = 0; i < rounds + 3; ++i) {
    CHECK(cudaEventRecord(begin));
    const int count = run();
    CHECK(cudaEventRecord(end));
    CHECK(cudaEventSynchronize(end));
    float ms = 0;
    CHECK(cudaEventElapsedTime(&ms, begin, end));
    if (i >= 3) times.push_back(ms * 1e3 / count);
  }
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

template <int WARPS, int TILES, int CHUNK>
void launch(Call call, int sms, cudaStream_t stream = nullptr) {
  constexpr int kStage = CHUNK * 512 + CHUNK / 2 * 32;
  const size_t shared = WARPS * call.stages * kStage + TILES * (call.slice_blocks * 512 + call.slice_blocks / 2 * 32) +
                        WARPS * call.stages * 8;
  static bool once = [] {
    CHECK(
        cudaFuncSetAttribute(int_planes<WARPS, TILES, CHUNK>, cudaFuncAttributeMaxDynamicSharedMemorySize, 220 << 10));
    return true;
  }();
  (void)once;
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(std::min(sms, call.panels * call.slices));
  config.blockDim = dim3(WARPS * 32);
  config.dynamicSmemBytes = shared;
  config.stream = stream;
  cudaLaunchAttribute attribute{};
  attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attribute.val.programmaticStreamSerializationAllowed = 1;
  config.attrs = &attribute;
  config.numAttrs = 1;
  CHECK(cudaLaunchKernelEx(&config, int_planes<WARPS, TILES, CHUNK>, call));
}

template <int WARPS, int TILES, int CHUNK, int STAGES, int BLOCKS>
void launch_ring(Call call, int sms) {
  constexpr int kStage = CHUNK * 512 + CHUNK / 2 * 128;
  const size_t shared = WARPS * STAGES * kStage + call.rows * (call.slice_blocks * 128 + kPad) + CHUNK * 128 +
                        call.slice_blocks / 2 * TILES * 64;
  static bool once = [] {
    CHECK(cudaFuncSetAttribute(f16_ring<WARPS, TILES, CHUNK, STAGES, BLOCKS>,
                               cudaFuncAttributeMaxDynamicSharedMemorySize, 225 << 10));
    return true;
  }();
  (void)once;
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(std::min(sms * BLOCKS, call.panels * call.slices));
  config.blockDim = dim3(WARPS * 32);
  config.dynamicSmemBytes = shared;
  cudaLaunchAttribute attribute{};
  attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attribute.val.programmaticStreamSerializationAllowed = 1;
  config.attrs = &attribute;
  config.numAttrs = 1;
  CHECK(cudaLaunchKernelEx(&config, f16_ring<WARPS, TILES, CHUNK, STAGES, BLOCKS>, call));
}

}  // namespace

int main() {
  cudaDeviceProp prop;
  CHECK(cudaGetDeviceProperties(&prop, 0));
  const int sms = prop.multiProcessorCount;
  std::printf("%s, %d multiprocessors\n", prop.name, sms);
  const long long kCopyBytes = 1LL << 30;  // weights rotate over this much, so that the cache does not help
  unsigned char* values;
  unsigned char* scales;
  float *x, *y, *partials;
  double* exact;
  unsigned* counters;
  uint4* sink;
  CHECK(cudaMalloc(&values, kCopyBytes + (512 << 20)));
  CHECK(cudaMalloc(&scales, 128 << 20));
  CHECK(cudaMalloc(&x, 16 * 32768 * 4));
  CHECK(cudaMalloc(&y, 16 * 65536 * 4));
  CHECK(cudaMalloc(&exact, 16 * 65536 * 8));
  CHECK(cudaMalloc(&partials, 256 << 20));
  CHECK(cudaMalloc(&counters, 1 << 20));
  CHECK(cudaMalloc(&sink, 16));
  CHECK(cudaMemset(counters, 0, 1 << 20));
  fill_random<<<1024, 256>>>(reinterpret_cast<u32*>(values), (kCopyBytes + (512 << 20)) / 4, 7);
  make_scales<<<1024, 256>>>(reinterpret_cast<unsigned short*>(scales), 64 << 20);
  make_x<<<256, 256>>>(x, 16 * 32768);
  CHECK(cudaDeviceSynchronize());
  const auto rate = [&](const char* name, auto kernel, double macs) {
    const double time = median_us(
        [&] {
          kernel<<<sms, 512>>>(1000, 3, y);
          return 1;
        },
        5);
    std::printf("%s: %.0f T products/s, %.1f cycles of a quarter at 1.755 GHz\n", name,
                sms * 16 * 8000.0 * macs / time / 1e6, time * 1755 / (4 * 8000.0));
  };
  rate("s8 m16n8k32", product_rate<true>, 4096);
  rate("f16 m16n8k16", product_rate<false>, 2048);
  for (const Shape& shape : kShapes) {
    const int panels = shape.rows / 16, blocks = shape.columns / 64;
    const long long bytes = static_cast<long long>(panels) * blocks * 512, with_scales = bytes + bytes / 16;
    const int copies = static_cast<int>(std::max(1LL, std::min(kCopyBytes / bytes, 24LL)));
    const double read = median_us(
        [&] {
          for (int i = 0; i < copies; ++i)
            read_only<<<4 * sms, 512>>>(reinterpret_cast<const uint4*>(values + i * bytes), with_scales / 16, sink);
          return copies;
        },
        15);
    std::printf("%-10s %6d x %5d %6.1f MB: read %.1f us %.2f TB/s\n", shape.name, shape.rows, shape.columns,
                with_scales / 1e6, read, with_scales / read / 1e6);
    for (const int rows : {1, 8, 16}) {
      const auto run = [&](const char* name, auto start, int slice_blocks, int stages) {
        Call call{values,
                  scales,
                  x,
                  y,
                  partials,
                  counters,
                  rows,
                  panels,
                  blocks,
                  slice_blocks,
                  (blocks + slice_blocks - 1) / slice_blocks,
                  stages};
        start(call);
        CHECK(cudaDeviceSynchronize());
        std::vector<float> ours(static_cast<size_t>(rows) * panels * 16);
        CHECK(cudaMemcpy(ours.data(), y, ours.size() * 4, cudaMemcpyDeviceToHost));
        double error = -1;
        if (bytes < 100 << 20) {
          oracle<<<(panels * 16 + 127) / 128, 128>>>(call, exact);
          std::vector<double> right(ours.size());
          CHECK(cudaMemcpy(right.data(), exact, right.size() * 8, cudaMemcpyDeviceToHost));
          double difference = 0, size = 0;
          for (size_t i = 0; i < ours.size(); ++i) {
            difference += (ours[i] - right[i]) * (ours[i] - right[i]);
            size += right[i] * right[i];
          }
          error = sqrt(difference / size);
        }
        const double time = median_us(
            [&] {
              for (int i = 0; i < copies; ++i) {
                Call one = call;
                one.values = values + i * bytes;
                start(one);
              }
              return copies;
            },
            15);
        std::printf("  %2d rows %-22s slices of %2d, %d stages: %7.1f us %.2f TB/s %3.0f%% error %.1e\n", rows, name,
                    slice_blocks, stages, time, with_scales / time / 1e6, 100 * read / time, error);
      };
      if (rows == 1) {
        run(
            "planes, 16 warps", [&](const Call& call) { launch<16, 1, 4>(call, sms); }, 32, 3);
        for (const int slice : {16, 32, 48}) {
          run(
              "f16, 16 warps, 4 blocks", [&](const Call& call) { launch_ring<16, 1, 4, 3, 1>(call, sms); }, slice, 3);
          run(
              "f16, 16 warps, 8 blocks", [&](const Call& call) { launch_ring<16, 1, 8, 2, 1>(call, sms); }, slice, 2);
          run(
              "f16, 2 x 8 warps, 8 b.", [&](const Call& call) { launch_ring<8, 1, 8, 2, 2>(call, sms); }, slice, 2);
        }
      } else if (rows == 8) {
        run(
            "f16, 16 warps, 4 blocks", [&](const Call& call) { launch_ring<16, 1, 4, 3, 1>(call, sms); }, 32, 3);
      } else {
        run(
            "f16, 16 warps, 4 blocks", [&](const Call& call) { launch_ring<16, 2, 4, 2, 1>(call, sms); }, 32, 2);
      }
    }
  }
  return 0;
}

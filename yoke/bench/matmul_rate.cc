#include "yoke/bench/matmul_rate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <memory>

#include "yoke/base/error.h"
#include "yoke/base/progress.h"
#include "yoke/bench/machine_facts.h"
#include "yoke/bench/pinned_threads.h"
#include "yoke/bench/sample_stats.h"
#include "yoke/report/table.h"

namespace yoke {
namespace {

// Small whole numbers: 0 … 7 for a, -4 … 3 for b. A sum of 2^19 such products is exact in f32.
int a_value(std::size_t i, std::size_t k) { return static_cast<int>((i * 5 + k * 3 + i * k) % 8); }
int b_value(std::size_t k, std::size_t j) { return static_cast<int>((k * 7 + j * 3 + j * k) % 8) - 4; }

void store(std::byte* at, DType type, int value) {
  const auto put = [at](auto element) { std::memcpy(at, &element, sizeof(element)); };
  if (type == DType::kF32) put(static_cast<float>(value));
  if (type == DType::kBf16) put(to_bf16(static_cast<float>(value)).bits);
  if (type == DType::kI8) put(static_cast<std::int8_t>(value));
}

std::size_t round_up(int value, int unit) { return static_cast<std::size_t>((value + unit - 1) / unit * unit); }

// One product with its packed inputs; owned and used by one thread.
class Product {
 public:
  Product(const MatmulKernel& kernel, int m, int n, int k)
      : kernel_(kernel),
        rows_(static_cast<std::size_t>(kernel.rows)),
        columns_(static_cast<std::size_t>(kernel.columns)),
        m_(round_up(m, kernel.rows)),
        n_(round_up(n, kernel.columns)),
        k_(round_up(k, kernel.group)),
        a_(m_ * k_ * size_of(kernel.type)),
        b_(n_ * k_ * size_of(kernel.type)),
        c_(m_ * n_) {
    pack(a_, m_, rows_, [](std::size_t i, std::size_t at) { return a_value(i, at); });
    pack(b_, n_, columns_, [](std::size_t j, std::size_t at) { return b_value(at, j); });
  }

  // A strip of b stays in the nearest cache while all of a passes by.
  void multiply() {
    const std::size_t groups = k_ / static_cast<std::size_t>(kernel_.group);
    const std::size_t element = size_of(kernel_.type);
    std::uint32_t* tile = c_.data();
    for (std::size_t j = 0; j < n_; j += columns_) {
      for (std::size_t i = 0; i < m_; i += rows_, tile += rows_ * columns_)
        kernel_.multiply(a_.data() + i * k_ * element, b_.data() + j * k_ * element, groups, tile);
    }
  }

  double operations() const {
    return 2.0 * static_cast<double>(m_) * static_cast<double>(n_) * static_cast<double>(k_);
  }

  bool is_right() const {
    const std::uint32_t* at = c_.data();
    for (std::size_t j0 = 0; j0 < n_; j0 += columns_) {
      for (std::size_t i0 = 0; i0 < m_; i0 += rows_) {
        for (std::size_t i = i0; i < i0 + rows_; ++i) {
          for (std::size_t j = j0; j < j0 + columns_; ++j) {
            if (*at++ != expected_bits(i, j)) return false;
          }
        }
      }
    }
    return true;
  }

 private:
  template <class Value>
  void pack(std::vector<std::byte>& packed, std::size_t count, std::size_t strip, Value value) {
    const auto group = static_cast<std::size_t>(kernel_.group);
    std::byte* at = packed.data();
    for (std::size_t first = 0; first < count; first += strip) {
      for (std::size_t k = 0; k < k_; k += group) {
        for (std::size_t i = first; i < first + strip; ++i) {
          for (std::size_t g = 0; g < group; ++g, at += size_of(kernel_.type)) store(at, kernel_.type, value(i, k + g));
        }
      }
    }
  }

  std::uint32_t expected_bits(std::size_t i, std::size_t j) const {
    std::int32_t sum = 0;
    for (std::size_t k = 0; k < k_; ++k) sum += a_value(i, k) * b_value(k, j);
    if (kernel_.type == DType::kI8) return static_cast<std::uint32_t>(sum);
    const auto single = static_cast<float>(sum);
    std::uint32_t bits = 0;
    std::memcpy(&bits, &single, sizeof(bits));
    return bits == 0x80000000U ? 0 : bits;
  }

  const MatmulKernel& kernel_;
  std::size_t rows_, columns_;
  std::size_t m_, n_, k_;
  std::vector<std::byte> a_, b_;
  std::vector<std::uint32_t> c_;  // tile by tile, f32 or i32
};

MatmulRate measure_kernel(const MatmulKernel& kernel, const std::vector<int>& cores, const MatmulOptions& options) {
  Product trial(kernel, options.depth, options.depth, options.depth);
  trial.multiply();
  const Instant start = real_clock().now();
  trial.multiply();
  const double once = std::max(1e-9, to_seconds(real_clock().now() - start).value);
  const int repeats = std::clamp(static_cast<int>(options.round.value / once), 1, 1'000'000);
  const PinnedRounds rounds = run_pinned(cores, options.rounds, [&](int) {
    const auto product = std::make_shared<Product>(kernel, options.depth, options.depth, options.depth);
    return [product, repeats] {
      for (int i = 0; i < repeats; ++i) product->multiply();
    };
  });
  const SampleStats stats = summarize(rounds.seconds);
  const double operations = trial.operations() * repeats * static_cast<double>(cores.size());
  return {.type = kernel.type,
          .kernel = std::string(kernel.name),
          .cores = static_cast<int>(cores.size()),
          .median = operations / stats.p50,
          .best = operations / stats.least,
          .low = operations / stats.p75,
          .high = operations / stats.p25};
}

void require_right(const MatmulKernel& kernel, int depth) {
  if (kernel_is_right(kernel, depth, depth, depth)) return;
  throw Error(ErrorCode::kInternal, fmt::format("the kernel {} computes wrong {}", kernel.name, to_string(kernel.type)),
              "please report this with the processor's name");
}

std::string rate_text(const MatmulRate& rate, double operations) {
  return rate.type == DType::kI8 ? fmt::format("{:.3f} TOPS", operations / 1e12)
                                 : fmt::format("{:.1f} GFLOP/s", operations / 1e9);
}

}  // namespace

bool kernel_is_right(const MatmulKernel& kernel, int m, int n, int k) {
  Product product(kernel, m, n, k);
  product.multiply();
  return product.is_right();
}

std::vector<MatmulRate> measure_matmul(const MatmulOptions& options) {
  const std::vector<int> cores = options.cores.empty() ? usable_cores() : options.cores;
  std::vector<MatmulRate> rates;
  Progress progress("measuring matrix products", 6);
  for (const DType type : {DType::kF32, DType::kBf16, DType::kI8}) {
    const auto kernels = matmul_kernels();
    const auto kernel =
        std::find_if(kernels.begin(), kernels.end(), [&](const MatmulKernel& row) { return row.type == type; });
    require_right(*kernel, options.depth);
    for (const bool all : {false, true}) {
      if (all && cores.size() == 1) continue;
      progress.update(static_cast<std::int64_t>(rates.size()));
      rates.push_back(measure_kernel(*kernel, all ? cores : std::vector{cores.front()}, options));
    }
  }
  return rates;
}

std::string matmul_text(const std::vector<MatmulRate>& rates) {
  Table table{.title = "Matrix products",
              .columns = {{.header = "type"},
                          {.header = "kernel"},
                          {.header = "cores", .align = TextAlign::kRight},
                          {.header = "median", .align = TextAlign::kRight},
                          {.header = "best", .align = TextAlign::kRight}},
              .footnotes = {"a multiplication and an addition count as two; every result was checked"}};
  for (const MatmulRate& rate : rates) {
    table.rows.push_back({std::string(to_string(rate.type)), rate.kernel, fmt::format("{}", rate.cores),
                          rate_text(rate, rate.median), rate_text(rate, rate.best)});
  }
  return render_text(table);
}

Document to_json(const std::vector<MatmulRate>& rates) {
  Document list = Document::list();
  for (const MatmulRate& rate : rates) {
    list.items.push_back(Document::map({{"type", Document::string(std::string(to_string(rate.type)))},
                                        {"kernel", Document::string(rate.kernel)},
                                        {"cores", Document::number(std::int64_t{rate.cores})},
                                        {"median", Document::number(rate.median)},
                                        {"best", Document::number(rate.best)}}));
  }
  return Document::map({{"rates", std::move(list)}});
}

RunRecord record_of(const std::vector<MatmulRate>& rates) {
  RunRecord record = new_record("matmul", Document::map());
  for (const MatmulRate& rate : rates) {
    record.rows.push_back({.name = fmt::format("{} {}, {} core{}", to_string(rate.type), rate.kernel, rate.cores,
                                               rate.cores == 1 ? "" : "s"),
                           .value = rate.median / 1e9,
                           .low = rate.low / 1e9,
                           .high = rate.high / 1e9,
                           .unit = rate.type == DType::kI8 ? "GOP/s" : "GFLOP/s"});
    record.summary += fmt::format("{}{} x{} {}", record.summary.empty() ? "" : ", ", to_string(rate.type), rate.cores,
                                  rate_text(rate, rate.median));
  }
  return record;
}

}  // namespace yoke

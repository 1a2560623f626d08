#include "yoke/bench/matmul_rate.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <numeric>

#include "yoke/base/error.h"
#include "yoke/base/interrupt.h"
#include "yoke/base/progress.h"
#include "yoke/bench/machine_facts.h"
#include "yoke/bench/pinned_threads.h"
#include "yoke/bench/sample_stats.h"
#include "yoke/ops/cpu/input.h"
#include "yoke/ops/cpu/instructions.h"
#include "yoke/report/table.h"

namespace yoke::bench {
namespace {

// Small whole numbers, so that sums of products are exact in f32. For int8 one number of each sixteen is 127: rounding
// the activations (ops/cpu/row_loops.h) then changes nothing.
float x_value(tensor::DType type, std::int64_t i, std::int64_t k) {
  if (type == tensor::DType::kI8 && k % 16 == 0) return 127;
  return static_cast<float>((i * 5 + k * 3 + i * k) % 8);
}
int weight_value(std::int64_t j, std::int64_t k) { return static_cast<int>((k * 7 + j * 3 + j * k) % 8) - 4; }

tensor::Matrix weights_of(tensor::DType type, std::int64_t n, std::int64_t k) {
  tensor::Tensor values = tensor::Tensor::zeros({n, k}, type);
  for (std::int64_t j = 0; j < n; ++j) {
    for (std::int64_t at = 0; at < k; ++at) {
      const auto put = [&](auto element) { values.mutable_row<decltype(element)>(j)[at] = element; };
      const int value = weight_value(j, at);
      if (type == tensor::DType::kF32) put(static_cast<float>(value));
      if (type == tensor::DType::kBf16) put(tensor::to_bf16(static_cast<float>(value)));
      if (type == tensor::DType::kI8) put(static_cast<std::int8_t>(value));
    }
  }
  if (type != tensor::DType::kI8) return tensor::plain_matrix(std::move(values));
  tensor::Tensor scales = tensor::Tensor::zeros({n, 1}, tensor::DType::kF32);
  for (float& scale : scales.mutable_span<float>()) scale = 1;
  return {.format = tensor::MatrixFormat::kInt8,
          .rows = n,
          .columns = k,
          .values = std::move(values),
          .scales = std::move(scales),
          .scale_columns = k};
}

// One product with its packed inputs; owned and used by one thread.
class Product {
 public:
  Product(const ops::cpu::Kernels& kernels, tensor::DType type, int m, int n, int k)
      : type_(type), m_(m), n_(n), k_(k), panels_(weights_of(type, n, k)) {
    std::vector<float> x;
    for (std::int64_t i = 0; i < m_; ++i) {
      for (std::int64_t at = 0; at < k_; ++at) x.push_back(x_value(type, i, at));
    }
    const auto form = ops::cpu::input_form(panels_.shape().kind, kernels, false);
    ops::ThreadPool pool(1);
    input_.prepare(panels_, form, kernels, pool, x.data(), m_, k_);
    rows_.resize(static_cast<std::size_t>(m_));
    std::iota(rows_.begin(), rows_.end(), 0);
    products_.resize(static_cast<std::size_t>(panels_.shape().panels() * m_ * ops::cpu::kPanelRows));
  }

  // A panel of weights stays in the nearest cache while all rows pass by, as many at a time as a model takes.
  void multiply() {
    constexpr std::int64_t kRowsAtOnce = 64;
    float* to = products_.data();
    for (std::int64_t panel = 0; panel < panels_.shape().panels(); ++panel) {
      throw_if_interrupted();
      for (std::int64_t done = 0; done < m_; done += kRowsAtOnce) {
        const std::int64_t count = std::min(kRowsAtOnce, m_ - done);
        input_.multiply()(panels_.view(), panel, input_.rows(), rows_.data() + done, count, to);
        to += count * ops::cpu::kPanelRows;
      }
    }
  }

  double operations() const {
    return 2.0 * static_cast<double>(m_) * static_cast<double>(n_) * static_cast<double>(k_);
  }

  bool is_right() const {
    for (std::int64_t j = 0; j < n_; ++j) {
      throw_if_interrupted();
      const float* const panel = products_.data() + j / ops::cpu::kPanelRows * m_ * ops::cpu::kPanelRows;
      for (std::int64_t i = 0; i < m_; ++i) {
        double exact = 0;
        for (std::int64_t k = 0; k < k_; ++k) exact += double{x_value(type_, i, k)} * weight_value(j, k);
        if (double{panel[i * ops::cpu::kPanelRows + j % ops::cpu::kPanelRows]} != exact) return false;
      }
    }
    return true;
  }

 private:
  tensor::DType type_;
  std::int64_t m_, n_, k_;
  ops::cpu::Panels panels_;
  ops::cpu::PreparedInput input_;
  std::vector<std::int32_t> rows_;
  std::vector<float> products_;  // [panels, m, rows of a panel]
};

MatmulRate measure_type(const ops::cpu::Kernels& kernels, tensor::DType type, const std::vector<int>& cores,
                        const MatmulOptions& options) {
  Product trial(kernels, type, options.depth, options.depth, options.depth);
  trial.multiply();
  const Instant start = real_clock().now();
  trial.multiply();
  const double once = std::max(1e-9, to_seconds(real_clock().now() - start).value);
  const int repeats = std::clamp(static_cast<int>(options.round.value / once), 1, 1'000'000);
  const PinnedRounds rounds = run_pinned(cores, options.rounds, [&](int) {
    const auto product = std::make_shared<Product>(kernels, type, options.depth, options.depth, options.depth);
    return [product, repeats] {
      for (int i = 0; i < repeats; ++i) product->multiply();
    };
  });
  const SampleStats stats = summarize(rounds.seconds);
  const double operations = trial.operations() * repeats * static_cast<double>(cores.size());
  return {.type = type,
          .kernel = kernels.name,
          .cores = static_cast<int>(cores.size()),
          .median = operations / stats.p50,
          .best = operations / stats.min,
          .low = operations / stats.p75,
          .high = operations / stats.p25};
}

std::string rate_text(const MatmulRate& rate, double operations) {
  return rate.type == tensor::DType::kI8 ? fmt::format("{:.3f} TOPS", operations / 1e12)
                                         : fmt::format("{:.1f} GFLOP/s", operations / 1e9);
}

}  // namespace

bool kernels_are_right(const ops::cpu::Kernels& kernels, tensor::DType type, int m, int n, int k) {
  Product product(kernels, type, m, n, k);
  product.multiply();
  return product.is_right();
}

std::vector<MatmulRate> measure_matmul(const MatmulOptions& options) {
  const std::vector<int> cores = options.cores.empty() ? usable_cores() : options.cores;
  const ops::cpu::Kernels& kernels = ops::cpu::kernels_named("");
  std::vector<MatmulRate> rates;
  Progress progress("measuring matrix products", 6);
  for (const tensor::DType type : {tensor::DType::kF32, tensor::DType::kBf16, tensor::DType::kI8}) {
    if (!kernels_are_right(kernels, type, options.depth, options.depth, options.depth)) {
      throw Error(ErrorCode::kInternal,
                  fmt::format("the kernels for {} compute wrong {}", kernels.name, tensor::to_string(type)),
                  "please report this with the processor's name");
    }
    for (const bool all : {false, true}) {
      if (all && cores.size() == 1) continue;
      progress.update(static_cast<std::int64_t>(rates.size()));
      rates.push_back(measure_type(kernels, type, all ? cores : std::vector{cores.front()}, options));
    }
  }
  return rates;
}

std::string matmul_text(const std::vector<MatmulRate>& rates) {
  report::Table table{.title = "Matrix products",
                      .columns = {{.header = "type"},
                                  {.header = "kernel"},
                                  {.header = "cores", .align = report::TextAlign::kRight},
                                  {.header = "median", .align = report::TextAlign::kRight},
                                  {.header = "best", .align = report::TextAlign::kRight}},
                      .footnotes = {"a multiplication and an addition count as two; every result was checked"}};
  for (const MatmulRate& rate : rates) {
    table.rows.push_back({std::string(tensor::to_string(rate.type)), rate.kernel, fmt::format("{}", rate.cores),
                          rate_text(rate, rate.median), rate_text(rate, rate.best)});
  }
  return report::render_text(table);
}

Document to_json(const std::vector<MatmulRate>& rates) {
  Document list = Document::list();
  for (const MatmulRate& rate : rates) {
    list.items.push_back(Document::map({{"type", Document::string(std::string(tensor::to_string(rate.type)))},
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
    record.rows.push_back({.name = fmt::format("{} {}, {} core{}", tensor::to_string(rate.type), rate.kernel,
                                               rate.cores, rate.cores == 1 ? "" : "s"),
                           .value = rate.median / 1e9,
                           .low = rate.low / 1e9,
                           .high = rate.high / 1e9,
                           .unit = rate.type == tensor::DType::kI8 ? "GOP/s" : "GFLOP/s"});
    record.summary += fmt::format("{}{} x{} {}", record.summary.empty() ? "" : ", ", tensor::to_string(rate.type),
                                  rate.cores, rate_text(rate, rate.median));
  }
  return record;
}

}  // namespace yoke::bench

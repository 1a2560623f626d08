// How far the arithmetic of yoke run (rounded activations, keys and values in bf16) is from f32, on every golden:
// logits, the distribution over tokens, and the likeliest token after each prefix of the golden answer.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "yoke/base/fields.h"
#include "yoke/base/files.h"
#include "yoke/base/json.h"
#include "yoke/comm/local/local.h"
#include "yoke/models/families.h"
#include "yoke/ops/backends.h"
#include "yoke/weights/model_files.h"

namespace yoke::models::llama {
namespace {

namespace fs = std::filesystem;
constexpr std::int64_t kSlotsOfPage = 16;
constexpr std::int64_t kPagesOfAll = 40;

// The logits of all tokens of one sequence, from one rank.
tensor::Tensor logits_of(const fs::path& folder, const std::vector<std::int32_t>& ids,
                         std::unique_ptr<ops::Backend> ops, tensor::DType cache_type) {
  const auto comms = comm::local::make_local(1);
  const weights::ModelFiles files(folder);
  const auto outline = outline_model(files.config());
  const Mesh mesh{.rank = 0, .size = 1};
  const auto model = outline->make(files, mesh, *ops);
  ops::StepArena arena(
      *ops,
      outline->arena_bytes({.tokens = kPagesOfAll * kSlotsOfPage, .logit_rows = kPagesOfAll * kSlotsOfPage}, mesh));
  model->join({.tensor = comms[0].get(), .world = comms[0].get()});
  while (model->steps_loaded() < model->load_steps()) model->load_step();
  const KvCache cache = model->allocate_cache({.pages = kPagesOfAll, .page_tokens = kSlotsOfPage}, cache_type);
  std::vector<std::int32_t> pages(kPagesOfAll);
  for (std::int32_t page = 0; page < kPagesOfAll; ++page) pages[static_cast<std::size_t>(page)] = page;
  ops::StepRows rows;
  rows.add_sequence(0, ids, pages);
  for (std::int32_t t = 0; t < std::ssize(ids); ++t) rows.logit_rows.push_back(t);
  const auto x = ops->allocate({std::ssize(ids), outline->facts().width}, tensor::DType::kF32);
  const ops::Slab logits = model->forward(rows.batch(), cache, x->slab(), arena);
  tensor::Tensor copy = tensor::Tensor::empty(logits.shape, tensor::DType::kF32);
  ops->download(logits, {copy.mutable_raw(), copy.bytes()});
  return copy;
}

std::vector<double> log_softmax(const float* logits, std::int64_t count) {
  const double most = *std::max_element(logits, logits + count);
  double sum = 0;
  for (std::int64_t i = 0; i < count; ++i) sum += std::exp(logits[i] - most);
  std::vector<double> all(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i) all[static_cast<std::size_t>(i)] = logits[i] - most - std::log(sum);
  return all;
}

// The bounds that docs/performance.md states: the largest difference of a logit relative to the largest logit, and the
// mean Kullback-Leibler divergence of the distributions over tokens, in nats.
struct Bound {
  const char* golden;
  double error, divergence;
  // Where two experts are as good as equal, rounding decides, and the token's logits are others: so many positions may
  // differ by more.
  std::int64_t undecided = 0;
  // On a GPU, where activations are rounded to bf16 before weights of every format; 0: the same.
  double gpu_error = 0, gpu_divergence = 0;

  double error_on(const std::string& backend) const { return backend == "cuda" && gpu_error > 0 ? gpu_error : error; }
  double divergence_on(const std::string& backend) const {
    return backend == "cuda" && gpu_divergence > 0 ? gpu_divergence : divergence;
  }
};

class FastArithmetic : public testing::TestWithParam<Bound> {};

TEST_P(FastArithmetic, StaysWithinItsStatedErrorAndAgreesWhereTheGoldenIsSure) {
  const fs::path folder = fs::path(YOKE_SOURCE_DIR) / "tests/golden" / GetParam().golden;
  const Document cases = *parse_json(read_file(folder / "golden.json"), "golden.json").find("cases");
  const std::string backend = ops::resolved_backend("auto");
  const double error_allowed = GetParam().error_on(backend);
  double error = 0, divergence = 0;
  std::int64_t positions = 0, sure = 0, steps = 0, undecided = 0;
  for (const Document& one : cases.items) {
    const Document* const margins = one.find("margins");
    if (margins == nullptr) continue;
    std::vector<std::int32_t> ids = from_json<std::vector<std::int32_t>>(*one.find("ids"));
    const auto greedy = from_json<std::vector<std::int32_t>>(*one.find("greedy"));
    const auto margin = from_json<std::vector<double>>(*margins);
    const std::size_t prompt = ids.size();
    ids.insert(ids.end(), greedy.begin(), greedy.end() - 1);
    const tensor::Tensor exact = logits_of(folder, ids, ops::make_backend("ref", {.threads = 1}), tensor::DType::kF32);
    const tensor::Tensor fast = logits_of(folder, ids, ops::make_backend("auto", {.threads = 1}), tensor::DType::kBf16);
    double largest = 0;
    for (std::int64_t i = 0; i < exact.count(); ++i)
      largest = std::max(largest, std::abs(static_cast<double>(exact.data<float>()[i])));
    const std::int64_t V = exact.extent(1);
    std::vector<bool> is_undecided(ids.size());
    for (std::int64_t t = 0; t < std::ssize(ids); ++t, ++positions) {
      const std::vector<double> p = log_softmax(exact.row<float>(t), V);
      const std::vector<double> q = log_softmax(fast.row<float>(t), V);
      double own_error = 0, own_divergence = 0;
      for (std::int64_t v = 0; v < V; ++v) {
        const auto at = static_cast<std::size_t>(v);
        own_error = std::max(own_error,
                             std::abs(static_cast<double>(fast.row<float>(t)[v]) - exact.row<float>(t)[v]) / largest);
        own_divergence += std::exp(p[at]) * (p[at] - q[at]);
      }
      is_undecided[static_cast<std::size_t>(t)] = own_error > error_allowed && undecided < GetParam().undecided;
      if (is_undecided[static_cast<std::size_t>(t)]) {
        ++undecided;
        continue;
      }
      error = std::max(error, own_error);
      divergence += own_divergence;
    }
    for (std::size_t i = 0; i < greedy.size(); ++i, ++steps) {
      if (margin[i] <= 2 * error_allowed * largest || is_undecided[prompt + i - 1]) continue;
      const float* const row = fast.row<float>(static_cast<std::int64_t>(prompt + i) - 1);
      EXPECT_EQ(std::max_element(row, row + V) - row, greedy[i]) << "step " << i << ", margin " << margin[i];
      ++sure;
    }
  }
  divergence /= static_cast<double>(std::max<std::int64_t>(positions, 1));
  EXPECT_LE(error, error_allowed);
  EXPECT_LE(divergence, GetParam().divergence_on(backend));
  EXPECT_GT(sure, 0) << "nothing was compared";
  fmt::print("{}: error {:.2e}, divergence {:.2e}, {} of {} steps are sure, {} of {} positions undecided\n",
             GetParam().golden, error, divergence, sure, steps, undecided, positions);
}

INSTANTIATE_TEST_SUITE_P(
    Goldens, FastArithmetic,
    testing::Values(Bound{"llama-f32", 8e-3, 3e-4, 0, 2e-2, 2e-3}, Bound{"llama-bf16-tied", 2e-2, 1e-3},
                    Bound{"llama-biased-f16", 1.2e-2, 1e-3, 0, 3e-2, 4e-3},
                    Bound{"llama-fp8", 8e-3, 4e-4, 0, 1.6e-2, 1.5e-3}, Bound{"llama-gptq", 6e-2, 2e-2},
                    Bound{"llama-nvfp4", 8e-3, 3e-4, 0, 1.6e-2, 1.5e-3}, Bound{"llama-w4a16", 6e-2, 2e-2},
                    Bound{"llama-w4a16-ordered", 6e-2, 2e-2}, Bound{"mistral-window-bf16", 3e-2, 3e-3},
                    Bound{"qwen2-w4a16-channel", 6e-2, 2e-2},
                    Bound{"qwen2-window-f32", 1.5e-2, 3e-4, 0, 2.5e-2, 1.5e-3}, Bound{"qwen3-bf16", 1.5e-2, 1.5e-3},
                    Bound{"qwen3moe-a", 3e-2, 3e-3, 25}, Bound{"qwen3moe-b", 1e-2, 4e-4}),
    [](const auto& bound) {
      std::string name = bound.param.golden;
      std::replace(name.begin(), name.end(), '-', '_');
      return name;
    });

}  // namespace
}  // namespace yoke::models::llama

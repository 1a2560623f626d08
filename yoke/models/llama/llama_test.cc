// The model against the logits and greedy tokens that transformers computed (tests/golden/*/golden.json says how), on
// one rank and split over several.
#include "yoke/models/llama/llama.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <set>
#include <thread>

#include "yoke/base/error.h"
#include "yoke/base/fields.h"
#include "yoke/base/files.h"
#include "yoke/base/json.h"
#include "yoke/comm/local/local.h"
#include "yoke/ops/backends.h"
#include "yoke/weights/deepen_model.h"
#include "yoke/weights/make_model.h"

namespace yoke {
namespace {

namespace fs = std::filesystem;

constexpr double kLogitErrorMost = 1e-4;  // relative to the largest logit
constexpr std::int64_t kPageTokens = 16;
constexpr std::int64_t kPages = 28;

// One rank with one sequence in its cache.
class LlamaRank {
 public:
  LlamaRank(const fs::path& folder, Communicator& comm)
      : files_(folder),
        ops_(make_backend("ref", {.threads = 1})),
        llama_(files_, read_llama_config(files_.config()), {.rank = comm.rank(), .size = comm.size()}, *ops_) {
    llama_.join(comm);
    while (llama_.steps_loaded() < llama_.load_steps()) llama_.load_step();
    cache_ = llama_.allocate_cache(kPages, kPageTokens, DType::kF32);
    for (std::int32_t page = 0; page < kPages; ++page) pages_.push_back((page * 5 + 3) % std::int32_t{kPages});
  }

  // Feeds tokens after those that came before; this rank's logits of all of them.
  Tensor feed(const std::vector<std::int32_t>& ids) {
    LlamaBatch batch{.ids = ids, .sequences = {{pages_, context_, std::ssize(ids)}}};
    for (std::int64_t t = 0; t < std::ssize(ids); ++t) {
      batch.positions.push_back(context_ + t);
      batch.logit_rows.push_back(t);
    }
    context_ += std::ssize(ids);
    return llama_.forward(batch, cache_);
  }
  void forget() { context_ = 0; }
  const Llama& llama() const { return llama_; }

 private:
  ModelFiles files_;
  std::unique_ptr<Backend> ops_;
  Llama llama_;
  KvCache cache_;
  std::vector<std::int32_t> pages_;
  std::int64_t context_ = 0;
};

// All ranks in step, each in a thread of its own; the logits of all of them side by side.
class LlamaGroup {
 public:
  LlamaGroup(const fs::path& folder, int ranks) : comms_(make_local(ranks)), ranks_(comms_.size()) {
    on_all([&](std::size_t r) { ranks_[r] = std::make_unique<LlamaRank>(folder, *comms_[r]); });
  }

  Tensor feed(const std::vector<std::int32_t>& ids) {
    std::vector<Tensor> parts(ranks_.size());
    on_all([&](std::size_t r) { parts[r] = ranks_[r]->feed(ids); });
    const std::int64_t V = ranks_[0]->llama().config().V;
    Tensor logits = Tensor::zeros({std::ssize(ids), V}, DType::kF32);
    for (std::size_t r = 0; r < parts.size(); ++r) {
      const Range tokens = ranks_[r]->llama().vocabulary();
      for (std::int64_t t = 0; t < std::ssize(ids); ++t) {
        std::memcpy(logits.mutable_row<float>(t) + tokens.begin, parts[r].row<float>(t),
                    static_cast<std::size_t>(tokens.size()) * sizeof(float));
      }
    }
    return logits;
  }
  void forget() {
    for (auto& rank : ranks_) rank->forget();
  }

 private:
  void on_all(const std::function<void(std::size_t)>& work) {
    std::vector<std::jthread> threads;
    for (std::size_t r = 0; r < comms_.size(); ++r) threads.emplace_back([&, r] { work(r); });
  }

  std::vector<std::unique_ptr<Communicator>> comms_;
  std::vector<std::unique_ptr<LlamaRank>> ranks_;
};

double relative_error(const Tensor& logits, const Tensor& golden) {
  double largest = 0;
  double error = 0;
  for (std::int64_t i = 0; i < golden.count(); ++i) {
    largest = std::max(largest, std::abs(static_cast<double>(golden.data<float>()[i])));
    error = std::max(error, std::abs(static_cast<double>(logits.data<float>()[i]) - golden.data<float>()[i]));
  }
  return error / largest;
}

std::int32_t greedy(const Tensor& logits) {
  const float* const row = logits.row<float>(logits.extent(0) - 1);
  return static_cast<std::int32_t>(std::max_element(row, row + logits.extent(1)) - row);
}

struct GoldenModel {
  const char* folder;
  int ranks;
};

class GoldenLlama : public testing::TestWithParam<GoldenModel> {
 protected:
  const fs::path folder_ = fs::path(YOKE_SOURCE_DIR) / GetParam().folder;
  const Document cases_ = *parse_json(read_file(folder_ / "golden.json"), "golden.json").find("cases");
  const SafetensorsFile golden_{folder_ / "golden.safetensors"};
  LlamaGroup llama_{folder_, GetParam().ranks};
};

std::vector<GoldenModel> golden_models() {
  std::vector<GoldenModel> models;
  for (const char* folder : {"tests/golden/llama-biased-f16", "tests/golden/mistral-window-bf16",
                             "tests/golden/qwen2-window-f32", "tests/golden/qwen3-bf16", "tests/golden/llama-f32",
                             "tests/golden/llama-bf16-tied", "tests/golden/llama-fp8", "tests/golden/llama-nvfp4"}) {
    for (const int ranks : {1, 2, 4}) models.push_back({folder, ranks});
  }
  for (const char* folder : {"tests/golden/llama-w4a16", "models/nano"}) {
    for (const int ranks : {1, 2}) models.push_back({folder, ranks});
  }
  return models;
}

INSTANTIATE_TEST_SUITE_P(All, GoldenLlama, testing::ValuesIn(golden_models()), [](const auto& model) {
  std::string name = fs::path(model.param.folder).filename();
  std::replace(name.begin(), name.end(), '-', '_');
  return name + "_on_" + std::to_string(model.param.ranks);
});

TEST_P(GoldenLlama, LogitsAndGreedyTokensAreThoseOfTransformers) {
  for (std::size_t i = 0; i < cases_.items.size(); ++i) {
    const Document& one = cases_.items[i];
    llama_.forget();
    Tensor logits = llama_.feed(from_document<std::vector<std::int32_t>>(*one.find("ids")));
    const Document* const expected = one.find("greedy");
    const std::string name = expected != nullptr ? fmt::format("logits.{}", i) : "logits.long_last";
    const Tensor golden = golden_.view(*golden_.find(name));
    const std::int64_t T = logits.extent(0);
    const double error = relative_error(logits.slice(0, {T - golden.extent(0), T}), golden);
    EXPECT_LT(error, kLogitErrorMost) << name;
    RecordProperty(name, fmt::format("{:.2e}", error));
    if (expected == nullptr) continue;
    std::vector<std::int32_t> tokens;
    for (std::size_t step = 0; step < expected->items.size(); ++step) {
      tokens.push_back(greedy(logits));
      if (step + 1 < expected->items.size()) logits = llama_.feed({tokens.back()});
    }
    EXPECT_EQ(tokens, from_document<std::vector<std::int32_t>>(*expected)) << name;
  }
}

TEST_P(GoldenLlama, ChunksOfAPromptChangeNoBit) {
  constexpr std::size_t kTokens = 100;
  constexpr std::size_t kChunk = 37;
  auto ids = from_document<std::vector<std::int32_t>>(*cases_.items.back().find("ids"));
  ids.resize(kTokens);
  const Tensor whole = llama_.feed(ids);
  llama_.forget();
  for (std::size_t begin = 0; begin < kTokens; begin += kChunk) {
    const auto chunk = std::span(ids).subspan(begin, std::min(kChunk, kTokens - begin));
    const Tensor part = llama_.feed({chunk.begin(), chunk.end()});
    EXPECT_EQ(std::memcmp(part.raw(), whole.row<float>(static_cast<std::int64_t>(begin)), part.bytes()), 0) << begin;
  }
}

TEST_P(GoldenLlama, LayersThatAddNothingChangeNoBit) {
  const ScratchDir scratch;
  const ModelFiles files(folder_);
  deepen_model(files, scratch.path() / "deep", {.layers = 2 * layers_of(files) + 1});
  LlamaGroup deep(scratch.path() / "deep", GetParam().ranks);
  const auto ids = from_document<std::vector<std::int32_t>>(*cases_.items.front().find("ids"));
  const Tensor expected = llama_.feed(ids);
  const Tensor logits = deep.feed(ids);
  ASSERT_EQ(logits.bytes(), expected.bytes());
  EXPECT_EQ(std::memcmp(logits.raw(), expected.raw(), expected.bytes()), 0);
}

TEST(MadeLlama, LogitsAreFiniteAndGreedyTextIsVariedInEveryFormat) {
  constexpr std::size_t kTokens = 32;
  for (const auto& [name, format] : enum_names(MakeFormat{})) {
    const ScratchDir scratch;
    make_model(scratch.path() / "made", {.shape = *find_model_shape("nano"), .format = format});
    LlamaGroup llama(scratch.path() / "made", 2);
    Tensor logits = llama.feed({1, 2, 3});
    std::set<std::int32_t> tokens;
    for (std::size_t step = 0; step < kTokens; ++step) {
      double squares = 0;
      for (const float logit : logits.span<float>()) squares += static_cast<double>(logit) * static_cast<double>(logit);
      // Normed activations times a matrix of deviation 1 / sqrt(inputs): logits of deviation 1.
      EXPECT_NEAR(std::sqrt(squares / static_cast<double>(logits.count())), 1, 0.2) << name;
      tokens.insert(greedy(logits));
      logits = llama.feed({greedy(logits)});
    }
    EXPECT_GT(tokens.size(), kTokens / 2) << name;
  }
}

TEST(LlamaFootprint, IsWhatRanksThenHold) {
  for (const int ranks : {1, 2, 4}) {
    auto comms = make_local(ranks);
    const fs::path folder = fs::path(YOKE_SOURCE_DIR) / "tests/golden/llama-f32";
    const LlamaRank last(folder, *comms.back());
    const ModelFiles files(folder);
    EXPECT_EQ(llama_weight_bytes(files, last.llama().config(), ranks), last.llama().bytes_loaded()) << ranks;
  }
}

TEST(LlamaFootprint, NamesTheNumbersOfRanksThatWork) {
  const ModelFiles plain(fs::path(YOKE_SOURCE_DIR) / "tests/golden/llama-f32");
  EXPECT_EQ(llama_rank_counts(plain, read_llama_config(plain.config()), 16), (std::vector{1, 2, 4, 8}));
  const ModelFiles grouped(fs::path(YOKE_SOURCE_DIR) / "tests/golden/llama-w4a16");
  EXPECT_EQ(llama_rank_counts(grouped, read_llama_config(grouped.config()), 16), (std::vector{1, 2}));
}

TEST(LlamaTest, WeightsOfAnotherShapeAreRefused) {
  const ModelFiles files(fs::path(YOKE_SOURCE_DIR) / "tests/golden/llama-f32");
  LlamaConfig config = read_llama_config(files.config());
  config.C *= 2;
  try {
    llama_weight_bytes(files, config, 1);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalid);
    EXPECT_NE(error.message().find("is [768, 128] where config.json makes it [768, 256]"), std::string::npos)
        << error.message();
  }
}

TEST(NearEqualPart, CoversAllInSteps) {
  for (const std::int64_t extent : {1, 7, 64, 768, 1003}) {
    for (const std::int64_t step : {1, 8}) {
      for (const int size : {1, 2, 3, 7}) {
        std::int64_t end = 0;
        for (int rank = 0; rank < size; ++rank) {
          const Range part = near_equal_part(extent, step, rank, size);
          EXPECT_EQ(part.begin, end);
          EXPECT_TRUE(part.begin % step == 0 || part.begin == extent);
          end = part.end;
        }
        EXPECT_EQ(end, extent);
      }
    }
  }
}

}  // namespace
}  // namespace yoke

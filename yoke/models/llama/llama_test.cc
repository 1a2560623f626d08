// The model against the logits and greedy tokens that transformers computed (tests/golden/*/golden.json says how), on
// one rank and split over several.
#include "yoke/models/llama/llama.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <new>
#include <set>
#include <thread>

#include "yoke/base/error.h"
#include "yoke/base/error_testing.h"
#include "yoke/base/fields.h"
#include "yoke/base/files.h"
#include "yoke/base/json.h"
#include "yoke/comm/local/local.h"
#include "yoke/models/families.h"
#include "yoke/models/qwen3_moe/qwen3_moe.h"
#include "yoke/ops/backends.h"
#include "yoke/ops/ref/backend.h"
#include "yoke/weights/grow_model.h"
#include "yoke/weights/make_model.h"

// Counts what the tests of this program allocate; a sanitizer has its own.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define YOKE_COUNTS_ALLOCATIONS 0
#else
#define YOKE_COUNTS_ALLOCATIONS 1
static std::atomic<std::size_t> allocations_of_program{0};
[[gnu::noinline]] void* operator new(std::size_t size) {
  ++allocations_of_program;
  if (void* const memory = std::malloc(size > 0 ? size : 1)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
#endif

namespace yoke::models::llama {
namespace {

std::size_t allocations_counted() {
#if YOKE_COUNTS_ALLOCATIONS
  return allocations_of_program;
#else
  return 0;
#endif
}

namespace fs = std::filesystem;

constexpr double kMaxLogitError = 1e-4;  // relative to the largest logit
constexpr std::int64_t kPageTokens = 16;
constexpr std::int64_t kPages = 28;
constexpr std::int64_t kMaxTokens = 512;

// One rank with one sequence in its cache.
class LlamaRank {
 public:
  LlamaRank(const fs::path& folder, comm::Communicator& comm)
      : LlamaRank(std::make_unique<weights::ModelFiles>(folder), {.rank = comm.rank(), .size = comm.size()},
                  {.tensor = &comm, .world = &comm}, ops::make_backend("ref", {.threads = 1})) {}
  LlamaRank(std::unique_ptr<weights::WeightSource> source, const Mesh& mesh, const MeshGroups& groups,
            std::unique_ptr<ops::Backend> ops)
      : source_(std::move(source)),
        ops_(std::move(ops)),
        outline_(outline_model(source_->config())),
        model_(outline_->make(*source_, mesh, *ops_)),
        mesh_(mesh),
        x_(ops_->allocate({kMaxTokens, outline_->facts().width}, tensor::DType::kF32)),
        arena_(*ops_, outline_->arena_bytes({.tokens = kMaxTokens, .logit_rows = kMaxTokens}, mesh)) {
    mesh_.groups = groups;
    model_->join(groups);
    while (model_->steps_loaded() < model_->load_steps()) model_->load_step();
    cache_ = model_->allocate_cache({.pages = kPages, .page_tokens = kPageTokens}, tensor::DType::kF32);
    for (std::int32_t page = 0; page < kPages; ++page) pages_.push_back((page * 5 + 3) % std::int32_t{kPages});
  }

  // Feeds tokens after those that came before; this rank's logits of all of them.
  tensor::Tensor feed(const std::vector<std::int32_t>& ids) {
    const ops::Slab logits = forward(ids);
    tensor::Tensor copy = tensor::Tensor::empty(logits.shape, tensor::DType::kF32);
    ops_->download(logits, {copy.mutable_raw(), copy.bytes()});
    return copy;
  }
  ops::Slab forward(const std::vector<std::int32_t>& ids) {
    rows_.clear();
    rows_.add_sequence(context_, ids, pages_);
    for (std::int32_t t = 0; t < std::ssize(ids); ++t) rows_.logit_rows.push_back(t);
    context_ += std::ssize(ids);
    const ops::Slab x = x_->slab().rows({0, std::ssize(ids)});
    if (!mesh_.is_first()) mesh_.take_over(*ops_, x);
    const ops::Slab logits = model_->forward(rows_.batch(), cache_, x, arena_);
    if (!mesh_.is_last()) mesh_.send_on(*ops_, x);
    return logits;
  }
  void forget() { context_ = 0; }
  const LanguageModel& model() const { return *model_; }
  const ModelOutline& outline() const { return *outline_; }
  const ops::StepArena& arena() const { return arena_; }

 private:
  std::unique_ptr<weights::WeightSource> source_;
  std::unique_ptr<ops::Backend> ops_;
  std::unique_ptr<ModelOutline> outline_;
  std::unique_ptr<LanguageModel> model_;
  Mesh mesh_;
  std::unique_ptr<ops::SlabMemory> x_;
  ops::StepArena arena_;
  KvCache cache_;
  ops::StepRows rows_;
  std::vector<std::int32_t> pages_;
  std::int64_t context_ = 0;
};

// All ranks in step, each in a thread of its own; the logits of all of them side by side.
class LlamaGroup {
 public:
  LlamaGroup(const fs::path& folder, int ranks) : comms_(comm::local::make_local(ranks)), ranks_(comms_.size()) {
    on_all([&](std::size_t r) { ranks_[r] = std::make_unique<LlamaRank>(folder, *comms_[r]); });
  }
  // One rank a stage; the stages begin at these layers.
  LlamaGroup(const fs::path& folder, const std::vector<std::int64_t>& cut)
      : comms_(comm::local::make_local(static_cast<int>(cut.size()))), ranks_(comms_.size()) {
    on_all([&](std::size_t r) {
      const tensor::Range layers{cut[r], r + 1 < cut.size() ? cut[r + 1] : layers_of(weights::ModelFiles(folder))};
      ranks_[r] = std::make_unique<LlamaRank>(
          std::make_unique<weights::ModelFiles>(folder),
          Mesh{.stage = static_cast<int>(r), .stages = static_cast<int>(cut.size()), .layers = layers},
          MeshGroups{.world = comms_[r].get()}, ops::make_backend("ref", {.threads = 1}));
    });
  }
  // Of other weights on each rank.
  LlamaGroup(const std::function<std::unique_ptr<weights::WeightSource>(int rank)>& source, int ranks)
      : comms_(comm::local::make_local(ranks)), ranks_(comms_.size()) {
    on_all([&](std::size_t r) {
      const int rank = static_cast<int>(r);
      ranks_[r] = std::make_unique<LlamaRank>(source(rank), Mesh{.rank = rank, .size = ranks},
                                              MeshGroups{.tensor = comms_[r].get(), .world = comms_[r].get()},
                                              ops::make_backend("ref", {.threads = 1}));
    });
  }

  tensor::Tensor feed(const std::vector<std::int32_t>& ids) {
    std::vector<tensor::Tensor> parts(ranks_.size());
    on_all([&](std::size_t r) { parts[r] = ranks_[r]->feed(ids); });
    const std::int64_t V = ranks_[0]->outline().facts().vocabulary;
    tensor::Tensor logits = tensor::Tensor::zeros({std::ssize(ids), V}, tensor::DType::kF32);
    for (std::size_t r = 0; r < parts.size(); ++r) {
      const tensor::Range tokens = ranks_[r]->model().vocabulary();
      for (std::int64_t t = 0; t < std::ssize(ids) && tokens.size() > 0; ++t) {
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

  std::vector<std::unique_ptr<comm::Communicator>> comms_;
  std::vector<std::unique_ptr<LlamaRank>> ranks_;
};

double relative_error(const tensor::Tensor& logits, const tensor::Tensor& golden) {
  double largest = 0;
  double error = 0;
  for (std::int64_t i = 0; i < golden.count(); ++i) {
    largest = std::max(largest, std::abs(static_cast<double>(golden.data<float>()[i])));
    error = std::max(error, std::abs(static_cast<double>(logits.data<float>()[i]) - golden.data<float>()[i]));
  }
  return error / largest;
}

std::int32_t greedy(const tensor::Tensor& logits) {
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
  const weights::SafetensorsFile golden_{folder_ / "golden.safetensors"};
  LlamaGroup llama_{folder_, GetParam().ranks};
};

std::vector<GoldenModel> golden_models() {
  std::vector<GoldenModel> models;
  for (const char* folder :
       {"tests/golden/llama-biased-f16", "tests/golden/mistral-window-bf16", "tests/golden/qwen2-window-f32",
        "tests/golden/qwen3-bf16", "tests/golden/llama-f32", "tests/golden/llama-bf16-tied", "tests/golden/llama-fp8",
        "tests/golden/llama-nvfp4", "tests/golden/qwen3moe-a", "tests/golden/qwen3moe-b"}) {
    for (const int ranks : {1, 2, 4}) models.push_back({folder, ranks});
  }
  for (const char* folder : {"tests/golden/llama-w4a16", "tests/golden/llama-gptq", "tests/golden/llama-w4a16-ordered",
                             "tests/golden/qwen2-w4a16-channel", "models/nano"}) {
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
    tensor::Tensor logits = llama_.feed(from_json<std::vector<std::int32_t>>(*one.find("ids")));
    const Document* const expected = one.find("greedy");
    const std::string name = expected != nullptr ? fmt::format("logits.{}", i) : "logits.long_last";
    const tensor::Tensor golden = golden_.view(*golden_.find(name));
    const std::int64_t T = logits.extent(0);
    const double error = relative_error(logits.slice(0, {T - golden.extent(0), T}), golden);
    EXPECT_LT(error, kMaxLogitError) << name;
    RecordProperty(name, fmt::format("{:.2e}", error));
    if (expected == nullptr) continue;
    std::vector<std::int32_t> tokens;
    for (std::size_t step = 0; step < expected->items.size(); ++step) {
      tokens.push_back(greedy(logits));
      if (step + 1 < expected->items.size()) logits = llama_.feed({tokens.back()});
    }
    EXPECT_EQ(tokens, from_json<std::vector<std::int32_t>>(*expected)) << name;
  }
}

TEST_P(GoldenLlama, ChunksOfAPromptChangeNoBit) {
  constexpr std::size_t kTokens = 100;
  constexpr std::size_t kChunk = 37;
  auto ids = from_json<std::vector<std::int32_t>>(*cases_.items.back().find("ids"));
  ids.resize(kTokens);
  const tensor::Tensor whole = llama_.feed(ids);
  llama_.forget();
  for (std::size_t begin = 0; begin < kTokens; begin += kChunk) {
    const auto chunk = std::span(ids).subspan(begin, std::min(kChunk, kTokens - begin));
    const tensor::Tensor part = llama_.feed({chunk.begin(), chunk.end()});
    EXPECT_EQ(std::memcmp(part.raw(), whole.row<float>(static_cast<std::int64_t>(begin)), part.bytes()), 0) << begin;
  }
}

TEST_P(GoldenLlama, LayersThatAddNothingChangeNoBit) {
  if (folder_.filename().native().starts_with("qwen3moe")) return;  // grow_model makes no experts
  const ScratchDir scratch;
  const weights::ModelFiles files(folder_);
  weights::grow_model(files, scratch.path() / "deep", {.layers = 2 * weights::layers_of(files) + 1});
  LlamaGroup deep(scratch.path() / "deep", GetParam().ranks);
  const auto ids = from_json<std::vector<std::int32_t>>(*cases_.items.front().find("ids"));
  const tensor::Tensor expected = llama_.feed(ids);
  const tensor::Tensor logits = deep.feed(ids);
  ASSERT_EQ(logits.bytes(), expected.bytes());
  EXPECT_EQ(std::memcmp(logits.raw(), expected.raw(), expected.bytes()), 0);
}

TEST(MadeLlama, LogitsAreFiniteAndGreedyTextIsVariedInEveryFormat) {
  constexpr std::size_t kTokens = 32;
  for (const auto& [name, format] : weights::enum_names(weights::MakeFormat{})) {
    const ScratchDir scratch;
    weights::make_model(scratch.path() / "made", {.shape = *spec::find_model_shape("nano"), .format = format});
    LlamaGroup llama(scratch.path() / "made", 2);
    tensor::Tensor logits = llama.feed({1, 2, 3});
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

TEST(StagedLlama, StagesGiveWhatOneRankGivesToTheBit) {
  for (const char* name : {"tests/golden/llama-bf16-tied", "tests/golden/qwen3moe-b", "tests/golden/llama-f32"}) {
    const fs::path folder = fs::path(YOKE_SOURCE_DIR) / name;
    const std::int64_t layers = layers_of(weights::ModelFiles(folder));
    LlamaGroup one(folder, 1);
    const std::vector<std::int32_t> ids = {5, 17, 300, 8, 44, 101, 9};
    const tensor::Tensor expected = one.feed(ids);
    const tensor::Tensor expected_next = one.feed({7});
    std::vector<std::vector<std::int64_t>> cuts = {{0, 1}, {0, layers - 1}};
    if (layers >= 3) cuts.push_back({0, 1, 2});
    for (const auto& cut : cuts) {
      LlamaGroup staged(folder, cut);
      const tensor::Tensor logits = staged.feed(ids);
      EXPECT_EQ(std::memcmp(logits.raw(), expected.raw(), expected.bytes()), 0) << name << " in " << cut.size();
      const tensor::Tensor next = staged.feed({7});
      EXPECT_EQ(std::memcmp(next.raw(), expected_next.raw(), expected_next.bytes()), 0);
    }
  }
}

TEST(StagedLlama, ATiedModelOnTwoStagesHoldsItsTableTwice) {
  const weights::ModelFiles files(fs::path(YOKE_SOURCE_DIR) / "tests/golden/llama-bf16-tied");
  const auto outline = outline_model(files.config());
  const auto ops = ops::make_backend("ref", {.threads = 1});
  const std::int64_t layers = outline->facts().layers;
  const Bytes whole = outline->weight_bytes(files, {}, *ops);
  const Bytes first = outline->weight_bytes(files, {.stage = 0, .stages = 2, .layers = {0, 1}}, *ops);
  const Bytes last = outline->weight_bytes(files, {.stage = 1, .stages = 2, .layers = {1, layers}}, *ops);
  const std::int64_t table = outline->facts().vocabulary * outline->facts().width * 2;
  EXPECT_EQ(first.value + last.value, whole.value + table);
}

TEST(LlamaFootprint, IsWhatRanksThenHold) {
  for (const char* name : {"tests/golden/llama-f32", "tests/golden/llama-biased-f16", "tests/golden/qwen3moe-b"}) {
    for (const int ranks : {1, 2, 4}) {
      auto comms = comm::local::make_local(ranks);
      const fs::path folder = fs::path(YOKE_SOURCE_DIR) / name;
      const LlamaRank last(folder, *comms.back());
      const weights::ModelFiles files(folder);
      const auto ops = ops::make_backend("ref", {.threads = 1});
      EXPECT_EQ(last.outline().weight_bytes(files, {.rank = ranks - 1, .size = ranks}, *ops),
                last.model().bytes_loaded())
          << name << " on " << ranks;
    }
  }
}

TEST(LlamaFootprint, NamesTheNumbersOfRanksThatWork) {
  const auto ops = ops::make_backend("ref", {.threads = 1});
  const auto counts = [&](const char* name) {
    const weights::ModelFiles files(fs::path(YOKE_SOURCE_DIR) / name);
    return outline_model(files.config())->rank_counts(files, *ops, 16);
  };
  EXPECT_EQ(counts("tests/golden/llama-f32"), (std::vector{1, 2, 4, 8}));
  EXPECT_EQ(counts("tests/golden/llama-w4a16"), (std::vector{1, 2}));
  EXPECT_EQ(counts("tests/golden/qwen3moe-a"), (std::vector{1, 2, 4, 8}));
}

TEST(LlamaTest, WeightsOfAnotherShapeAreRefused) {
  const weights::ModelFiles files(fs::path(YOKE_SOURCE_DIR) / "tests/golden/llama-f32");
  LlamaConfig config = read_llama_config(files.config());
  config.C *= 2;
  const auto ops = ops::make_backend("ref", {.threads = 1});
  EXPECT_ERROR(LlamaOutline(config).weight_bytes(files, {}, *ops), ErrorCode::kInvalid,
               "is [768, 128] where config.json makes it [768, 256]");
}

TEST(FamiliesTest, AnUnknownFamilyListsTheKnownOnes) {
  EXPECT_ERROR(
      outline_model(parse_json(R"({"architectures":["GemmaForCausalLM"],"model_type":"gemma"})", "config.json")),
      ErrorCode::kUnsupported, "GemmaForCausalLM", "Qwen3MoeForCausalLM");
}

// Memory that only operations can reach: code that reads through an address dies here, long before there is a GPU.
TEST(DarkMemory, NoModelReadsMemoryThroughThePointer) {
  for (const char* name : {"tests/golden/qwen3-bf16", "tests/golden/qwen3moe-b"}) {
    const fs::path folder = fs::path(YOKE_SOURCE_DIR) / name;
    const auto feed = [&](bool dark) {
      LlamaRank rank(std::make_unique<weights::ModelFiles>(folder), {}, {},
                     std::make_unique<ops::ref::RefBackend>(ops::ref::RefBackend::Options{.threads = 2, .dark = dark}));
      return rank.feed({3, 1, 4, 1, 5});
    };
    const tensor::Tensor dark = feed(true);
    const tensor::Tensor light = feed(false);
    EXPECT_EQ(std::memcmp(dark.raw(), light.raw(), light.bytes()), 0);
  }
  ops::ref::RefBackend ops({.dark = true});
  const auto memory = ops.allocate({4}, tensor::DType::kF32);
  EXPECT_DEATH(static_cast<void>(*reinterpret_cast<volatile float*>(memory->slab().address)), "");
}

TEST(StepArenaTest, TwoEqualStepsUseTheSameAddressesAndAllocateNothing) {
  for (const char* name : {"tests/golden/llama-w4a16", "tests/golden/llama-nvfp4", "tests/golden/qwen3moe-a"}) {
    LlamaRank rank(std::make_unique<weights::ModelFiles>(fs::path(YOKE_SOURCE_DIR) / name), {}, {},
                   ops::make_backend("ref", {.threads = 1}));
    const std::vector<std::int32_t> ids = {3, 1, 4, 1, 5};
    const ops::Slab first = rank.forward(ids);
    rank.forget();
    const std::size_t before = allocations_counted();
    const ops::Slab second = rank.forward(ids);
    EXPECT_EQ(allocations_counted(), before) << name;
    EXPECT_EQ(first.address, second.address);
    EXPECT_LE(rank.arena().most(), rank.arena().bytes());
  }
}

// The router of a golden model with three experts that are equal for every token, so that any ulp decides between them;
// on one rank one of them is an ulp larger.
class TiedRouter final : public weights::WeightSource {
 public:
  TiedRouter(const fs::path& folder, bool is_off) : files_(folder), is_off_(is_off) {}
  std::string where() const override { return files_.where(); }
  const Document& config() const override { return files_.config(); }
  tensor::MatrixInfo describe(const std::string& module, const tensor::Slice& slice) const override {
    return files_.describe(module, slice);
  }
  std::int64_t row_step(const std::string& module) const override { return files_.row_step(module); }
  tensor::Matrix matrix(const std::string& module, const tensor::Slice& slice) const override {
    tensor::Matrix matrix = files_.matrix(module, slice);
    if (!module.ends_with("mlp.gate")) return matrix;
    matrix = matrix.copied();
    for (const std::int64_t expert : {1, 2}) {
      std::memcpy(matrix.values.mutable_row<float>(expert), matrix.values.row<float>(0),
                  static_cast<std::size_t>(matrix.columns) * sizeof(float));
    }
    float* const row = matrix.values.mutable_row<float>(2);
    for (std::int64_t c = 0; c < matrix.columns && is_off_; ++c) {
      row[c] = std::nextafter(row[c], row[c] > 0 ? 1e9F : -1e9F);
    }
    return matrix;
  }
  tensor::Shape vector_shape(const std::string& name) const override { return files_.vector_shape(name); }
  tensor::Tensor vector(const std::string& name, const tensor::Slice& slice) const override {
    return files_.vector(name, slice);
  }
  void will_need(const std::string&, const tensor::Slice&) const override {}
  void done_with(const tensor::Matrix&) const override {}
  std::string fingerprint() const override { return files_.fingerprint(); }
  void check_unchanged() const override {}

 private:
  weights::ModelFiles files_;
  bool is_off_;
};

TEST(Qwen3MoeTest, AllRanksChooseTheSameExpertsThoughOneIsAnUlpOff) {
  const fs::path folder = fs::path(YOKE_SOURCE_DIR) / "tests/golden/qwen3moe-a";
  std::vector<std::int32_t> ids;
  for (std::int32_t i = 0; i < 40; ++i) ids.push_back(i * 13 % 570);
  LlamaGroup right([&](int) { return std::make_unique<TiedRouter>(folder, false); }, 1);
  const tensor::Tensor expected = right.feed(ids);
  for (const int off : {0, 1}) {
    LlamaGroup ranks([&](int rank) { return std::make_unique<TiedRouter>(folder, rank == off && off > 0); }, 2);
    EXPECT_LT(relative_error(ranks.feed(ids), expected), kMaxLogitError) << off;
  }
}

TEST(Qwen3MoeTest, TheRouterChoosesAsTransformersDoes) {
  const fs::path folder = fs::path(YOKE_SOURCE_DIR) / "tests/golden/qwen3moe-b";
  const qwen3_moe::Qwen3MoeConfig config = qwen3_moe::read_qwen3_moe_config(weights::ModelFiles(folder).config());
  EXPECT_EQ(config.sparse, (std::vector<bool>{false, true, true}));
  EXPECT_FALSE(config.renormalize);
  EXPECT_EQ(config.experts_used, 4);
}

TEST(NearEqualPart, CoversAllInSteps) {
  for (const std::int64_t extent : {1, 7, 64, 768, 1003}) {
    for (const std::int64_t step : {1, 8}) {
      for (const int size : {1, 2, 3, 7}) {
        std::int64_t end = 0;
        for (int rank = 0; rank < size; ++rank) {
          const tensor::Range part = near_equal_part(extent, step, rank, size);
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
}  // namespace yoke::models::llama

// The plan and the engine's own refusal give the same answer, for every size of memory.
#include <gtest/gtest.h>

#include <algorithm>

#include "yoke/base/error_testing.h"
#include "yoke/base/result.h"
#include "yoke/engine/placement.h"
#include "yoke/engine/rank_need.h"
#include "yoke/models/families.h"
#include "yoke/ops/backends.h"
#include "yoke/predict/plan_input.h"
#include "yoke/weights/model_files.h"

namespace yoke::predict {
namespace {

constexpr std::int64_t kMiB = 1 << 20;
const std::string kNano = std::string(YOKE_SOURCE_DIR) + "/models/nano";

// What the engine asks of each of its stages, on nodes with as much memory (engine/rank.cc).
class EngineOf {
 public:
  explicit EngineOf(int ranks) {
    const auto ops = ops::make_backend("auto", {.threads = 1});
    const std::int64_t layers = outline_->facts().layers;
    tensor_ = engine::tensor_size(ranks, outline_->rank_counts(files_, *ops, ranks));
    const int stages = ranks / tensor_;
    const auto weights = [&](int stage, int of, tensor::Range range) {
      return outline_->weight_bytes(
          files_, {.rank = tensor_ - 1, .size = tensor_, .stage = stage, .stages = of, .layers = range}, *ops);
    };
    std::vector<engine::StageRoom> rooms;
    for (int stage = 0; stage < stages; ++stage) rooms.push_back({Bytes{1 << 30}, weights(stage, stages, {0, 0})});
    const std::vector<std::int64_t> cut = engine::cut_layers(rooms, layers, weights(1, 3, {0, 1}));
    for (int stage = 0; stage < stages; ++stage) {
      const models::Mesh mesh = engine::place_in_mesh(stage * tensor_ + tensor_ - 1, tensor_, cut, layers);
      needs_.push_back(engine::rank_need(files_, *outline_, *ops, {}, mesh));
    }
  }

  bool takes(std::int64_t memory, spec::MemoryKind kind, std::int64_t context) const {
    return std::all_of(needs_.begin(), needs_.end(), [&](const engine::RankNeed& need) {
      engine::FitQuestion question{.need = [&](int) { return need; }};
      question.ranks.assign(static_cast<std::size_t>(tensor_), {"node", Bytes{memory}, Bytes{memory}, kind});
      question.tokens_wanted = question.tokens_min = context;
      return try_to([&] { return engine::fit_cache(question); }).has_value();
    });
  }

 private:
  const weights::ModelFiles files_{kNano};
  const std::unique_ptr<models::ModelOutline> outline_ = models::outline_model(files_.config());
  int tensor_ = 1;
  std::vector<engine::RankNeed> needs_;
};

plan::Request nano_request() {
  const PlannedModel model = read_planned_model(kNano);
  plan::Request request;
  request.model = *model.language;
  request.format = *model.format;
  request.file_bytes = model.file_bytes;
  request.rank_weights = read_rank_weights(kNano);
  request.engine = plan::Engine::kYoke;
  request.cache_bytes = 4;
  request.prompt = 1;
  return request;
}

bool plan_takes(const plan::Request& base, int ranks, std::int64_t memory, spec::MemoryKind kind) {
  plan::Request request = base;
  request.machines = plan::machines_of(*spec::find_hardware_facts("cpu"), ranks);
  request.machines.gpu.memory = static_cast<double>(memory);
  request.machines.gpu.kind = kind;
  return plan::make_plan(request, plan::shipped_constants()).fits;
}

TEST(PlanFit, AgreesWithTheEngineOnEverySizeOfMemory) {
  plan::Request request = nano_request();
  // Three ranks are three stages, six are three stages of two: nano's eight heads do not divide by three.
  for (const int ranks : {1, 2, 3, 4, 6, 7, 8}) {
    const EngineOf engine(ranks);
    for (const std::int64_t context : {1, 256, 1000}) {
      request.context = static_cast<double>(context);
      std::int64_t first = 0;
      for (std::int64_t memory = 33 * kMiB; memory < 160 * kMiB; memory += kMiB / 4) {
        const bool takes = engine.takes(memory, spec::MemoryKind::kHost, context);
        ASSERT_EQ(plan_takes(request, ranks, memory, spec::MemoryKind::kHost), takes) << ranks << " " << memory;
        if (takes && first == 0) first = memory;
      }
      ASSERT_GT(first, 33 * kMiB) << "both verdicts occur";
      for (std::int64_t memory = first - kMiB / 4; memory <= first; memory += 4096) {
        ASSERT_EQ(plan_takes(request, ranks, memory, spec::MemoryKind::kHost),
                  engine.takes(memory, spec::MemoryKind::kHost, context))
            << "at the edge: " << ranks << " " << memory;
      }
    }
  }
}

TEST(PlanFit, ThreeNodesRunAsStages) {
  plan::Request request = nano_request();
  request.context = 256;
  request.machines = plan::machines_of(*spec::find_hardware_facts("cpu"), 3);
  const plan::Plan made = plan::make_plan(request, plan::shipped_constants());
  ASSERT_TRUE(made.fits);
  EXPECT_EQ(made.layouts.front().name, "PP 3");
  ASSERT_FALSE(made.warnings.empty());
  EXPECT_NE(made.warnings.front().find("3 ranks do not divide the 8 heads"), std::string::npos);
  request.machines = plan::machines_of(*spec::find_hardware_facts("cpu"), 9);
  EXPECT_ERROR(plan::make_plan(request, plan::shipped_constants()), ErrorCode::kUsage, "over 9 ranks");
}

TEST(PlanFit, BothKeepEightGibibytesOfUnifiedMemoryFree) {
  plan::Request request = nano_request();
  request.context = 256;
  for (const std::int64_t memory : {4096 * kMiB, 8192 * kMiB, 8200 * kMiB, 8300 * kMiB, 9000 * kMiB}) {
    const bool engine = EngineOf(1).takes(memory, spec::MemoryKind::kUnified, 256);
    EXPECT_EQ(engine, memory >= 8300 * kMiB);
    EXPECT_EQ(plan_takes(request, 1, memory, spec::MemoryKind::kUnified), engine) << memory;
  }
}

}  // namespace
}  // namespace yoke::predict

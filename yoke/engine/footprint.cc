#include "yoke/engine/footprint.h"

#include <algorithm>
#include <memory>

#include "yoke/engine/placement.h"
#include "yoke/engine/rank_need.h"
#include "yoke/engine/scheduler.h"
#include "yoke/models/families.h"
#include "yoke/ops/backends.h"
#include "yoke/weights/model_files.h"

namespace yoke::engine {

models::StepLimits step_limits(const models::LanguageFacts& facts, const EngineOptions& options) {
  return {.tokens = options.chunk_tokens + options.sequences_max,
          .logit_rows = options.sequences_max + logit_rows_max(facts.vocabulary)};
}

RankNeed rank_need(const weights::WeightSource& source, const models::ModelOutline& outline, const ops::Backend& ops,
                   const EngineOptions& options, const models::Mesh& mesh) {
  const models::StepLimits limits = step_limits(outline.facts(), options);
  const std::int64_t activations = limits.tokens * outline.facts().width * static_cast<std::int64_t>(sizeof(float));
  return {.weights = outline.weight_bytes(source, mesh, ops),
          .work_space = Bytes{static_cast<std::int64_t>(outline.arena_bytes(limits, mesh)) +
                              (mesh.stages > 1 ? 2 : 1) * activations},
          .cache_per_token = outline.cache_bytes_per_token(mesh, options.cache_type)};
}

namespace {

// The parts of one model, as engines of different sizes cut it.
class Parts {
 public:
  explicit Parts(const std::filesystem::path& model)
      : files_(model),
        outline_(models::outline_model(files_.config())),
        ops_(ops::make_backend(options_.backend, {.threads = 1})) {}

  std::int64_t layers() const { return outline_->facts().layers; }
  std::vector<int> tensor_counts(int max) const { return outline_->rank_counts(files_, *ops_, max); }

  void add_stages(int tensor, int stages, std::vector<RankFootprint>& footprints) const {
    std::vector<StageRoom> rooms;
    for (int stage = 0; stage < stages; ++stage) {
      rooms.push_back({.available = kSameForAll, .ends = weights({0, 0}, tensor, stage, stages)});
    }
    const std::vector<std::int64_t> cut = cut_layers(rooms, layers(), weights({0, 1}, tensor, 1, 3));
    const std::size_t first = footprints.size();
    for (int stage = 0; stage < stages; ++stage) {
      const models::Mesh mesh = place_in_mesh(stage * tensor + tensor - 1, tensor, cut, layers());
      const RankNeed need = rank_need(files_, *outline_, *ops_, options_, mesh);
      const RankFootprint footprint{.tensor = tensor,
                                    .stages = stages,
                                    .layers = mesh.layers.size(),
                                    .layers_all = layers(),
                                    .weights = need.weights,
                                    .work_space = need.work_space};
      const auto begin = footprints.begin() + static_cast<std::ptrdiff_t>(first);
      if (std::find(begin, footprints.end(), footprint) == footprints.end()) footprints.push_back(footprint);
    }
  }

 private:
  static constexpr Bytes kSameForAll{std::int64_t{1} << 40};

  Bytes weights(tensor::Range layers, int tensor, int stage, int stages) const {
    return outline_->weight_bytes(
        files_, {.rank = tensor - 1, .size = tensor, .stage = stage, .stages = stages, .layers = layers}, *ops_);
  }

  const EngineOptions options_{.backend = "auto"};
  weights::ModelFiles files_;
  std::unique_ptr<models::ModelOutline> outline_;
  std::unique_ptr<ops::Backend> ops_;
};

}  // namespace

std::vector<RankFootprint> rank_footprints(const std::filesystem::path& model, int max) {
  const Parts parts(model);
  const std::vector<int> counts = parts.tensor_counts(max);
  std::vector<RankFootprint> footprints;
  for (int ranks = 1; ranks <= max; ++ranks) {
    const int tensor = tensor_size(ranks, counts);
    if (ranks / tensor <= parts.layers()) parts.add_stages(tensor, ranks / tensor, footprints);
  }
  return footprints;
}

}  // namespace yoke::engine

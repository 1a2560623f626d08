#include "yoke/plan/serve_layouts.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>

#include "yoke/base/error.h"

namespace yoke::plan {
namespace {

constexpr int kRanksAdvised = 64;

std::vector<int> tensor_sizes(const spec::ModelFacts& model, int most) {
  std::vector<int> sizes;
  for (int ranks = 1; ranks <= std::min(most, 1024); ++ranks) {
    if (divides_heads(model, ranks)) sizes.push_back(ranks);
  }
  return sizes;
}

void refuse_tensor(const Request& request) {
  if (request.tensor <= 1 || divides_heads(request.model, request.tensor)) return;
  const std::vector<int> sizes = tensor_sizes(request.model, std::max(request.machines.gpus(), 16));
  throw Error(ErrorCode::kUsage,
              fmt::format("tensor parallelism of {} does not divide the {} heads ({} key-value heads) of {}",
                          request.tensor, request.model.heads, request.model.kv_heads, request.model.name),
              fmt::format("{} would; --pp {} splits by layers instead", fmt::join(sizes, ", "), request.tensor));
}

// How yoke's engine shares a model out over so many ranks (engine/placement.h): as many as can share each layer, and
// stages for the rest. The files say into how many parts they can be cut; without files the heads do.
std::optional<Layout> engine_layout(const Request& request, int ranks) {
  if (!request.rank_weights.empty()) {
    for (const RankWeights& packed : request.rank_weights) {
      if (packed.ranks * packed.stages == ranks) return Layout{.tensor = packed.ranks, .pipeline = packed.stages};
    }
    return std::nullopt;
  }
  int tensor = 1;
  for (const int size : tensor_sizes(request.model, ranks)) {
    if (ranks % size == 0) tensor = size;
  }
  if (ranks / tensor > request.model.layers) return std::nullopt;
  return Layout{.tensor = tensor, .pipeline = ranks / tensor};
}

void refuse_other_than_engine(const Request& request, const Layout& layout) {
  const auto made = engine_layout(request, layout.tensor * layout.pipeline);
  if (!made) refuse_ranks(request);
  if (layout.replicas == 1 && made->tensor == layout.tensor) return;
  throw Error(ErrorCode::kUsage,
              fmt::format("yoke's engine shares {} ranks as {}, not as {}", layout.tensor * layout.pipeline,
                          layout_name(*made), layout_name(layout)),
              "leave --tp, --pp and --dp out, or plan for another --engine");
}

}  // namespace

bool divides_heads(const spec::ModelFacts& model, int ranks) {
  const bool shares_cache = model.latent || model.kv_heads % ranks == 0 || ranks % model.kv_heads == 0;
  return model.heads % ranks == 0 && shares_cache;
}

void refuse_ranks(const Request& request) {
  std::vector<int> sizes;
  for (int ranks = 1; ranks <= kRanksAdvised; ++ranks) {
    if (engine_layout(request, ranks)) sizes.push_back(ranks);
  }
  throw Error(ErrorCode::kUsage,
              fmt::format("yoke's engine cannot split {} over {} ranks", request.model.name, request.machines.gpus()),
              fmt::format("numbers of ranks that work: {}", fmt::join(sizes, ", ")));
}

std::vector<Layout> possible_layouts(const Request& request) {
  const int gpus = request.machines.gpus();
  refuse_tensor(request);
  const bool is_fixed = request.tensor > 0 || request.pipeline > 0 || request.replicas > 0;
  if (is_fixed) {
    Layout layout{.tensor = std::max(request.tensor, 1),
                  .pipeline = std::max(request.pipeline, 1),
                  .replicas = std::max(request.replicas, 1)};
    if (request.engine == Engine::kYoke) refuse_other_than_engine(request, layout);
    return {layout};
  }
  if (request.engine == Engine::kYoke) {
    const auto layout = engine_layout(request, gpus);
    return layout ? std::vector{*layout} : std::vector<Layout>{};
  }
  std::vector<Layout> layouts;
  for (int tensor = 1; tensor <= std::min(gpus, 1024); ++tensor) {
    if (gpus % tensor != 0 || !divides_heads(request.model, tensor)) continue;
    const bool crosses = tensor > request.machines.gpus_per_node;
    if (crosses && (tensor % request.machines.gpus_per_node != 0 || request.engine == Engine::kLlamaCpp)) continue;
    if (!crosses && request.machines.gpus_per_node % tensor != 0) continue;
    for (int pipeline = 1; pipeline <= gpus / tensor && pipeline <= request.model.layers && pipeline <= 64;
         ++pipeline) {
      if ((gpus / tensor) % pipeline != 0) continue;
      Layout layout{.tensor = tensor, .pipeline = pipeline, .replicas = gpus / tensor / pipeline};
      layouts.push_back(layout);
      // Experts spread over the replicas of a server's worth of GPUs or of all of them.
      const int ranks = tensor * layout.replicas;
      if (request.model.experts > 0 && layout.replicas > 1 && pipeline == 1 && request.model.experts % ranks == 0) {
        layout.experts = ranks;
        layouts.push_back(layout);
      }
    }
  }
  return layouts;
}

}  // namespace yoke::plan

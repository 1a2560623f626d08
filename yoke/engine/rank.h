// One rank of an engine, from joining to the end: sees that the model fits, loads its part, and takes steps until the
// client goes. Rank 0 has the line to the client and decides each step; the others follow. After a death
// (World::recover) every rank begins again with what the client or rank 0 still knows: no request is lost.
//
//   run_engine_rank(*join_world(place, {}), options, connect_unix(path, deadline));    // rank 0
//   run_engine_rank(*join_world(place, {}), options, std::nullopt);                    // any other
//
// Returns when the client has closed its end. Throws what ended the engine; rank 0 has told the client before.
#pragma once
#include <functional>
#include <memory>
#include <optional>

#include "yoke/base/socket.h"
#include "yoke/base/units.h"
#include "yoke/engine/options.h"
#include "yoke/ops/backends.h"
#include "yoke/rank/world.h"
#include "yoke/weights/weight_source.h"

namespace yoke::engine {

// What a test or a measurement replaces.
struct RankParts {
  std::function<std::unique_ptr<ops::Backend>(const std::string& name, const ops::BackendOptions& options)>
      make_backend = ops::make_backend;
  // Where the weights come from; null: the files of EngineOptions::model.
  std::function<std::unique_ptr<weights::WeightSource>()> open_weights;
  // Of one exchange in a step, at least: a rank that does not come by then is named, not waited for.
  Seconds step_limit{10};
};

void run_engine_rank(rank::World& world, const EngineOptions& options, std::optional<Socket> client,
                     RankParts parts = {});

}  // namespace yoke::engine

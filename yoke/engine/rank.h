// One rank of an engine, from joining to the end: sees that the model fits, loads its part, and takes steps until the
// front goes. Rank 0 has the line to the front and decides each step; the others follow. After a death (World::recover)
// every rank begins anew with what the front or rank 0 still knows: no request is lost.
//
//   run_engine_rank(*join_world(place, {}), options, connect_unix(path, deadline));    // rank 0
//   run_engine_rank(*join_world(place, {}), options, std::nullopt);                    // any other
//
// Returns when the front has closed its end. Throws what ended the engine; rank 0 has told the front before.
#pragma once
#include <optional>

#include "yoke/base/socket.h"
#include "yoke/engine/options.h"
#include "yoke/rank/world.h"

namespace yoke {

void run_engine_rank(World& world, const EngineOptions& options, std::optional<Socket> front);

}  // namespace yoke

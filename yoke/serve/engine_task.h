// The task of one rank of an engine when it is a process of its own: `yoke rank engine` (rank/rank_part.h).
#pragma once
#include <filesystem>
#include <optional>

#include "yoke/base/document.h"
#include "yoke/engine/options.h"
#include "yoke/rank/rank_part.h"
#include "yoke/rank/transport.h"
#include "yoke/rank/world.h"
#include "yoke/spec/cluster.h"

namespace yoke::serve {

inline constexpr const char* kEngineKind = "engine";

struct EngineTask {
  engine::EngineOptions engine;
  rank::Transport transport = rank::Transport::kAuto;
  std::optional<spec::Cluster> cluster;
  std::filesystem::path client;  // rank 0's: the socket where the client listens
};

Document to_json(const EngineTask& task);
void from_json(const Document& document, EngineTask& task);  // throws Error(kInvalid)

// How a rank of an engine joins its group.
rank::WorldOptions engine_world(rank::Transport transport, const std::optional<spec::Cluster>& cluster);

rank::RankKind engine_rank_kind();  // `yoke rank engine`

}  // namespace yoke::serve

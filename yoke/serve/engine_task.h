// The task of one rank of an engine when it is a process of its own: `yoke rank engine` (rank/rank_part.h).
#pragma once
#include <filesystem>
#include <optional>

#include "yoke/base/document.h"
#include "yoke/engine/options.h"
#include "yoke/rank/rank_part.h"
#include "yoke/rank/transport.h"
#include "yoke/spec/cluster.h"

namespace yoke {

inline constexpr const char* kEngineKind = "engine";

struct EngineTask {
  EngineOptions engine;
  Transport transport = Transport::kAuto;
  std::optional<Cluster> cluster;
  std::filesystem::path front;  // rank 0's: the socket where the client listens
};

Document to_json(const EngineTask& task);
EngineTask engine_task_from_json(const Document& document);  // throws Error(kInvalid)

// How a rank of an engine joins its group.
WorldOptions engine_world(Transport transport, const std::optional<Cluster>& cluster);

RankKind engine_rank_kind();  // `yoke rank engine`

}  // namespace yoke

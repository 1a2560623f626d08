// What one rank of an engine is told when it is a process of its own (`yoke engine-rank`, a hidden part of the
// program), in its environment.
#pragma once
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "yoke/engine/options.h"
#include "yoke/rank/transport.h"
#include "yoke/spec/cluster.h"

namespace yoke {

inline constexpr const char* kEnginePart = "engine-rank";
inline constexpr const char* kEngineTaskVariable = "YOKE_ENGINE_TASK";

struct EngineTask {
  EngineOptions engine;
  Transport transport = Transport::kAuto;
  std::optional<Cluster> cluster;
  std::filesystem::path front;  // rank 0's: the socket where the asker listens
};

std::string print_task(const EngineTask& task);
EngineTask read_task(const std::string& text);  // throws Error(kInvalid)

// Joins the group of a rank; where the launcher does not say the name of its node, this machine's is taken.
std::unique_ptr<World> join_engine_world(RankPlace place, Transport transport, const std::optional<Cluster>& cluster);

// The exit status, where the arguments are those of the hidden part.
std::optional<int> run_engine_part(const std::vector<std::string>& arguments);

}  // namespace yoke

// Which cluster file a command uses: --cluster, else cluster.yaml in the working folder.
#pragma once
#include <filesystem>
#include <optional>

#include "yoke/cli/command.h"
#include "yoke/spec/cluster.h"

namespace yoke {

std::optional<std::filesystem::path> find_cluster_file(const Session& session);  // nothing: there is none
Cluster load_session_cluster(const Session& session);                            // an Error where there is none
// What it says; nothing where there is none. Read once for each session.
std::optional<Cluster> read_session_cluster(const Session& session);

}  // namespace yoke

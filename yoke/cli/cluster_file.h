// Which cluster file a command uses: --cluster, else cluster.yaml in the working folder.
#pragma once
#include <filesystem>
#include <optional>

#include "yoke/cli/command.h"
#include "yoke/spec/cluster.h"

namespace yoke::cli {

std::optional<std::filesystem::path> find_cluster_file(const Session& session);  // nothing: there is none
spec::Cluster load_session_cluster(const Session& session);                      // an Error where there is none
// Says first, on standard error, where work over the nodes does not use the rails: a cluster file without any, or one
// that omits a cabled rail of this machine. Which command mends it is part of it.
void note_omitted_rails(const Session& session, const spec::Cluster& cluster);
// What it says; nothing where there is none. Read once for each session.
std::optional<spec::Cluster> read_session_cluster(const Session& session);
// " --lab NAME" or " --cluster FILE" as it was given, for commands to paste.
std::string session_options(const Session& session);

}  // namespace yoke::cli

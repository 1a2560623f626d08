#include "yoke/cli/cluster_file.h"

#include <fmt/format.h>

#include "yoke/base/error.h"
#include "yoke/base/text.h"

namespace yoke {
namespace fs = std::filesystem;

std::optional<fs::path> find_cluster_file(const Session& session) {
  const fs::path file = session.cluster_file.value_or("cluster.yaml");
  std::error_code failure;
  if (fs::exists(file, failure)) return file;
  if (!session.cluster_file) return std::nullopt;
  throw Error(ErrorCode::kNotFound, fmt::format("there is no cluster file '{}'", printable(file.native(), 300)),
              "check the path after --cluster");
}

Cluster load_session_cluster(const Session& session) {
  if (const auto file = find_cluster_file(session)) return load_cluster(*file);
  throw Error(ErrorCode::kNotFound, "there is no cluster.yaml in this folder",
              "'yoke link discover ADDRESS… -o cluster.yaml' writes one; or name one with --cluster FILE");
}

}  // namespace yoke

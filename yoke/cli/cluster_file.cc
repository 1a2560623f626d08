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

std::optional<Cluster> read_session_cluster(const Session& session) {
  if (session.cluster_read) return *session.cluster_read;
  const auto file = find_cluster_file(session);
  if (!file) return std::nullopt;
  session.cluster_read = std::make_shared<const Cluster>(load_cluster(*file));
  return *session.cluster_read;
}

Cluster load_session_cluster(const Session& session) {
  if (auto cluster = read_session_cluster(session)) return *std::move(cluster);
  throw Error(ErrorCode::kNotFound, "there is no cluster.yaml in this folder",
              "'yoke link discover ADDRESS… -o cluster.yaml' writes one; or name one with --cluster FILE");
}

}  // namespace yoke

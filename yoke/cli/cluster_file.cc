#include "yoke/cli/cluster_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "yoke/base/error.h"
#include "yoke/base/log.h"
#include "yoke/base/text.h"
#include "yoke/lab/enter.h"
#include "yoke/launch/slurm_allocation.h"
#include "yoke/link/cabled_rails.h"
#include "yoke/link/discover_node.h"
#include "yoke/rank/world.h"
#include "yoke/report/given_commands.h"

namespace yoke::cli {
namespace fs = std::filesystem;

std::optional<fs::path> find_cluster_file(const Session& session) { return session.find_cluster_file(); }

std::optional<spec::Cluster> read_session_cluster(const Session& session) {
  if (session.cluster_read) return *session.cluster_read;
  const auto file = find_cluster_file(session);
  // A file that was named is what the user means, also inside a job.
  const auto allocation = session.cluster_file ? std::nullopt : launch::find_allocation();
  if (allocation) {
    const launch::AllocatedCluster made =
        launch::cluster_of(*allocation, file ? std::optional(spec::load_cluster(*file)) : std::nullopt);
    if (!made.note.empty() && !session.quiet) Session::note(made.note);
    session.cluster_read = std::make_shared<const spec::Cluster>(made.cluster);
    return *session.cluster_read;
  }
  if (!file) return std::nullopt;
  session.cluster_read = std::make_shared<const spec::Cluster>(spec::load_cluster(*file));
  log(LogLevel::kDebug, "cluster '{}' of {}: {} nodes", session.cluster_read->name, file->native(),
      session.cluster_read->nodes.size());
  return *session.cluster_read;
}

spec::Cluster load_session_cluster(const Session& session) {
  if (auto cluster = read_session_cluster(session)) return *std::move(cluster);
  for (const char* other : {"cluster.yml", "../cluster.yaml"}) {
    std::error_code ignored;
    if (fs::exists(other, ignored)) {
      throw Error(ErrorCode::kNotFound, fmt::format("there is no cluster.yaml in this folder, but {}", other),
                  fmt::format("add --cluster {}", other));
    }
  }
  throw Error(ErrorCode::kNotFound, "there is no cluster.yaml in this folder",
              "'yoke link discover -o cluster.yaml' writes one; or name one with --cluster FILE");
}

std::string session_options(const Session& session) {
  const std::vector<std::string> given = session.given_options();
  return given.empty() ? "" : fmt::format(" {}", fmt::join(given, " "));
}

void note_omitted_rails(const Session& session, const spec::Cluster& cluster) {
  if (cluster.nodes.size() < 2 || session.quiet) return;
  const std::string cure =
      report::commands_as_given("'yoke link discover -o cluster.yaml --force'", session.given_options());
  for (const spec::ClusterNode& node : cluster.nodes) {
    if (!node.rails.empty()) continue;
    fmt::print(stderr,
               "yoke: these nodes use the management network: the cluster file lists no rails of {}.\n"
               "      To find the fast ports: {}\n",
               node.name, cure);
    return;
  }
  const spec::ClusterNode* here = rank::find_own_node(cluster);
  if (!here) return;
  for (const link::CabledRail& rail : link::cabled_rails(link::inspect_interfaces({}))) {
    const auto names_it = [&](const auto& one) { return one.interface == rail.interface; };
    if (std::ranges::any_of(here->rails, names_it) || std::ranges::any_of(here->unused, names_it)) continue;
    fmt::print(stderr,
               "yoke: {} of {} has a cable and is not used: the cluster file does not list it.\n"
               "      To add it: {}\n",
               rail.interface, here->name, cure);
    return;
  }
}

}  // namespace yoke::cli

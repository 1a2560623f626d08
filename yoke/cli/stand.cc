// `yoke` alone: where you stand and the next step. It changes nothing.
#include <fmt/format.h>

#include "yoke/base/build_info.h"
#include "yoke/base/error.h"
#include "yoke/cli/cluster_file.h"
#include "yoke/cli/commands.h"

namespace yoke {

int say_where_you_stand(Session& session) {
  const auto file = find_cluster_file(session);
  std::string stand = "no cluster file in this folder";
  std::string next =
      "'yoke link discover ADDRESS… -o cluster.yaml' finds your machines and their cables; without any, 'yoke lab up' "
      "makes a virtual cluster here";
  if (file) {
    const Cluster cluster = load_cluster(*file);
    stand = fmt::format("cluster '{}' from {}: {} node{}, head {}", cluster.name, file->native(), cluster.nodes.size(),
                        cluster.nodes.size() == 1 ? "" : "s", cluster.nodes.front().name);
    next = "yoke cluster reach (does ssh reach every node?)";
  }
  if (session.json) {
    session.print_json(Document::map({{"stand", Document::string(stand)}, {"next", Document::string(next)}}));
  } else {
    session.print(fmt::format("yoke {}: one model, several machines.\n\nYou have: {}\nNext:     {}\n",
                              build_info().version, stand, next));
  }
  return kExitOk;
}

}  // namespace yoke

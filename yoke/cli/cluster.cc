// yoke cluster show: the cluster file read, checked and printed back.
#include <fmt/format.h>

#include "yoke/base/error.h"
#include "yoke/cli/cluster_file.h"
#include "yoke/cli/commands.h"

namespace yoke {
namespace {

CommandRow show_command() {
  return {.name = "show",
          .summary = "check the cluster file and print it in its canonical form",
          .description =
              "Reads the cluster file, checks it, and prints it back in its canonical form: the same cluster, "
              "every default written out. Nothing is contacted or changed.",
          .examples = {{"yoke cluster show", "cluster.yaml of this folder"},
                       {"yoke cluster show --cluster desk.yaml --json", "another file, for a script"}},
          .prepare = [](OptionTable&) -> Action {
            return [](Session& session) {
              const Cluster cluster = load_session_cluster(session);
              if (session.json) {
                session.print_json(to_json(cluster));
              } else {
                session.print(print_cluster(cluster));
              }
              return kExitOk;
            };
          },
          .place = CommandPlace::kHead};
}

}  // namespace

CommandRow cluster_command() {
  return {
      .name = "cluster",
      .summary = "print the cluster file; test whether its nodes can be reached",
      .description = "Looks at the cluster file, and whether its nodes can be reached.",
      .examples = {{"yoke cluster show", "check and print the file"}, {"yoke cluster reach", "try ssh to every node"}},
      .prepare = {},
      .subcommands = {show_command(), cluster_reach_command()}};
}

}  // namespace yoke

// yoke link: the halves between the nodes, made and measured. Each subcommand has a file of its own.
#include "yoke/cli/commands.h"

namespace yoke {

CommandRow link_command() {
  return {.name = "link",
          .summary = "find, make and measure the network between the nodes",
          .description =
              "The nodes of a cluster are joined by halves: independent paths, two for each cable of a DGX Spark. "
              "'discover' sees which port is cabled to which and writes the cluster file; 'test' measures each alone "
              "and all together; 'setup' writes addresses, MTU and what goes with them, step "
              "by step, and 'undo' takes all of it back.",
          .examples = {{"yoke link discover 192.168.1.21 192.168.1.22", "who is cabled to whom, as a cluster file"},
                       {"yoke link test", "bandwidth and latency of every half"},
                       {"yoke link setup --dry-run", "what would be changed"},
                       {"yoke link undo", "as it was before"}},
          .prepare = {},
          .subcommands = {link_discover_command(), link_setup_command(), link_test_command(), link_undo_command()}};
}

}  // namespace yoke

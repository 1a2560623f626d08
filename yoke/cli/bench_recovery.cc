// yoke bench recovery: kill a rank, and see how soon the group goes on.
#include "yoke/bench/history.h"
#include "yoke/bench/recovery.h"

#include <fmt/format.h>

#include "yoke/base/error.h"
#include "yoke/bench/size.h"
#include "yoke/cli/cluster_file.h"
#include "yoke/cli/commands.h"
#include "yoke/rank/start.h"

namespace yoke {
namespace {

struct RecoveryArguments {
  int ranks = 0;  // 0: one for each node, else two
  int rounds = 5;
  std::string size = "64K";
  bool no_history = false;
};

RecoveryOptions made_of(const RecoveryArguments& arguments) {
  const auto size = parse_size(arguments.size);
  if (!size) throw Error(ErrorCode::kUsage, "--size: " + size.error().message(), size.error().hint());
  return {.rounds = arguments.rounds, .size = *size};
}

int measure(Session& session, const RecoveryArguments& arguments) {
  const RecoveryOptions options = made_of(arguments);
  std::optional<Cluster> cluster;
  if (find_cluster_file(session)) cluster = load_session_cluster(session);
  const int ranks = rank_count(arguments.ranks, cluster, 2);
  const RecoveryResult result = measure_recovery(options, ranks, cluster);
  if (session.json) {
    session.print_json(to_json(result));
  } else {
    session.print(recovery_text(result));
  }
  if (!arguments.no_history) session.warn(keep_record(recovery_record(options, ranks, result)));
  return kExitOk;
}

}  // namespace

CommandRow bench_recovery_command() {
  return {.name = "recovery",
          .summary = "kill a rank, and time how soon the group goes on",
          .description =
              "Runs all-reduces over ranks (one for each node of the cluster, or two on this machine). In each round "
              "another rank is killed; the job starts it again, the group is rebuilt, and the time until the next "
              "right result is what is told, as the slowest survivor saw it.",
          .examples = {{"yoke bench recovery", "five rounds"},
                       {"yoke bench recovery --rounds 20 --ranks 4 --json", "more of everything, for a program"}},
          .prepare = [](OptionTable& table) -> Action {
            auto arguments = std::make_shared<RecoveryArguments>();
            table.value("--ranks", "N", "how many ranks in all (one a node, or two on this machine)", arguments->ranks,
                        {2, 256});
            table.value("--rounds", "N", "how many are killed, one after the other (5)", arguments->rounds, {1, 1000});
            table.value("--size", "SIZE", "of each all-reduce (64K)", arguments->size);
            table.flag("--no-history", "do not keep this run in the history", arguments->no_history);
            return [arguments](Session& session) { return measure(session, *arguments); };
          },
          .place = CommandPlace::kHead};
}

}  // namespace yoke

// yoke bench recovery: kill a rank, and see how soon the group goes on.
#include "yoke/bench/recovery.h"

#include <fmt/format.h>

#include <cstdio>

#include "yoke/base/error.h"
#include "yoke/base/hash.h"
#include "yoke/base/json.h"
#include "yoke/bench/size.h"
#include "yoke/cli/bench_keep.h"
#include "yoke/cli/bench_ranks.h"
#include "yoke/cli/cluster_file.h"
#include "yoke/cli/commands.h"
#include "yoke/job/job.h"
#include "yoke/rank/rank_part.h"

namespace yoke {
namespace {

constexpr const char* kRecoveryPart = "bench-recovery-rank";
constexpr const char* kRecoveryVariable = "YOKE_RECOVERY_TASK";

struct RecoveryArguments {
  int ranks = 0;  // 0: one for each node, else two
  int rounds = 5;
  std::string size = "64K";
  bool no_history = false;
};

RecoveryOptions made_of(const RecoveryArguments& arguments) {
  if (arguments.rounds < 1 || arguments.rounds > 1000)
    throw Error(ErrorCode::kUsage, fmt::format("--rounds cannot be {}", arguments.rounds), "1 to 1000");
  if (arguments.ranks < 0 || arguments.ranks == 1 || arguments.ranks > 256)
    throw Error(ErrorCode::kUsage, fmt::format("--ranks cannot be {}", arguments.ranks),
                "2 to 256: somebody must survive");
  const auto size = parse_size(arguments.size);
  if (!size) throw Error(ErrorCode::kUsage, "--size: " + size.error().message(), size.error().hint());
  return {.rounds = arguments.rounds, .size = *size};
}

int measure(Session& session, const RecoveryArguments& arguments) {
  const RecoveryOptions options = made_of(arguments);
  RankRequest request{.ranks = arguments.ranks};
  if (find_cluster_file(session)) request.cluster = load_session_cluster(session);
  std::string told;
  JobSpec spec{.name = fmt::format("bench-recovery-{}", random_token_hex(2)),
               .nodes = spread_ranks(request.cluster ? request.cluster->nodes : std::vector{this_machine()},
                                     rank_count(request)),
               .argv = {"yoke", kRecoveryPart},
               .own_program = true,
               .environment = {{kRecoveryVariable, print_json(to_json(options), JsonLayout::kOneLine)}},
               .policy = JobPolicy::kRestart,
               .restarts_most = options.rounds,
               .output_form = OutputForm::kFirstRankRaw};
  spec.on_output = [&](const RankOutput& output) {
    if (output.rank == 0 && output.stream == OutputStream::kOut) {
      told += output.text;
    } else {
      fmt::print(stderr, "{}/{} | {}\n", output.node, output.rank, output.text);
    }
  };
  Job job(std::move(spec));
  const JobOutcome outcome = job.wait();
  if (outcome.cause) throw outcome.cause->error;
  const RecoveryResult result = recovery_from_json(parse_json(told, "what rank 0 wrote"));
  if (result.size_most)
    throw Error(ErrorCode::kExhausted,
                fmt::format("the nodes have no memory for buffers of {}", to_string(options.size)),
                fmt::format("--size {}M is the most", result.size_most->value >> 20));
  if (session.json) {
    session.print_json(to_json(result));
  } else {
    session.print(recovery_text(result));
  }
  if (!arguments.no_history) keep(recovery_record(options, rank_count(request), result));
  return kExitOk;
}

}  // namespace

std::optional<int> run_recovery_part(const std::vector<std::string>& arguments) {
  if (arguments != std::vector<std::string>{kRecoveryPart}) return std::nullopt;
  return run_rank_part([] {
    const Environment environment = environment_now();
    const auto place = find_rank_place(environment);
    const auto task = environment.find(kRecoveryVariable);
    if (!place || task == environment.end()) {
      throw Error(ErrorCode::kUsage, fmt::format("{} is started by 'yoke bench recovery', not by hand", kRecoveryPart));
    }
    const auto world = join_world(*place, {});
    const RecoveryResult result =
        run_recovery(*world, recovery_options_from_json(parse_json(task->second, kRecoveryVariable)));
    if (place->rank == 0) fmt::print("{}\n", print_json(to_json(result), JsonLayout::kOneLine));
  });
}

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
            table.value("--ranks", "N", "how many ranks in all (one a node, or two on this machine)", arguments->ranks);
            table.value("--rounds", "N", "how many are killed, one after the other (5)", arguments->rounds);
            table.value("--size", "SIZE", "of each all-reduce (64K)", arguments->size);
            table.flag("--no-history", "do not keep this run in the history", arguments->no_history);
            return [arguments](Session& session) { return measure(session, *arguments); };
          },
          .place = CommandPlace::kHead};
}

}  // namespace yoke

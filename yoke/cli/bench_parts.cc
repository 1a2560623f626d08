// The smaller parts of `yoke bench`: memory and arithmetic of this machine, recovery, and the constants of plans.
#include <fmt/format.h>

#include "yoke/base/clock.h"
#include "yoke/base/error.h"
#include "yoke/base/file_tree.h"
#include "yoke/base/interrupt.h"
#include "yoke/base/progress.h"
#include "yoke/bench/calibrate_ranks.h"
#include "yoke/bench/calibration_files.h"
#include "yoke/bench/collective_ranks.h"
#include "yoke/bench/history.h"
#include "yoke/bench/machine_facts.h"
#include "yoke/bench/matmul_rate.h"
#include "yoke/bench/memory_rate.h"
#include "yoke/bench/recovery.h"
#include "yoke/bench/size.h"
#include "yoke/cli/bench_options.h"
#include "yoke/cli/cluster_file.h"
#include "yoke/cli/commands.h"
#include "yoke/predict/predicted.h"
#include "yoke/rank/start.h"

namespace yoke::cli {

// yoke bench memory and yoke bench matmul: the ceilings of this machine.

namespace {

struct MachineArguments {
  int cores = 0;  // 0: all
  std::optional<int> rounds;
  std::string block;
  int depth = 512;
  bool no_history = false;
};

std::vector<int> chosen_cores(int wanted) {
  std::vector<int> cores = bench::usable_cores();
  if (wanted < 0 || static_cast<std::size_t>(wanted) > cores.size())
    throw Error(ErrorCode::kUsage, fmt::format("--cores {}: there are {}", wanted, cores.size()),
                fmt::format("1 to {}", cores.size()));
  if (wanted > 0) cores.resize(static_cast<std::size_t>(wanted));
  return cores;
}

void declare_shared(OptionTable& table, MachineArguments& arguments) {
  table.value("--cores", "N", "use the first N cores (all that the system gives us)", arguments.cores);
  table.value("--rounds", "N", "rounds that are timed", arguments.rounds, {1, 100'000});
  table.flag("--no-history", "do not keep this run in the history", arguments.no_history);
}

template <class Result>
int show(Session& session, const MachineArguments& arguments, const Result& result, const std::string& text) {
  bench::RunRecord record = bench::record_of(result);
  const std::string predicted = arguments.cores == 0 ? predict::add_predicted(record, predict::predict_machine()) : "";
  if (session.json) {
    session.print_json(to_json(result));
  } else {
    session.print(text + predicted);
  }
  if (!arguments.no_history) session.warn(bench::keep_record(record));
  return kExitOk;
}

int measure_memory_here(Session& session, const MachineArguments& arguments) {
  bench::MemoryOptions options{.rounds = arguments.rounds.value_or(15), .cores = chosen_cores(arguments.cores)};
  if (!arguments.block.empty()) {
    const auto block = bench::parse_size(arguments.block);
    if (!block) throw Error(ErrorCode::kUsage, "--block: " + block.error().message(), block.error().hint());
    if (block->value < 1 << 20 || block->value > 64LL << 30)
      throw Error(ErrorCode::kUsage, fmt::format("--block cannot be {} bytes", block->value), "1M to 64G");
    options.block = *block;
  }
  const bench::MemoryRates rates = bench::measure_memory(options);
  return show(session, arguments, rates, bench::memory_text(rates));
}

int measure_matmul_here(Session& session, const MachineArguments& arguments) {
  const std::vector<bench::MatmulRate> rates = bench::measure_matmul(
      {.depth = arguments.depth, .rounds = arguments.rounds.value_or(7), .cores = chosen_cores(arguments.cores)});
  return show(session, arguments, rates, bench::matmul_text(rates));
}

CommandRow memory_command() {
  return {.name = "memory",
          .summary = "what this machine's memory carries: read and copy, one core and all",
          .description =
              "Reads and copies blocks far larger than the caches, by one core and by all, and checks them. "
              "A model that is read from memory for every token cannot be faster than this.",
          .examples = {{"yoke bench memory", "all cores"}, {"yoke bench memory --block 1G --rounds 30", "longer"}},
          .prepare = [](OptionTable& table) -> Action {
            auto arguments = std::make_shared<MachineArguments>();
            declare_shared(table, *arguments);
            table.value("--block", "SIZE", "of all threads together (eight times the last cache)", arguments->block);
            return [arguments](Session& session) { return measure_memory_here(session, *arguments); };
          }};
}

CommandRow matmul_command() {
  return {.name = "matmul",
          .summary = "what this machine's arithmetic does: f32, bf16 and int8 matrix products",
          .description =
              "Multiplies packed matrices with the best instructions that this processor has, by one core "
              "and by all, and checks each kernel against a plain loop first: the practical ceiling.",
          .examples = {{"yoke bench matmul", "all cores"}, {"yoke bench matmul --cores 1 --json", "for a script"}},
          .prepare = [](OptionTable& table) -> Action {
            auto arguments = std::make_shared<MachineArguments>();
            declare_shared(table, *arguments);
            table.value("--size", "N", "of the square matrices (512)", arguments->depth, {16, 4096});
            return [arguments](Session& session) { return measure_matmul_here(session, *arguments); };
          }};
}

}  // namespace

std::vector<CommandRow> bench_machine_commands() { return {memory_command(), matmul_command()}; }

// yoke bench recovery: kill a rank, and see how soon the group goes on.

namespace {

struct RecoveryArguments {
  int ranks = 0;  // 0: one for each node, else two
  int rounds = 5;
  std::string size = "64K";
  bool no_history = false;
};

bench::RecoveryOptions made_of(const RecoveryArguments& arguments) {
  const auto size = bench::parse_size(arguments.size);
  if (!size) throw Error(ErrorCode::kUsage, "--size: " + size.error().message(), size.error().hint());
  return {.rounds = arguments.rounds, .size = *size};
}

int measure(Session& session, const RecoveryArguments& arguments) {
  const bench::RecoveryOptions options = made_of(arguments);
  std::optional<spec::Cluster> cluster;
  if (find_cluster_file(session)) cluster = load_session_cluster(session);
  const int ranks = rank::rank_count(arguments.ranks, cluster, 2);
  const bench::RecoveryResult result = bench::measure_recovery(options, ranks, cluster);
  if (session.json) {
    session.print_json(bench::to_json(result));
  } else {
    session.print(bench::recovery_text(result));
  }
  if (!arguments.no_history) session.warn(bench::keep_record(bench::recovery_record(options, ranks, result)));
  return kExitOk;
}

}  // namespace

CommandRow bench_recovery_command() {
  return {.name = "recovery",
          .summary = "kill a rank, and time how soon the group goes on",
          .description =
              "Runs all-reduces over ranks (one for each node of the cluster, or two on this machine). In each round "
              "another rank is killed; the job starts it again, the group is rebuilt, and the time until the next "
              "right result is the figure, as the slowest survivor saw it.",
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

// yoke bench calibrate: measure the constants of plans on these machines.

namespace {

struct CalibrateArguments {
  int threads = 0;
  std::string transport = "auto";
  std::filesystem::path file;
  bool no_history = false;
};

// Sizes that engines send: from a token of a small model to a chunk of a large one's prompt.
std::optional<bench::CollectiveRun> measure_all_reduce(const Session& session, const CalibrateArguments& arguments,
                                                       const std::optional<spec::Cluster>& cluster) {
  if (!cluster || cluster->nodes.size() < 2) return std::nullopt;
  BenchArguments bench;
  bench.size_min = "256";
  bench.size_max = "4M";
  bench.factor = 4;
  bench.iterations = 60;
  bench.transport = arguments.transport;
  bench::CollectiveOptions options = made_of(bench, comm::CollectiveKind::kAllReduce);
  const bench::RankRequest request = request_of(session, bench, 0, options);
  bench::CollectiveRun run = bench::run_ranks(request, options, nullptr);
  throw_if_interrupted();
  if (run.failure) throw bench::to_error(*run.failure).in("measuring the all-reduce");
  return run;
}

int calibrate(Session& session, const CalibrateArguments& arguments) {
  std::optional<spec::Cluster> cluster;
  if (find_cluster_file(session)) cluster = load_session_cluster(session);
  // Before anything is measured: a name that cannot be written must not cost a minute.
  const std::string name = cluster ? cluster->name : bench::facts_of_this_machine(DiskTree()).host;
  const std::filesystem::path file = arguments.file.empty() ? predict::calibration_place(cluster) : arguments.file;
  std::optional<Progress> progress(std::in_place, "calibrating", 27);
  std::int64_t done = 0;
  const auto report = [&](const std::string& what) { progress->update(done++, what); };
  report("all-reduce");
  const auto all_reduce = measure_all_reduce(session, arguments, cluster);
  const bench::CalibrationSamples samples =
      bench::measure_samples({.threads = arguments.threads, .cluster = cluster, .on_progress = report});
  progress.reset();
  plan::Calibration calibration = bench::calibration_of(samples, all_reduce);
  calibration.name = name;
  calibration.time = utc_now();
  calibration.processor = bench::facts_of_this_machine(DiskTree()).processor;
  const auto check = bench::check_calibration(samples, calibration);
  bench::write_calibration(calibration, file);
  if (!arguments.no_history) session.warn(bench::keep_record(bench::calibration_record(calibration, check)));
  if (session.json) {
    Document document = Document::map({{"calibration", plan::to_json(calibration)},
                                       {"file", Document::string(file.native())},
                                       {"samples", to_json(samples)}});
    if (check) {
      document.add("check", Document::map({{"predicted_tokens_per_second", Document::number(check->predicted)},
                                           {"measured_tokens_per_second", Document::number(check->measured)}}));
    }
    session.print_json(document);
    return kExitOk;
  }
  session.print(bench::calibration_text(calibration, check));
  session.print(fmt::format("Kept in {}. Plans of {} use it from now on.\n", file.native(),
                            cluster ? fmt::format("cluster '{}'", name) : "this machine (--on here)"));
  return kExitOk;
}

}  // namespace

CommandRow bench_calibrate_command() {
  return {.name = "calibrate",
          .summary = "measure the constants of 'yoke plan' on these machines",
          .description =
              "Measures on every node at once what plans else take from the catalogue and from published "
              "measurements: memory and arithmetic, the all-reduce between the nodes, and what yoke's engine needs "
              "for a weight of each width, a cached token, a layer and a step. The engine runs small models that are "
              "made for it and removed. Plans of this cluster, or of this machine, then use what was measured and "
              "say so. GPUs: only what yoke can run there is measured (memory, and NCCL with --transport nccl).",
          .examples = {{"yoke bench calibrate", "this machine, or the cluster of this folder"},
                       {"yoke bench calibrate --threads 1 -o desk.json", "one thread a rank, into a file"},
                       {"yoke plan models/nano --on here", "uses it"}},
          .prepare = [](OptionTable& table) -> Action {
            auto arguments = std::make_shared<CalibrateArguments>();
            table.value("--threads", "N", "of each rank (the node's processors)", arguments->threads, {1, 1024});
            table.choice("--transport", "KIND", "what carries the all-reduce: direct, mpi or nccl (auto)",
                         {"auto", "direct", "mpi", "nccl"}, arguments->transport);
            table.value("-o,--output", "FILE", "where to write it (the user's data folder); overwritten",
                        arguments->file);
            table.flag("--no-history", "do not keep this run in the history", arguments->no_history);
            return [arguments](Session& session) { return calibrate(session, *arguments); };
          },
          .place = CommandPlace::kHead};
}

}  // namespace yoke::cli

// yoke bench calibrate: measure the constants of plans on these machines.
#include <fmt/format.h>

#include <memory>

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
#include "yoke/cli/bench_options.h"
#include "yoke/cli/cluster_file.h"
#include "yoke/cli/commands.h"
#include "yoke/predict/predicted.h"

namespace yoke::cli {
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
  bench.least = "256";
  bench.most = "4M";
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

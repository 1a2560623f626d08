// yoke bench all-reduce, and each other collective: parse, run the ranks, print, keep.
#include <fmt/format.h>

#include "yoke/base/error.h"
#include "yoke/base/fields.h"
#include "yoke/base/file_tree.h"
#include "yoke/base/files.h"
#include "yoke/base/interrupt.h"
#include "yoke/base/json.h"
#include "yoke/base/text.h"
#include "yoke/bench/collective_ranks.h"
#include "yoke/bench/history.h"
#include "yoke/bench/perf_files.h"
#include "yoke/bench/perf_table.h"
#include "yoke/bench/report_page.h"
#include "yoke/bench/shape.h"
#include "yoke/bench/trace_file.h"
#include "yoke/cli/bench_options.h"
#include "yoke/cli/cluster_file.h"
#include "yoke/cli/commands.h"
#include "yoke/predict/predicted.h"
#include "yoke/report/svg_chart.h"

namespace yoke::cli {
namespace {

// A file that cannot be written must not take the measurement with it: all else is done first.
class Outputs {
 public:
  explicit Outputs(const Session& session) : session_(session) {}

  void write(std::string_view what, const std::filesystem::path& file, const std::string& content) {
    if (file.empty()) return;
    try {
      const std::filesystem::path taken = bench::write_new_file(file, content);
      if (!session_.json) session_.print(fmt::format("# Writing {} output to {}\n", what, taken.native()));
    } catch (const Error& error) {
      if (!failure_) failure_ = error;
    }
  }
  void throw_failure() const {
    if (failure_) throw Error(*failure_);
  }

 private:
  const Session& session_;
  std::optional<Error> failure_;
};

// As typed, which the kernel keeps: argument by argument, a zero behind each.
std::vector<std::string> command_line() {
  std::vector<std::string> arguments = split(DiskTree().read("/proc/self/cmdline").value_or(""), '\0');
  if (!arguments.empty() && arguments.back().empty()) arguments.pop_back();
  return arguments;
}

// Both placements of a row have the same prediction.
bench::RunRecord record_with(const bench::CollectiveRun& run, const std::optional<spec::Cluster>& cluster,
                             const std::vector<std::optional<double>>& predicted) {
  bench::RunRecord record = bench::record_of(run, cluster ? cluster->name : "");
  for (bench::RecordRow& row : record.rows) {
    for (std::size_t i = 0; i < predicted.size(); ++i) {
      if (run.rows[i].size == row.size) row.predicted = predicted[i];
    }
  }
  return record;
}

// In the form of nccl-tests what is no row begins with #.
std::string as_comment(const std::string& text) {
  std::string lines;
  for (const std::string& line : split(text, '\n')) lines += "# " + line + "\n";
  return lines;
}

int finish(Session& session, const BenchArguments& arguments, bench::CollectiveRun run,
           const std::optional<spec::Cluster>& cluster) {
  const std::vector<spec::RankTrace> traces = std::exchange(run.traces, {});
  Outputs outputs(session);
  outputs.write("JSON", arguments.json_file, print_json(bench::perf_json(run, command_line())) + "\n");
  outputs.write("CSV", arguments.csv_file, bench::perf_csv(run));
  if (!arguments.plot_file.empty())
    outputs.write("SVG", arguments.plot_file, report::render_svg(bench::bandwidth_chart(run)));
  // A run that was stopped is neither compared nor kept; with -N 0, which has no other end, it is.
  const bool stopped = interrupt_signal() != 0 && arguments.cycles != 0;
  const std::vector<std::optional<double>> predicted = predict::predict_all_reduce(run, cluster);
  if (!session.json && !stopped) session.print(predict::predicted_text(run, predicted));
  if (!arguments.no_history && !stopped && !run.rows.empty()) {
    session.warn(bench::keep_record(record_with(run, cluster, predicted)));
  }
  const auto ended_well = try_to([&] {
    throw_if_interrupted();
    if (run.failure) throw bench::to_error(*run.failure);
    outputs.throw_failure();
  });
  std::optional<bench::WrittenTrace> trace;
  if (!arguments.trace_file.empty() && ended_well) trace.emplace(arguments.trace_file, traces);
  if (trace && !session.json) session.print(as_comment(trace->text()));
  if (session.json) {
    Document document = bench::to_json(run);
    if (trace) document.add("trace", trace->summary());
    if (!predicted.empty()) document.add("predicted_us", to_document(predicted));
    if (!ended_well) document.add("error", error_json(ended_well.error(), exit_status_of(ended_well.error())));
    session.print_json(document);
    session.json = false;  // one document: what is thrown is in it
  }
  if (!ended_well) throw Error(ended_well.error());
  return run.passed() ? kExitOk : kExitFindings;
}

// A launcher that started one process only (a shell of srun, a container with torchrun's variables) has no ranks that
// could meet: we start our own. Not under mpirun, which nobody starts for anything but its ranks.
bool is_one_of_ranks(const job::RankPlace& place) {
  return place.size > 1 || place.origin == job::RankOrigin::kOpenMpi || place.origin == job::RankOrigin::kMpich;
}

int measure(Session& session, const BenchArguments& arguments, comm::CollectiveKind kind) {
  bench::check_trace_file(arguments.trace_file);
  bench::CollectiveOptions options = made_of(arguments, kind);
  bench::TableSink table([&](std::string_view text) { session.print(text); });
  bench::CollectiveSink* sink = session.json ? nullptr : &table;
  if (const auto place = job::find_rank_place(job::environment_now()); place && is_one_of_ranks(*place)) {
    bench::check_launched(*place, launched_request_of(arguments));
    const bench::RankRequest request = request_of(session, arguments, place->size, options);
    const auto run = bench::run_as_rank(*place, request, options, sink);
    return run ? finish(session, arguments, *run, std::nullopt) : kExitOk;
  }
  const auto cluster = read_session_cluster(session);
  const int ranks = ranks_of(arguments, cluster ? cluster->nodes.size() : 1);
  const bench::RankRequest request = request_of(session, arguments, ranks, options);
  if (cluster && rank_count(request) > 1 && request.transport != rank::Transport::kThreads) {
    note_omitted_rails(session, *cluster);
  }
  return finish(session, arguments, bench::run_ranks(request, options, sink), request.cluster);
}

CommandRow collective_command(comm::CollectiveKind kind) {
  const std::string name(comm::to_string(kind));
  const std::string program(bench::traits_of(kind).program);
  return {
      .name = name,
      .summary = fmt::format("time {} in the form of {}", name, program),
      .description = fmt::format(
          "Times {} over ranks (processes on the nodes of the cluster, or on this machine) and prints the table of "
          "nccl-tests' {}, with its options; lines that begin with # "
          "show more: the transport, the spread of iterations, each rank's time and which rank is late, and a verdict "
          "against the link. Every result is checked (#wrong). Exit status 1 where something was wrong or slower "
          "than NCCL_TESTS_MIN_BW asks. docs/performance.md defines every number.",
          name, program),
      .examples = {{fmt::format("yoke bench {} -b 8 -e 128M -f 2", name), "sizes from 8 bytes, doubled, to 128 MiB"},
                   {fmt::format("yoke bench {} -b 64K -e 64K -n 1000 --ranks 4", name), "one size often, 4 ranks"},
                   {fmt::format("mpirun -np 4 yoke bench {} -b 1M -e 1M", name), "ranks that MPI starts, over MPI"}},
      .prepare = [kind](OptionTable& table) -> Action {
        auto arguments = std::make_shared<BenchArguments>();
        declare_collective(table, *arguments);
        return [arguments, kind](Session& session) { return measure(session, *arguments, kind); };
      },
      .place = CommandPlace::kHead,
      .aliases = {program}};
}

}  // namespace

CommandRow bench_command() {
  using K = comm::CollectiveKind;
  std::vector<CommandRow> commands;
  for (const K kind : {K::kAllReduce, K::kAllGather, K::kReduceScatter, K::kBroadcast, K::kReduce, K::kGather,
                       K::kScatter, K::kAllToAll, K::kSendReceive})
    commands.push_back(collective_command(kind));
  for (CommandRow& command : bench_machine_commands()) commands.push_back(std::move(command));
  commands.push_back(bench_scaling_command());
  commands.push_back(bench_recovery_command());
  commands.push_back(bench_engine_command());
  commands.push_back(bench_model_command());
  commands.push_back(bench_serve_command());
  commands.push_back(bench_calibrate_command());
  for (CommandRow& command : bench_history_commands()) commands.push_back(std::move(command));
  return {
      .name = "bench",
      .summary = "measure collectives, memory and arithmetic, and compare with before",
      .description =
          "Measures what decides how fast a model runs: collectives between ranks (in the form of nccl-tests, whose "
          "program names are taken too), memory and matrix products of this machine. Every run is kept in a "
          "history that can be listed, compared and shown as a page.",
      .examples = {{"yoke bench all-reduce -b 8K -e 64M -f 2", "the collective that tensor parallel lives by"},
                   {"yoke bench memory", "what the memory carries"},
                   {"yoke bench compare last-1 last", "did the last change help?"}},
      .prepare = {},
      .subcommands = std::move(commands)};
}

}  // namespace yoke::cli

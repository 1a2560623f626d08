// yoke bench scaling: how much of one node's rate remains over several, for all-reduce and for a model.
#include <fmt/format.h>

#include "yoke/base/error.h"
#include "yoke/base/interrupt.h"
#include "yoke/bench/collective_ranks.h"
#include "yoke/bench/history.h"
#include "yoke/bench/model_ranks.h"
#include "yoke/bench/scaling.h"
#include "yoke/cli/bench_options.h"
#include "yoke/cli/cluster_file.h"
#include "yoke/cli/commands.h"
#include "yoke/report/table.h"
#include "yoke/spec/hardware.h"
#include "yoke/weights/model_folder.h"

namespace yoke::cli {

namespace {

struct ScalingArguments {
  BenchArguments bench;
  std::string ranks = "1,2,4";
  std::string nodes;  // instead: with all ranks of these numbers of nodes
  std::string model;  // also: its tokens per second
};

// The first nodes of the cluster.
spec::Cluster first_nodes_of(const Session& session, int nodes) {
  spec::Cluster cluster = load_session_cluster(session);
  if (nodes > static_cast<int>(cluster.nodes.size())) {
    throw Error(ErrorCode::kUsage, fmt::format("--nodes {}: the cluster has {}", nodes, cluster.nodes.size()),
                "give numbers of nodes that it has");
  }
  return spec::first_nodes(std::move(cluster), static_cast<std::size_t>(nodes));
}

// Those, with one rank for each GPU where the catalogue knows the machines, else one each.
bench::RankRequest request_of_nodes(const Session& session, const ScalingArguments& arguments, int nodes,
                                    bench::CollectiveOptions& options) {
  spec::Cluster cluster = first_nodes_of(session, nodes);
  const spec::Hardware* hardware = cluster.hardware ? spec::find_hardware(*cluster.hardware) : nullptr;
  const int each = hardware && !cluster.lab ? hardware->gpus : 1;
  Session part = session;
  part.cluster_read = std::make_shared<const spec::Cluster>(std::move(cluster));
  options.limit.reset();  // another for each number
  return request_of(part, arguments.bench, nodes * each, options);
}

// One rank on each node, as 'yoke run' has them; or so many on this machine.
struct ModelScaling {
  int count = 1;                   // of nodes or ranks
  double prefill = 0, decode = 0;  // tokens per second
  double efficiency = 1;           // of decode, against as many times that of the fewest
};

std::vector<ModelScaling> measure_models(const Session& session, const ScalingArguments& arguments,
                                         const std::vector<int>& counts) {
  std::vector<ModelScaling> rows;
  for (const int count : counts) {
    bench::ModelRequest request{
        .options = {.folder = weights::find_model_folder(arguments.model), .prompt = 128, .tokens = 64},
        .ranks = count};
    if (!arguments.nodes.empty()) request.cluster = first_nodes_of(session, count);
    const bench::ModelSpeed speed = bench::run_model_bench(request).speed;
    throw_if_interrupted();
    ModelScaling row{.count = count, .prefill = speed.prefill.median(), .decode = speed.decode.median()};
    if (!rows.empty()) row.efficiency = row.decode / rows.front().decode * rows.front().count / count;
    rows.push_back(row);
  }
  return rows;
}

std::string models_text(const ScalingArguments& arguments, const std::vector<ModelScaling>& rows) {
  report::Table table{
      .columns = {{.header = arguments.nodes.empty() ? "ranks" : "nodes", .align = report::TextAlign::kRight},
                  {.header = "prompt", .align = report::TextAlign::kRight},
                  {.header = "answer", .align = report::TextAlign::kRight},
                  {.header = "efficiency", .align = report::TextAlign::kRight}},
      .footnotes = {"tokens per second of one request; efficiency: of answers, against as many times the first row"}};
  for (const ModelScaling& row : rows) {
    table.rows.push_back({fmt::format("{}", row.count), fmt::format("{:.3g}", row.prefill),
                          fmt::format("{:.3g}", row.decode), fmt::format("{:.0f}%", 100 * row.efficiency)});
  }
  return fmt::format("\n{}\n{}", arguments.model, report::render_text(table));
}

Document models_json(const std::vector<ModelScaling>& rows) {
  Document list = Document::list();
  for (const ModelScaling& row : rows) {
    list.items.push_back(Document::map({{"count", Document::number(std::int64_t{row.count})},
                                        {"prefill_tokens_per_second", Document::number(row.prefill)},
                                        {"decode_tokens_per_second", Document::number(row.decode)},
                                        {"efficiency", Document::number(row.efficiency)}}));
  }
  return list;
}

int measure_scaling(Session& session, const ScalingArguments& arguments) {
  const bool by_nodes = !arguments.nodes.empty();
  const std::vector<int> counts = bench::parse_rank_counts(by_nodes ? arguments.nodes : arguments.ranks);
  bench::CollectiveOptions options = made_of(arguments.bench, comm::CollectiveKind::kAllReduce);
  std::vector<bench::RankRequest> requests;
  for (const int count : counts) {
    requests.push_back(by_nodes ? request_of_nodes(session, arguments, count, options)
                                : request_of(session, arguments.bench, count, options));
  }
  std::vector<bench::CollectiveRun> runs;
  bool passed = true;
  for (const bench::RankRequest& request : requests) {
    const bench::CollectiveRun& run = runs.emplace_back(bench::run_ranks(request, options, nullptr));
    throw_if_interrupted();
    if (run.failure) throw bench::to_error(*run.failure).in(fmt::format("measuring {} ranks", request.ranks));
    const bool is_base = run.ranks.size() == 1;  // crosses no link, and is not meant to
    passed = passed && (is_base ? run.wrong() == 0 : run.passed());
  }
  std::vector<ModelScaling> models;
  if (!arguments.model.empty()) models = measure_models(session, arguments, counts);
  if (session.json) {
    Document document = bench::scaling_json(runs);
    if (!models.empty()) document.add("model", models_json(models));
    session.print_json(document);
  } else {
    session.print(bench::scaling_text(runs));
    if (!models.empty()) session.print(models_text(arguments, models));
    if (!passed) session.print("Some results were wrong.\n");
  }
  if (!arguments.bench.no_history) session.warn(bench::keep_record(bench::scaling_record(runs)));
  return passed ? kExitOk : kExitFindings;
}

}  // namespace

CommandRow bench_scaling_command() {
  return {.name = "scaling",
          .summary = "all-reduce with 1, 2, 4 ranks: how much of the bandwidth remains",
          .description =
              "Times all-reduce with more and more ranks and compares the bus bandwidth with that of the "
              "fewest ranks above one: a table of efficiency and a plot. --model also measures tokens per second.",
          .examples = {{"yoke bench scaling", "1, 2 and 4 ranks, 32 MiB"},
                       {"yoke bench scaling --ranks 2,4,8 -b 64K -e 16M -f 16", "more ranks, three sizes"},
                       {"yoke bench scaling --nodes 1,2", "one node, then two, with all of their GPUs"}},
          .prepare = [](OptionTable& table) -> Action {
            auto arguments = std::make_shared<ScalingArguments>();
            table.value("--ranks", "LIST", "numbers of ranks, rising (1,2,4)", arguments->ranks);
            table.value("--nodes", "LIST", "numbers of nodes instead, with a rank for each of their GPUs",
                        arguments->nodes);
            table.value("--model", "DIR", "also a model's tokens per second, one rank on each node", arguments->model);
            declare_sizes(table, arguments->bench);
            return [arguments](Session& session) { return measure_scaling(session, *arguments); };
          },
          .place = CommandPlace::kHead};
}

}  // namespace yoke::cli

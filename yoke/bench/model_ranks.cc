#include "yoke/bench/model_ranks.h"

#include <fmt/format.h>

#include "yoke/base/error.h"
#include "yoke/base/fields.h"
#include "yoke/base/json.h"
#include "yoke/base/process.h"
#include "yoke/comm/local/local.h"
#include "yoke/rank/local_world.h"
#include "yoke/rank/start.h"

namespace yoke::bench {
namespace {

constexpr const char* kModelKind = "bench-model";

Document options_json(const ModelSpeedOptions& options) {
  Document out = Document::map({{"folder", Document::string(options.folder.native())},
                                {"backend", Document::string(options.backend)},
                                {"exact", Document::boolean(options.exact)},
                                {"threads", Document::number(std::int64_t{options.threads})},
                                {"prompt", Document::number(options.prompt)},
                                {"tokens", Document::number(options.tokens)},
                                {"context", Document::number(options.context)},
                                {"batch", Document::number(std::int64_t{options.batch})},
                                {"rounds", Document::number(std::int64_t{options.rounds})},
                                {"part", Document::number(std::int64_t{options.part})},
                                {"parts", Document::number(std::int64_t{options.parts})}});
  if (options.made) {
    out.add("shape", Document::string(std::string(options.made->shape.name)));
    out.add("layers", Document::number(options.made->shape.layers));
    out.add("format", to_document(options.made->format));
    out.add("head", Document::number(static_cast<std::int64_t>(options.made->head)));
  }
  return out;
}

template <class T>
T value_of(const Document& task, std::string_view key) {
  const Document* const found = task.find(key);
  if (found == nullptr) throw Error(ErrorCode::kInvalid, fmt::format("{}: no {}", task.where, key));
  return from_json<T>(*found);
}

ModelSpeedOptions read_options(const Document& task) {
  ModelSpeedOptions options{.folder = value_of<std::string>(task, "folder"),
                            .backend = value_of<std::string>(task, "backend"),
                            .exact = value_of<bool>(task, "exact"),
                            .threads = value_of<int>(task, "threads"),
                            .prompt = value_of<std::int64_t>(task, "prompt"),
                            .tokens = value_of<std::int64_t>(task, "tokens"),
                            .context = value_of<std::int64_t>(task, "context"),
                            .batch = value_of<int>(task, "batch"),
                            .rounds = value_of<int>(task, "rounds"),
                            .part = value_of<int>(task, "part"),
                            .parts = value_of<int>(task, "parts")};
  if (task.find("shape") == nullptr) return options;
  const spec::ModelShape* const shape = spec::find_model_shape(value_of<std::string>(task, "shape"));
  if (shape == nullptr) throw Error(ErrorCode::kInvalid, fmt::format("{}: unknown shape", task.where));
  options.made = weights::MakeModelOptions{.shape = *shape,
                                           .format = from_json<weights::MakeFormat>(*task.find("format")),
                                           .head = static_cast<weights::HeadFormat>(value_of<int>(task, "head"))};
  options.made->shape.layers = value_of<std::int64_t>(task, "layers");
  return options;
}

void run_model_rank(const job::RankPlace& place, const Document& task) {
  const ModelSpeedOptions options = read_options(task);
  const auto world = rank::join_world(place, {});
  const ModelSpeed speed = measure_model_speed(*world, options);
  if (place.rank == 0) fmt::print("{}\n", print_json(to_json(speed), JsonLayout::kOneLine));
}

ModelSpeed run_model_ranks(const ModelRequest& request) {
  std::string output;
  rank::Ranks::start({.name = kModelKind,
                      .task = {.kind = kModelKind, .content = options_json(request.options)},
                      .ranks = request.ranks,
                      .cluster = request.cluster,
                      .on_output = [&](std::string_view bytes) { output += bytes; }})
      ->wait();
  return from_json<ModelSpeed>(parse_json(output, "what rank 0 wrote"));
}

void run_peer(const ModelPeer& peer, const ModelSpeedOptions& options, PeerRates& rates) {
  const int threads = options.threads;
  std::vector<std::string> argv = {peer.program.native(),
                                   "-m",
                                   peer.model.native(),
                                   "-r",
                                   "1",
                                   "-o",
                                   "json",
                                   "-p",
                                   fmt::format("{}", options.prompt),
                                   "-n",
                                   fmt::format("{}", options.tokens),
                                   "-d",
                                   fmt::format("{}", options.context)};
  if (threads > 0) argv.insert(argv.end(), {"-t", fmt::format("{}", threads)});
  const Outcome outcome = run({.argv = argv, .timeout = Seconds{1200}});
  if (!outcome.ok()) {
    throw Error(ErrorCode::kUnavailable, fmt::format("{} failed", peer.program.native()),
                fmt::format("run it by hand to see why: {}", to_string(Command{.argv = argv})));
  }
  const PeerRates once = read_llama_bench(outcome.out);
  rates.prefill.insert(rates.prefill.end(), once.prefill.begin(), once.prefill.end());
  rates.decode.insert(rates.decode.end(), once.decode.begin(), once.decode.end());
}

}  // namespace

PeerRates read_llama_bench(const std::string& json) {
  const Document document = parse_json(json, "the output of llama-bench");
  PeerRates rates;
  for (const Document& test : document.items) {
    const auto prompt = value_of<std::int64_t>(test, "n_prompt");
    const auto made = value_of<std::int64_t>(test, "n_gen");
    const auto speed = value_of<double>(test, "avg_ts");
    if (prompt > 0 && made == 0) rates.prefill.push_back(speed);
    if (made > 0 && prompt == 0) rates.decode.push_back(speed);
  }
  if (rates.prefill.empty() && rates.decode.empty()) {
    throw Error(ErrorCode::kInvalid, "the output of llama-bench names no test of a prompt or of an answer",
                "--peer takes the program llama-bench of llama.cpp");
  }
  return rates;
}

ModelRun run_model_bench(const ModelRequest& request) {
  ModelRun result;
  if (request.ranks > 1 || request.cluster) {
    if (request.peer) {
      throw Error(ErrorCode::kUsage, "--compare-with runs beside one rank on this machine", "leave out --ranks");
    }
    result.speed = run_model_ranks(request);
    return result;
  }
  auto alone = comm::local::make_local(1);
  const auto world = rank::make_local_world(std::move(alone.front()));
  if (!request.peer) {
    result.speed = measure_model_speed(*world, request.options);
    return result;
  }
  PeerRates rates;
  result.speed =
      measure_model_speed(*world, request.options, [&](int) { run_peer(*request.peer, request.options, rates); });
  result.peer = std::move(rates);
  return result;
}

rank::RankKind model_rank_kind() {
  return {.name = kModelKind, .started_by = "yoke bench model", .run = run_model_rank};
}

}  // namespace yoke::bench

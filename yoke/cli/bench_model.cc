// yoke bench model: how fast a model runs, operation by operation, against what the machine can do.
#include <fmt/format.h>

#include <charconv>

#include "yoke/base/error.h"
#include "yoke/base/fields.h"
#include "yoke/bench/history.h"
#include "yoke/bench/model_ranks.h"
#include "yoke/cli/cluster_file.h"
#include "yoke/cli/commands.h"
#include "yoke/ops/backends.h"
#include "yoke/predict/why_question.h"
#include "yoke/rank/start.h"
#include "yoke/spec/model_catalogue.h"
#include "yoke/weights/grow_model.h"
#include "yoke/weights/model_folder.h"

namespace yoke::cli {
namespace {

struct ModelBenchArguments {
  std::string folder, shape, format, head, backend = "auto";
  std::string compare_with, peer, peer_model, part;
  int layers = 0, threads = 0, ranks = 0;
  int prompt = 512, tokens = 64, context = 0, batch = 1, rounds = 3;
  bool exact = false, no_history = false;
};

weights::HeadFormat head_of(const std::string& name) {
  if (name == "int4") return weights::HeadFormat::kInt4;
  return name == "int8" ? weights::HeadFormat::kInt8 : weights::HeadFormat::kPlain;
}

std::vector<std::string> bench_format_names() {
  std::vector<std::string> names;
  for (const auto& [name, format] : weights::enum_names(weights::MakeFormat{})) names.emplace_back(name);
  return names;
}

// "0/2": the first of two.
void read_part(const std::string& text, bench::ModelSpeedOptions& options) {
  const char* const end = text.data() + text.size();
  const auto first = std::from_chars(text.data(), end, options.part);
  const bool has_slash = first.ec == std::errc() && first.ptr != end && *first.ptr == '/';
  const auto second = std::from_chars(has_slash ? first.ptr + 1 : end, end, options.parts);
  if (!has_slash || second.ec != std::errc() || second.ptr != end || options.part < 0 ||
      options.part >= options.parts || options.parts > 256) {
    throw Error(ErrorCode::kUsage, fmt::format("--rank takes a rank and how many there are, not '{}'", text),
                "such as --rank 0/2");
  }
}

bench::ModelSpeedOptions speed_options(const ModelBenchArguments& a) {
  if (!a.folder.empty() && !a.shape.empty()) {
    throw Error(ErrorCode::kUsage, "give a model or --shape, not both",
                "such as: yoke bench model --shape llama-3.2-1b --format w4a16 --head int4");
  }
  if (!a.shape.empty() && a.format.empty()) {
    throw Error(ErrorCode::kUsage, "--shape needs --format", "such as --format w4a16");
  }
  bench::ModelSpeedOptions options{
      .folder = a.shape.empty() ? weights::find_model_folder(a.folder) : std::filesystem::path(),
      .backend = a.backend,
      .exact = a.exact,
      .threads = a.threads,
      .prompt = a.prompt,
      .tokens = a.tokens,
      .context = a.context,
      .batch = a.batch,
      .rounds = a.rounds};
  if (!a.part.empty()) read_part(a.part, options);
  if (a.shape.empty()) return options;
  options.made = weights::MakeModelOptions{.shape = *spec::find_model_shape(a.shape),
                                           .format = from_json<weights::MakeFormat>(Document::string(a.format)),
                                           .head = head_of(a.head)};
  if (a.layers > 0) options.made->shape.layers = a.layers;
  return options;
}

bench::ModelRequest request_of_model(Session& session, const ModelBenchArguments& a) {
  bench::ModelRequest request{.options = speed_options(a)};
  if (find_cluster_file(session)) request.cluster = load_session_cluster(session);
  request.ranks = rank::rank_count(a.ranks, request.cluster, 1);
  if (a.compare_with.empty()) return request;
  if (a.peer.empty() || a.peer_model.empty()) {
    throw Error(ErrorCode::kUsage, "--compare-with llama.cpp needs --peer and --peer-model",
                "--peer PATH/llama-bench --peer-model FILE.gguf");
  }
  request.peer = bench::ModelPeer{.program = a.peer, .model = a.peer_model};
  return request;
}

void add_operations(const std::vector<bench::OperationTime>& operations, spec::StepSums& sums) {
  for (const bench::OperationTime& one : operations) {
    if (one.name == "attention") {
      sums.cache += one.seconds;
    } else if (one.bytes > 0) {  // products with weights read some
      sums.weights += one.seconds;
      sums.weight_bytes += one.bytes;
      sums.operations += one.operations;
    } else {
      sums.others += one.seconds;
    }
  }
}

// What 'yoke why' needs of it: rank 0's steps. What is neither an operation nor between two steps is the exchange.
why::RunQuestion question_of_model(const Session& session, const bench::ModelRequest& request,
                                   const bench::ModelSpeed& speed) {
  const auto sums_of = [&](const bench::RateSamples& samples, double steps,
                           const std::vector<bench::OperationTime>& operations) {
    spec::StepSums sums{.steps = steps * static_cast<double>(samples.seconds.size()),
                        .tokens = samples.tokens * static_cast<double>(samples.seconds.size())};
    for (const double seconds : samples.seconds) sums.seconds += seconds;
    add_operations(operations, sums);
    if (speed.ranks > 1) sums.exchange = std::max(0.0, sums.seconds - sums.computing());
    return sums;
  };
  spec::RankAccount rank{.node = "rank 0", .threads = speed.threads, .weights_held = speed.weight_bytes};
  rank.decode = sums_of(speed.decode, static_cast<double>(request.options.tokens), speed.decode_operations);
  rank.prefill = sums_of(speed.prefill, 1, speed.prefill_operations);
  rank.wall = rank.decode.seconds + rank.prefill.seconds;
  why::RunQuestion question{.subject = {}, .account = {.transport = "", .ranks = {rank}, .decode = {}, .prefill = {}}};
  question.options = session_options(session);
  // The machine's own limit was measured in the same run: weights cannot be read faster.
  question.planned = why::PlannedRun{.decode = {.weights = speed.step_bytes / speed.ceilings.read},
                                     .is_calibrated = false,
                                     .read_rate = speed.ceilings.read};
  return question;
}

int measure_model(Session& session, const ModelBenchArguments& a) {
  const bench::ModelRequest request = request_of_model(session, a);
  const bench::ModelRun run = bench::run_model_bench(request);
  if (session.json) {
    session.print_json(bench::to_json(run, request.options));
  } else {
    session.print(bench::model_text(run, request.options));
  }
  if (a.no_history) return kExitOk;
  bench::RunRecord record = bench::model_record(run, request.options);
  predict::keep_question(record, question_of_model(session, request, run.speed));
  session.warn(bench::keep_record(record));
  return kExitOk;
}

}  // namespace

CommandRow bench_model_command() {
  return {
      .name = "model",
      .summary = "a model's prefill and decode, operation by operation, against this machine's limits",
      .description =
          "Reads prompts and makes tokens with a model, without an engine around it: tokens per second, and a "
          "table of operations with the share of the time and of the limit that the machine sets. The limits, "
          "read bandwidth and arithmetic, are measured in the same run. The model is a folder, or made in memory "
          "from a shape. Every round must make the same tokens; otherwise the command fails.\n\n"
          "--compare-with llama.cpp runs its llama-bench in turns with ours, with as many threads.",
      .examples = {{"yoke bench model --shape llama-3.2-1b --format w4a16 --head int4", "all of it in int4"},
                   {"yoke bench model made --prompt 1 --context 8192 --json", "a long context, for a program"},
                   {"yoke bench model D --compare-with llama.cpp --peer llama-bench --peer-model F",
                    "in turns with llama.cpp"}},
      .prepare = [](OptionTable& table) -> Action {
        auto a = std::make_shared<ModelBenchArguments>();
        table.positional("MODEL", "a model's folder or name (the one that ships with yoke)", a->folder,
                         Presence::kOptional);
        table.choice("--shape", "NAME", "a catalogued shape with random weights, instead of a folder",
                     spec::model_shape_names(), a->shape);
        table.choice("--format", "FORMAT", "of the weights of --shape", bench_format_names(), a->format);
        table.choice("--head", "FORMAT", "of embedding and head of --shape: bf16, int4, int8", {"bf16", "int4", "int8"},
                     a->head);
        table.value("--layers", "N", "this many layers of --shape", a->layers, {1, weights::kMaxLayers});
        table.value("--prompt", "N", "tokens of a prompt (512; 0: none)", a->prompt, {0, 1 << 20});
        table.value("-n,--tokens", "N", "tokens that are made (64)", a->tokens, {1, 1 << 20});
        table.value("--context", "N", "tokens in the cache before (0)", a->context, {0, 1 << 22});
        table.value("--batch", "N", "sequences at once (1)", a->batch, {1, 512});
        table.value("--rounds", "N", "rounds that are timed (3)", a->rounds, {1, 1000});
        table.value("--ranks", "N", "over how many ranks (one a node, or one on this machine)", a->ranks, {1, 256});
        table.value("--rank", "R/N", "the work of rank R of N alone, without its exchanges", a->part);
        table.value("--threads", "N", "of each rank (the processors divided among its ranks)", a->threads, {1, 1024});
        table.value("--backend", "NAME", "what computes: cuda, cpu or ref (auto: cuda where there is a GPU for it)",
                    a->backend);
        table.flag("--exact", "compute in f32 throughout", a->exact);
        table.choice("--compare-with", "PEER", "llama.cpp: run its llama-bench in turns", {"llama.cpp"},
                     a->compare_with);
        table.value("--peer", "PATH", "the program llama-bench", a->peer);
        table.value("--peer-model", "FILE", "the GGUF file that it runs", a->peer_model);
        table.flag("--no-history", "do not keep this run in the history", a->no_history);
        return [a](Session& session) { return measure_model(session, *a); };
      },
      .place = CommandPlace::kHead};
}

}  // namespace yoke::cli

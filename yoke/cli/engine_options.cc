#include "yoke/cli/engine_options.h"

#include <fmt/format.h>

#include <cstdlib>

#include "yoke/base/error.h"
#include "yoke/base/fields.h"
#include "yoke/base/log.h"
#include "yoke/cli/cluster_file.h"
#include "yoke/lab/enter.h"
#include "yoke/lab/plain.h"
#include "yoke/weights/model_folder.h"

namespace yoke::cli {
namespace {

// The nodes of a lab see this machine's files, but not all. A folder elsewhere was looked for on this machine before
// the command came to the node (cli.cc).
void check_lab_sees(const std::filesystem::path& model) {
  std::error_code ignored;
  const bool is_plain = std::getenv(lab::kPlainFolderVariable) != nullptr;  // such a node has no files of its own
  const auto here = is_plain ? std::nullopt : lab::in_node();
  if (!here || !model.is_absolute() || std::filesystem::exists(model, ignored)) return;
  throw Error(
      ErrorCode::kNotFound, fmt::format("there is no model folder '{}' on {}", model.native(), here->node),
      "a lab's node has a /tmp, /run and /dev/shm of its own: a model of this machine must be elsewhere, such as "
      "in /var/tmp");
}

}  // namespace

void settle_model(EngineArguments& a) {
  check_lab_sees(a.model);
  a.model = weights::find_model_folder(a.model).native();
}

void declare_engine(OptionTable& table, EngineArguments& a, Presence model) {
  table.positional("MODEL",
                   model == Presence::kRequired
                       ? "a model's folder: config.json, tokenizer.json, *.safetensors"
                       : "a model's folder, a name, or the id of a model in Hugging Face's cache (nano, which ships "
                         "with yoke)",
                   a.model, model);
  table.value("--ranks", "N", "over how many ranks the model is split (one a node, or one on this machine)", a.ranks,
              {1, 256});
  table.value("--nodes", "N", "use the first N nodes of the cluster (all)", a.nodes, {.min = 1});
  table.choice("--transport", "KIND", "what carries data between ranks: direct, mpi or threads of this process (auto)",
               {"auto", "direct", "mpi", "threads"}, a.transport);
  table.value("--threads", "N", "of each rank (the node's processors divided among its ranks)", a.threads, {1, 1024});
  table.value("--context", "N", "most tokens of prompt and answer (the model's, with a cache of 1 GiB at most)",
              a.context, {.min = 1});
  table.choice(
      "--backend", "NAME",
      "what computes: cuda, cpu, or ref, the slow one that others are measured against (auto: cuda where there is "
      "a GPU for it)",
      {"auto", "cuda", "cpu", "ref"}, a.backend);
  table.flag("--exact", "compute in f32 throughout: slower, and nearer to what the model was trained with", a.exact);
  table.choice("--cache-type", "TYPE", "of keys and values: f32, bf16 or f16 (bf16; f32 with --exact and on ref)",
               {"auto", "f32", "bf16", "f16"}, a.cache_type);
}

serve::EngineHostSpec host_spec(const Session& session, const EngineArguments& a) {
  serve::EngineHostSpec spec;
  spec.engine.model = std::filesystem::absolute(a.model);
  spec.engine.threads = a.threads.value_or(0);
  spec.engine.context_max = a.context.value_or(0);
  spec.engine.backend = a.backend;
  spec.engine.exact = a.exact;
  const bool in_f32 = a.exact || a.backend == "ref";
  spec.engine.cache_type = a.cache_type != "auto" ? from_json<tensor::DType>(Document::string(a.cache_type))
                           : in_f32               ? tensor::DType::kF32
                                                  : tensor::DType::kBf16;
  spec.transport = from_json<rank::Transport>(Document::string(a.transport));
  spec.ranks = a.ranks.value_or(0);
  if (find_cluster_file(session)) {
    spec::Cluster cluster = load_session_cluster(session);
    if (a.nodes && static_cast<std::size_t>(*a.nodes) > cluster.nodes.size()) {
      throw Error(ErrorCode::kUsage, fmt::format("--nodes cannot be {}", *a.nodes),
                  fmt::format("1 to {}: the cluster has no more", cluster.nodes.size()));
    }
    if (a.nodes) cluster = yoke::spec::first_nodes(std::move(cluster), static_cast<std::size_t>(*a.nodes));
    spec.cluster = std::move(cluster);
    note_omitted_rails(session, *spec.cluster);
  } else if (a.nodes) {
    throw Error(ErrorCode::kUsage, "--nodes needs a cluster, and there is no cluster.yaml in this folder",
                "name its file with --cluster, or start ranks on this machine with --ranks");
  }
  log(LogLevel::kDebug, "model {}, {} ranks over {}, transport {}", spec.engine.model.native(), rank_count(spec),
      spec.cluster ? "cluster " + spec.cluster->name : "this machine", a.transport);
  const auto place = job::find_rank_place(job::environment_now());
  if (!place || place->size == 1) return spec;
  if (spec.ranks > 0 && spec.ranks != place->size) {
    throw Error(ErrorCode::kUsage,
                fmt::format("--ranks {}, but {} started {}", spec.ranks, job::to_string(place->origin), place->size),
                "leave --ranks out: the launcher decides");
  }
  spec.place = place;
  return spec;
}

std::optional<int> follow_if_not_first(const serve::EngineHostSpec& spec) {
  if (!spec.place || spec.place->rank == 0) return std::nullopt;
  const auto failure = serve::follow_engine(*spec.place, spec);
  return failure ? failure->exit_status() : kExitOk;  // rank 0 says why
}

void declare_sampling(OptionTable& table, chat::SamplingArguments& a) {
  table.value("-n,--tokens", "N", "most tokens of an answer (the model's max_new_tokens, else 512)", a.tokens,
              {.min = 0});
  table.value("--temperature", "T", "0: always the likeliest token (the model's generation_config.json, else 0)",
              a.temperature);
  table.value("--top-k", "K", "draw from the K likeliest tokens only; 256 at most, and without it", a.top_k);
  table.value("--top-p", "P", "draw from the fewest tokens whose chances reach P", a.top_p);
  table.value("--min-p", "P", "draw from tokens with at least P of the likeliest one's chance", a.min_p);
  table.value("--repetition-penalty", "X", "above 1: tokens of prompt and answer become less likely",
              a.repetition_penalty);
  table.value("--frequency-penalty", "X", "taken off a logit for each time its token was given", a.frequency_penalty);
  table.value("--presence-penalty", "X", "taken off a logit once its token was given", a.presence_penalty);
  table.values("--logit-bias", "ID=B", "added to the logit of a token; -inf forbids it (may be repeated)",
               a.logit_bias);
  table.value("--seed", "N", "the same seed draws the same tokens (another one each time)", a.seed);
  table.values("--stop", "TEXT", "end the answer before this text (may be repeated)", a.stops);
}

}  // namespace yoke::cli

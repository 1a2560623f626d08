#include "yoke/cli/engine_session.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>

#include "yoke/base/error.h"
#include "yoke/base/fields.h"
#include "yoke/base/log.h"
#include "yoke/base/progress.h"
#include "yoke/base/terminal.h"
#include "yoke/base/text.h"
#include "yoke/cli/cluster_file.h"
#include "yoke/lab/enter.h"
#include "yoke/lab/plain.h"
#include "yoke/ops/backends.h"
#include "yoke/terminal/terminal_text.h"
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

// A part of a ring is no ring: two neighbours are joined by a cable, others by way of the nodes that are left out.
spec::Cluster first_nodes(spec::Cluster cluster, std::optional<int> wanted) {
  if (!wanted || static_cast<std::size_t>(*wanted) == cluster.nodes.size()) return cluster;
  cluster.nodes.resize(static_cast<std::size_t>(*wanted));
  if (!cluster.fabric) return cluster;
  cluster.fabric->subnets.clear();  // they are those of all cables
  if (cluster.fabric->topology == spec::Topology::kRing) {
    cluster.fabric->topology = *wanted <= 2 ? spec::Topology::kDirect : spec::Topology::kRing;
  }
  return cluster;
}

}  // namespace

void settle_model(EngineArguments& a) {
  check_lab_sees(a.model);
  a.model = weights::find_model_folder(a.model).native();
}

std::optional<std::string> cpu_note(const engine::EngineReady& ready) {
  const auto gpu = weights::find_gpu(DiskTree());
  if (!gpu || ready.backend.starts_with("cuda")) return std::nullopt;
  const auto reason = ops::why_no_cuda();
  if (!reason) return std::nullopt;  // the user has chosen another backend
  return fmt::format("this machine has an {}, but the model runs on the CPU ({}): {}", *gpu, ready.backend, *reason);
}

std::string context_note(const engine::EngineReady& ready) {
  if (ready.context_max >= ready.context_of_model) return {};
  return fmt::format("context of {} tokens (the model has {}; --context N makes room for more)", ready.context_max,
                     ready.context_of_model);
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
  table.value("--nodes", "N", "use the first N nodes of the cluster (all)", a.nodes, {.least = 1});
  table.choice("--transport", "KIND", "what carries data between ranks: direct, mpi or threads of this process (auto)",
               {"auto", "direct", "mpi", "threads"}, a.transport);
  table.value("--threads", "N", "of each rank (the node's processors divided among its ranks)", a.threads, {1, 1024});
  table.value("--context", "N", "most tokens of prompt and answer (the model's, with a cache of 1 GiB at most)",
              a.context, {.least = 1});
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
    spec.cluster = first_nodes(std::move(cluster), a.nodes);
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

EngineSession::EngineSession(const Session& session, serve::EngineHostSpec spec) : session_(session) {
  std::optional<Progress> progress;
  client_.emplace(std::move(spec), serve::ClientHooks{.on_notice = [this](const std::string& text) { note(text); },
                                                      .on_load =
                                                          [&progress](const engine::LoadProgress& load) {
                                                            if (!progress)
                                                              progress.emplace("loading the model", load.total.value);
                                                            progress->update(load.done.value,
                                                                             yoke::to_string(load.done));
                                                          },
                                                      .on_stopped =
                                                          [this] {
                                                            if (in_line_) print("\n");
                                                          }});
}

serve::CompletedAnswer EngineSession::ask(engine::Request request, serve::AskHooks hooks) {
  return value_or_throw(try_ask(std::move(request), std::move(hooks)));
}

Result<serve::CompletedAnswer> EngineSession::try_ask(engine::Request request, serve::AskHooks hooks) {
  std::optional<Progress> progress;
  progress.emplace("reading the prompt", std::ssize(request.prompt));
  hooks.on_reading = [&progress](std::int64_t tokens) {
    if (progress) progress->update(tokens);
  };
  hooks.on_token = [&progress, on_token = std::move(hooks.on_token)](const text::SampledToken& token) {
    progress.reset();
    return !on_token || on_token(token);
  };
  return client_->try_ask(std::move(request), hooks);
}

void EngineSession::print(std::string_view text) {
  if (text.empty()) return;
  session_.print_as_is(text);
  in_line_ = text.back() != '\n';
}

void EngineSession::note(const std::string& text) {
  const bool same_screen = isatty(STDOUT_FILENO) != 0 && isatty(STDERR_FILENO) != 0;
  std::string line = fmt::format("yoke: {}\n", terminal_safe(text));
  if (const auto columns = terminal_columns(STDERR_FILENO)) line = terminal::fold_lines(line, *columns);
  if (note_sink_) return note_sink_(line);
  if (in_line_ && same_screen) line.insert(0, "\n");
  if (same_screen) in_line_ = false;
  if (write(STDERR_FILENO, line.data(), line.size()) < 0) { /* nowhere left to say it */
  }
}

}  // namespace yoke::cli

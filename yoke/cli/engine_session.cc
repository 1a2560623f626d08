#include "yoke/cli/engine_session.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>

#include "yoke/base/error.h"
#include "yoke/base/fields.h"
#include "yoke/base/progress.h"
#include "yoke/base/text.h"
#include "yoke/cli/cluster_file.h"
#include "yoke/lab/enter.h"
#include "yoke/lab/plain.h"

namespace yoke {
namespace {

// The nodes of a lab see this machine's files, but not all: who names one of the others need not search long.
void check_lab_sees(const std::filesystem::path& model) {
  std::error_code ignored;
  const bool is_plain = std::getenv(kPlainFolderVariable) != nullptr;  // such a node has no files of its own
  const auto here = is_plain ? std::nullopt : in_node();
  if (!here || std::filesystem::exists(model, ignored)) return;
  throw Error(ErrorCode::kNotFound, fmt::format("there is no model folder '{}' on {}", model.native(), here->node),
              "each node of a lab has its own /tmp, /run and /dev/shm: put the model elsewhere, such as in /var/tmp");
}

Cluster first_nodes(Cluster cluster, std::optional<int> wanted) {
  if (wanted) cluster.nodes.resize(static_cast<std::size_t>(*wanted));
  return cluster;
}

}  // namespace

void declare_engine(OptionTable& table, EngineArguments& a) {
  table.positional("MODEL", "a model's folder: config.json, tokenizer.json, *.safetensors", a.model,
                   Presence::kRequired);
  table.value("--ranks", "N", "over how many ranks the model is split (one a node, or one on this machine)", a.ranks,
              {1, 256});
  table.value("--nodes", "N", "use the first N nodes of the cluster (all)", a.nodes, {.least = 1});
  table.choice("--transport", "KIND", "what carries data between ranks: direct, mpi or threads of this process (auto)",
               {"auto", "direct", "mpi", "threads"}, a.transport);
  table.value("--threads", "N", "of each rank (the node's processors divided among its ranks)", a.threads, {1, 1024});
  table.value("--context", "N", "most tokens of prompt and answer (the model's, or what memory allows)", a.context,
              {.least = 1});
  table.choice("--cache-type", "TYPE", "of keys and values: f32, bf16 or f16 (f32)", {"f32", "bf16", "f16"},
               a.cache_type);
}

EngineHostSpec host_spec(const Session& session, const EngineArguments& a) {
  EngineHostSpec spec;
  spec.engine.model = std::filesystem::absolute(a.model);
  check_lab_sees(spec.engine.model);
  spec.engine.threads = a.threads.value_or(0);
  spec.engine.context_most = a.context.value_or(0);
  spec.engine.cache_type = from_document<DType>(Document::string(a.cache_type));
  spec.transport = from_document<Transport>(Document::string(a.transport));
  spec.ranks = a.ranks.value_or(0);
  if (find_cluster_file(session)) {
    Cluster cluster = load_session_cluster(session);
    if (a.nodes && static_cast<std::size_t>(*a.nodes) > cluster.nodes.size()) {
      throw Error(ErrorCode::kUsage, fmt::format("--nodes cannot be {}", *a.nodes),
                  fmt::format("1 to {}: the cluster has no more", cluster.nodes.size()));
    }
    spec.cluster = first_nodes(std::move(cluster), a.nodes);
  } else if (a.nodes) {
    throw Error(ErrorCode::kUsage, "--nodes needs a cluster, and there is no cluster.yaml in this folder",
                "name its file with --cluster, or start ranks on this machine with --ranks");
  }
  const auto place = find_rank_place(environment_now());
  if (!place || place->size == 1) return spec;
  if (spec.ranks > 0 && spec.ranks != place->size) {
    throw Error(ErrorCode::kUsage,
                fmt::format("--ranks {}, but {} started {}", spec.ranks, to_string(place->origin), place->size),
                "leave --ranks out: the launcher decides");
  }
  spec.place = place;
  return spec;
}

std::optional<int> follow_if_not_first(const EngineHostSpec& spec) {
  if (!spec.place || spec.place->rank == 0) return std::nullopt;
  const auto failure = follow_engine(*spec.place, spec);
  return failure ? failure->exit_status() : kExitOk;  // rank 0 says why
}

EngineSession::EngineSession(const Session& session, EngineHostSpec spec) : session_(session) {
  std::optional<Progress> progress;
  client_.emplace(std::move(spec), ClientHooks{.on_notice = [this](const std::string& text) { note(text); },
                                               .on_load =
                                                   [&progress](const LoadProgress& load) {
                                                     if (!progress)
                                                       progress.emplace("loading the model", load.total.value);
                                                     progress->update(load.done.value, to_string(load.done));
                                                   },
                                               .on_stopped =
                                                   [this] {
                                                     if (in_line_) print("\n");
                                                   }});
}

Answered EngineSession::ask(Request request, AskHooks hooks) {
  return value_or_throw(try_ask(std::move(request), std::move(hooks)));
}

Result<Answered> EngineSession::try_ask(Request request, AskHooks hooks) {
  std::optional<Progress> progress;
  progress.emplace("reading the prompt", std::ssize(request.prompt));
  hooks.on_reading = [&progress](std::int64_t tokens) {
    if (progress) progress->update(tokens);
  };
  hooks.on_token = [&progress, on_token = std::move(hooks.on_token)](const Sampled& token) {
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
  const std::string line = fmt::format("{}yoke: {}\n", in_line_ && same_screen ? "\n" : "", terminal_safe(text));
  if (same_screen) in_line_ = false;
  if (write(STDERR_FILENO, line.data(), line.size()) < 0) { /* nowhere left to say it */
  }
}

}  // namespace yoke

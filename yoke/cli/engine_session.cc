#include "yoke/cli/engine_session.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <limits>

#include "yoke/base/error.h"
#include "yoke/base/fields.h"
#include "yoke/base/interrupt.h"
#include "yoke/base/json.h"
#include "yoke/base/progress.h"
#include "yoke/base/text.h"
#include "yoke/cli/cluster_file.h"
#include "yoke/lab/enter.h"
#include "yoke/lab/plain.h"
#include "yoke/models/llama/config.h"

namespace yoke {
using namespace literals;
namespace {

constexpr Seconds kTurn{0.05};
constexpr int kRanksMost = 256;
constexpr int kThreadsMost = 1024;

int in_range(std::string_view name, std::optional<int> value, int least, int most) {
  if (!value) return 0;
  if (*value < least || *value > most) {
    throw Error(ErrorCode::kUsage, fmt::format("{} cannot be {}", name, *value), fmt::format("{} to {}", least, most));
  }
  return *value;
}

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
  table.value("--ranks", "N", "over how many ranks the model is split (one a node, or one on this machine)", a.ranks);
  table.value("--nodes", "N", "use the first N nodes of the cluster (all)", a.nodes);
  table.choice("--transport", "KIND", "what carries data between ranks: direct, mpi or threads of this process (auto)",
               {"auto", "direct", "mpi", "threads"}, a.transport);
  table.value("--threads", "N", "of each rank (the node's processors divided among its ranks)", a.threads);
  table.value("--context", "N", "most tokens of prompt and answer (the model's, or what memory allows)", a.context);
  table.choice("--cache-type", "TYPE", "of keys and values: f32, bf16 or f16 (f32)", {"f32", "bf16", "f16"},
               a.cache_type);
}

EngineHostSpec host_spec(const Session& session, const EngineArguments& a) {
  EngineHostSpec spec;
  spec.engine.model = std::filesystem::absolute(a.model);
  check_lab_sees(spec.engine.model);
  spec.engine.threads = in_range("--threads", a.threads, 1, kThreadsMost);
  spec.engine.context_most = in_range("--context", a.context, 1, std::numeric_limits<int>::max());
  spec.engine.cache_type = from_document<DType>(Document::string(a.cache_type));
  spec.transport = from_document<Transport>(Document::string(a.transport));
  spec.ranks = in_range("--ranks", a.ranks, 1, kRanksMost);
  if (find_cluster_file(session)) {
    Cluster cluster = load_session_cluster(session);
    in_range("--nodes", a.nodes, 1, static_cast<int>(cluster.nodes.size()));
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

SchedulerLimits request_limits(const EngineOptions& engine) {
  const std::filesystem::path file = engine.model / "config.json";
  const LlamaConfig config = read_llama_config(parse_json(read_file(file), file.native()));
  const bool is_given = engine.context_most > 0;
  return {.vocabulary = config.V,
          .context_most = is_given ? std::min(engine.context_most, config.context) : config.context};
}

double Answered::prefill_rate(std::size_t prompt_tokens) const {
  return prefill.value > 0 ? static_cast<double>(prompt_tokens) / prefill.value : 0;
}
double Answered::decode_rate() const {
  return decode.value > 0 ? static_cast<double>(tokens.size() - 1) / decode.value : 0;
}

std::string describe(const EngineReady& ready) {
  std::vector<std::string> nodes = ready.nodes;
  nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
  return fmt::format("{} {} on {}; {}", ready.ranks, ready.ranks == 1 ? "rank" : "ranks", fmt::join(nodes, ", "),
                     ready.transport);
}

EngineSession::EngineSession(const Session& session, EngineHostSpec spec) : session_(session) {
  spec.on_notice = [this](const std::string& text) {
    const std::lock_guard lock(notices_mutex_);
    notices_.push_back(text);
  };
  const Instant start = real_clock().now();
  host_.emplace(std::move(spec));
  wait_until_ready();
  load_time_ = to_seconds(real_clock().now() - start);
}

void EngineSession::wait_until_ready() {
  std::optional<Progress> progress;
  while (!ready_) {
    if (const auto signal_number = host_->take_interrupt()) end_for(*signal_number);
    show_notices();
    auto event = host_->front().next(Deadline::after(kTurn));
    if (!event) continue;
    if (const auto* load = std::get_if<LoadProgress>(&*event)) {
      if (!progress) progress.emplace("loading the model", load->total.value);
      progress->update(load->done.value, to_string(load->done));
    } else if (auto* ready = std::get_if<EngineReady>(&*event)) {
      ready_ = std::move(*ready);
    } else if (const auto* recovered = std::get_if<EngineRecovered>(&*event)) {
      take_recovery(*recovered);
    }
  }
}

Answered EngineSession::ask(Request request, const AskHooks& hooks) {
  return value_or_throw(try_ask(std::move(request), hooks));
}

Result<Answered> EngineSession::try_ask(Request request, const AskHooks& hooks) {
  request.id = ++last_id_;
  Answered answer;
  bool enough = false;
  const Instant start = real_clock().now();
  Instant first = start;
  const auto stop = [&] {
    enough = true;
    host_->front().cancel(request.id);
  };
  std::optional<Progress> progress;
  progress.emplace("reading the prompt", std::ssize(request.prompt));
  std::int64_t tokens_read = 0;
  host_->front().submit(request);
  while (true) {
    if (const auto signal_number = host_->take_interrupt()) {
      if (hooks.interrupt == InterruptMeans::kTheEnd || *signal_number != SIGINT) end_for(*signal_number);
      answer.interrupted = true;
      stop();
    }
    show_notices();
    const auto event = host_->front().next(Deadline::after(kTurn));
    if (!event) {
      if (progress) progress->update(tokens_read);
    } else if (const auto* read = std::get_if<PromptRead>(&*event)) {
      tokens_read = read->done;
      if (progress) progress->update(tokens_read);
    } else if (const auto* token = std::get_if<TokenMade>(&*event)) {
      if (enough) continue;
      progress.reset();
      if (answer.tokens.empty()) first = real_clock().now();
      answer.tokens.push_back(token->token);
      answer.prefill = to_seconds(first - start);
      answer.decode = to_seconds(real_clock().now() - first);
      if (hooks.on_token && !hooks.on_token(token->token)) stop();
    } else if (const auto* logits = std::get_if<LogitsMade>(&*event)) {
      if (answer.tokens.empty()) answer.prefill = to_seconds(real_clock().now() - start);
      if (hooks.on_logits) hooks.on_logits(*logits);
    } else if (const auto* recovered = std::get_if<EngineRecovered>(&*event)) {
      take_recovery(*recovered);
    } else if (const auto* ended = std::get_if<RequestEnded>(&*event)) {
      if (ended->error) return Unexpected(*ended->error);
      answer.finish = enough && !answer.interrupted ? FinishReason::kStop : ended->reason;
      return answer;
    }
  }
}

void EngineSession::idle(Seconds time) {
  show_notices();
  const auto event = host_->front().next(Deadline::after(time));
  if (!event) return;
  if (const auto* recovered = std::get_if<EngineRecovered>(&*event)) take_recovery(*recovered);
}

void EngineSession::end_for(int signal_number) {
  host_->end_for(signal_number);
  host_.reset();
  if (in_line_) print("\n");
  if (interrupt_signal() == 0) HeldInterrupts::raise_again(signal_number);
  throw_if_interrupted();
  throw Error(ErrorCode::kInterrupted, "stopped by a signal");
}

void EngineSession::take_recovery(const EngineRecovered& recovered) {
  recoveries_.push_back(recovered);
  note(fmt::format("going on after {}: {}", to_string(recovered.after), recovered.cause));
}

void EngineSession::show_notices() {
  std::vector<std::string> notices;
  {
    const std::lock_guard lock(notices_mutex_);
    notices.swap(notices_);
  }
  for (const std::string& text : notices) note(text);
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

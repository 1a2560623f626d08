// yoke serve: a model behind an API that OpenAI's clients speak, and a page to chat with it.
#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>
#include <cstdlib>
#include <cstring>

#include "yoke/base/error.h"
#include "yoke/base/files.h"
#include "yoke/base/json.h"
#include "yoke/base/result.h"
#include "yoke/base/text.h"
#include "yoke/cli/cluster_file.h"
#include "yoke/cli/commands.h"
#include "yoke/cli/engine_options.h"
#include "yoke/cli/plan_request.h"
#include "yoke/plan/planner.h"
#include "yoke/serve/api.h"
#include "yoke/serve/client.h"
#include "yoke/serve/engine_service.h"
#include "yoke/serve/model_pool.h"
#include "yoke/serve/serve_check.h"
#include "yoke/serve/serve_log.h"
#include "yoke/serve/serve_unit.h"
#include "yoke/serve/upstream_service.h"

namespace yoke::cli {
namespace {

namespace fs = std::filesystem;

struct ServeArguments {
  EngineArguments engine;
  std::string host = "127.0.0.1";
  int port = 8000;
  int running = 32, queue = 1024, per_client = 0;
  std::optional<std::string> key_file, name, cors;
  Seconds request_limit{600}, drain_limit{30};
  bool check = false, unit = false;
  std::optional<std::string> upstream, config;
  bool no_resume = false;
};

// Type=notify of systemd: one datagram to the socket that it names.
void notify_systemd(std::string_view state) {
  const char* const name = std::getenv("NOTIFY_SOCKET");
  sockaddr_un address{};
  if (!name || std::strlen(name) >= sizeof address.sun_path) return;
  address.sun_family = AF_UNIX;
  std::strcpy(address.sun_path, name);
  if (name[0] == '@') address.sun_path[0] = '\0';
  const UniqueFd fd(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + std::strlen(name));
  const ssize_t ignored =
      sendto(fd.get(), state.data(), state.size(), MSG_NOSIGNAL, reinterpret_cast<sockaddr*>(&address), size);
  static_cast<void>(ignored);  // systemd then waits for its own limit
}

bool is_loopback(const std::string& host) { return host.starts_with("127.") || host == "::1"; }

// What clients call the model: what was typed, unless that is a path.
std::string served_name(const ServeArguments& a, const std::string& typed) {
  if (a.name) return *a.name;
  if (typed.empty() || typed.front() == '/' || typed.front() == '.' || fs::exists(typed)) {
    const fs::path folder = fs::path(a.engine.model);
    return folder.filename().empty() ? folder.parent_path().filename().native() : folder.filename().native();
  }
  return typed;
}

// A small context leaves room for several sequences of that size; a large one is room enough.
std::int64_t cache_tokens_for(const ServeArguments& a, std::int64_t context) {
  constexpr std::int64_t kEnough = 8192;
  return context >= kEnough ? 0 : std::min<std::int64_t>(context * a.running, kEnough);
}

std::string unit_text(const ServeArguments& a, const std::string& typed) {
  serve::ServeUnit unit{.program = fs::read_symlink("/proc/self/exe").native(),
                        .arguments = serve::own_arguments(),
                        .folder = fs::current_path().native(),
                        .user = std::getenv("USER") ? std::getenv("USER") : "root",
                        .environment = {},
                        .drain_limit = a.drain_limit};
  for (const char* name : {"HF_HOME", "HF_HUB_CACHE"}) {
    if (const char* value = std::getenv(name)) unit.environment[name] = value;
  }
  return serve::serve_unit_text(unit, a.upstream ? *a.upstream : a.config ? *a.config : typed.empty() ? "nano" : typed);
}

// The plan of this model on these machines; nothing where the planner does not know it.
std::optional<plan::Plan> make_serve_plan(const Session& session, const ServeArguments& a,
                                          const serve::EngineHostSpec& spec, std::int64_t context) {
  PlanArguments asked;
  asked.model = a.engine.model;
  // The cluster as it was read, which may have come by a descriptor without a name (lab_head.h).
  const ScratchDir folder("yoke-serve-plan");
  const fs::path file = folder.path() / "cluster.yaml";
  if (spec.cluster) write_file_atomically(file, spec::print_cluster(*spec.cluster));
  asked.on = spec.cluster ? file.native() : "here";
  if (spec.cluster && a.engine.nodes) asked.nodes = a.engine.nodes;
  asked.engine = "yoke";
  asked.context = std::to_string(context);
  const auto made = try_to([&] { return plan::make_plan(request_of(session, asked), plan::shipped_constants()); });
  return made ? std::optional(*made) : std::nullopt;
}

// What the planner expects of one request, beside which the page shows what is measured; null where it cannot say.
Document plan_json(const std::optional<plan::Plan>& made) {
  if (!made) return Document::null();
  for (const plan::Estimate& estimate : made->estimates) {
    if (estimate.name != "decode, one request") continue;
    return Document::map({{"tokens_per_second", Document::number(estimate.value)},
                          {"low", Document::number(estimate.low)},
                          {"high", Document::number(estimate.high)}});
  }
  return Document::null();
}

int print_check(Session& session, const ServeArguments& a, Document found) {
  serve::add_front_check(found, {a.host, a.port}, a.key_file);
  if (session.json) {
    session.print_json(found);
  } else {
    session.print(serve::check_text(found));
  }
  return kExitOk;
}

int check_engine(Session& session, const ServeArguments& a, const serve::EngineHostSpec& spec, const std::string& name,
                 std::int64_t context, bool has_template) {
  const auto made = make_serve_plan(session, a, spec, context);
  Document found = Document::map({{"model", Document::string(name)},
                                  {"folder", Document::string(a.engine.model)},
                                  {"ranks", Document::number(std::int64_t{serve::rank_count(spec)})},
                                  {"context", Document::number(context)},
                                  {"running_max", Document::number(std::int64_t{a.running})},
                                  {"chat_template", Document::boolean(has_template)}});
  serve::add_memory_check(found, spec, made);
  if (const Document plan = plan_json(made); plan.kind == Document::Kind::kMap) {
    found.add("planned_tokens_per_second", *plan.find("tokens_per_second"));
  }
  return print_check(session, a, std::move(found));
}

// What all kinds of servers have: the listening socket, the API, and words for the log and for systemd.
class ServeFront {
 public:
  ServeFront(const ServeArguments& a, const serve::ServeLog& log)
      : a_(a),
        log_(log),
        options_{.keys = a.key_file ? serve::ApiKeys::load(*a.key_file) : serve::ApiKeys(),
                 .client_max = a.per_client,
                 .is_loopback_only = is_loopback(a.host),
                 .cors_origin = a.cors} {
    options_.on_request = [this](const http::Exchange& exchange, const http::ExchangeReport& report) {
      log_.report(exchange, report);
    };
    options_.counts = [this] { return server_ ? server_->counts() : http::ServerCounts(); };
  }

  std::function<void(const std::string&)> on_notice() {
    return [this](const std::string& what) { log_.say("notice", what); };
  }
  void report_ready(const std::string& what) {
    log_.say("ready", what);
    notify_systemd("READY=1\nSTATUS=serving");
  }
  void drain() {
    log_.say("drain", "no new requests; answers that have begun are finished");
    notify_systemd("STOPPING=1");
    if (server_) server_->drain();
  }
  void open(serve::Service& service) {
    api_.emplace(service, options_);
    listen(service.name());
  }
  void open(std::shared_ptr<serve::ServiceTable> services) {
    std::string names;
    for (const serve::Service* one : services->all()) names += (names.empty() ? "" : "', '") + one->name();
    api_.emplace(std::move(services), options_);
    listen(names);
  }
  void close() { server_.reset(); }  // before what its handlers use

 private:
  void listen(const std::string& name) {
    server_.emplace(http::ServerOptions{.listen = {a_.host, a_.port}},
                    [this](const std::shared_ptr<http::Exchange>& exchange) { api_->handle(exchange); });
    const std::string url = fmt::format("http://{}", to_string(server_->local()));
    log_.say("listening", fmt::format("{} serves '{}' ({})", url, name,
                                      options_.is_loopback_only ? "to this machine only; --host 0.0.0.0 is for others"
                                      : options_.keys.are_needed() ? "with API keys"
                                                                   : "to everybody who reaches it, without keys"));
  }
  const ServeArguments& a_;
  const serve::ServeLog& log_;
  serve::ApiOptions options_;
  std::optional<serve::Api> api_;
  std::optional<http::Server> server_;
};

int run_upstream(Session& session, const ServeArguments& a);
int run_pool(Session& session, const ServeArguments& a);

int run_serve(Session& session, ServeArguments a) {
  const std::string typed = a.engine.model;
  if (a.unit) {
    session.print(unit_text(a, typed));
    return kExitOk;
  }
  if (a.upstream) return run_upstream(session, a);
  if (a.config) return run_pool(session, a);
  settle_model(a.engine);
  serve::EngineHostSpec spec = host_spec(session, a.engine);
  if (const auto status = follow_if_not_first(spec)) return *status;
  const serve::ModelText text = serve::ModelText::load(a.engine.model);
  const engine::SchedulerLimits limits = engine::request_limits(spec.engine);
  spec.engine.cache_tokens = cache_tokens_for(a, limits.context_max);
  const std::string name = served_name(a, typed);
  if (a.check) return check_engine(session, a, spec, name, limits.context_max, text.chat.has_value());
  const serve::ServeLog log(session);
  ServeFront front(a, log);
  serve::RequestHub hub(spec, {.running_max = a.running,
                               .queue_max = a.queue,
                               .drain_limit = a.drain_limit,
                               .on_notice = front.on_notice(),
                               .on_ready = [&] { front.report_ready(serve::describe(*hub.status().ready)); },
                               .on_drain = [&] { front.drain(); }});
  serve::EngineService service(hub, text,
                               {.name = name,
                                .request_limit = a.request_limit,
                                .plan = plan_json(make_serve_plan(session, a, spec, limits.context_max))});
  front.open(service);
  hub.run();
  front.close();
  return kExitOk;
}

serve::UpstreamOptions upstream_options(const ServeArguments& a, ServeFront& front) {
  return {.running_max = a.running,
          .queue_max = a.queue,
          .resumes = !a.no_resume,
          .request_limit = a.request_limit,
          .drain_limit = a.drain_limit,
          .on_notice = front.on_notice(),
          .on_drain = [&front] { front.drain(); }};
}

// Several models, each with a server of its own that this one starts and ends.
int run_pool(Session& session, const ServeArguments& a) {
  if (!a.engine.model.empty()) {
    throw Error(ErrorCode::kUsage, "a MODEL is of no use with --config: the file names the models", "leave MODEL out");
  }
  const serve::PoolSpec spec = serve::read_pool_file(*a.config);
  if (a.check) {
    Document models = Document::map();
    for (const serve::PoolModel& model : spec.models) {
      models.add(model.name, Document::string(model.upstream.value_or(model.model)));
    }
    return print_check(session, a, std::move(models));
  }
  const serve::ServeLog log(session);
  ServeFront front(a, log);
  const auto pool = std::make_shared<serve::ModelPool>(
      spec, serve::PoolOptions{.program = fs::read_symlink("/proc/self/exe"), .front = upstream_options(a, front)});
  front.open(pool);
  front.report_ready(fmt::format("{} models, loaded when they are asked for", spec.models.size()));
  pool->run();
  front.close();
  return kExitOk;
}

// In front of another server: no model is loaded here.
int run_upstream(Session& session, const ServeArguments& a) {
  const serve::UpstreamUrl url = serve::parse_upstream(*a.upstream);
  if (!a.engine.model.empty()) {
    throw Error(ErrorCode::kUsage, "a MODEL is of no use with --upstream: the other server has it loaded",
                "leave MODEL out; --name says what clients call it");
  }
  const serve::ServeLog log(session);
  ServeFront front(a, log);
  serve::UpstreamOptions options = upstream_options(a, front);
  const char* const key = std::getenv("OPENAI_API_KEY");
  if (key) options.key = key;
  options.server = {url.host, url.port};
  options.name = a.name;
  options.on_ready = [&] { front.report_ready(fmt::format("{} answers", *a.upstream)); };
  serve::UpstreamService service(options);
  if (a.check) {
    Document found = Document::map({{"upstream", Document::string(to_string(Endpoint{url.host, url.port}))}});
    serve::add_upstream_check(found, {url.host, url.port}, options.key.value_or(""));
    return print_check(session, a, std::move(found));
  }
  front.open(service);
  service.run();
  front.close();
  return kExitOk;
}

}  // namespace

CommandRow serve_command() {
  return {
      .name = "serve",
      .summary = "a model behind an OpenAI-compatible API, with a chat page",
      .description =
          "Loads a model as 'yoke run' does and answers over HTTP: /v1/chat/completions, /v1/completions, "
          "/v1/responses and /v1/models as OpenAI's clients expect them, /v1/messages as Anthropic's do, a page to "
          "chat and to watch the cluster at /, /metrics for "
          "Prometheus, /health and /ready. Where a rank dies it is started again, and every unfinished request "
          "continues with the tokens that would have come. SIGTERM finishes answers that have begun. By default only "
          "this machine can connect. docs/serving.md describes every endpoint.",
      .examples = {{"yoke serve", "the small model that ships with yoke, at http://127.0.0.1:8000"},
                   {"yoke serve models/nano --ranks 2 --port 8080", "over two ranks: kill one, and it goes on"},
                   {"yoke serve MODEL --host 0.0.0.0 --api-key-file keys", "for others, with keys"},
                   {"yoke serve --upstream http://127.0.0.1:8001 --port 8000",
                    "in front of vLLM, SGLang, llama-server"}},
      .prepare = [](OptionTable& table) -> Action {
        auto a = std::make_shared<ServeArguments>();
        table.value("--host", "ADDRESS", "where to listen (127.0.0.1: this machine only)", a->host);
        table.value("--port", "P", "where to listen (8000); 0 takes a free one", a->port, {0, 65535});
        table.value("--max-running", "N", "sequences that are computed together (32)", a->running, {1, 1024});
        table.value("--max-queue", "N", "requests that wait; more are refused with status 429 (1024)", a->queue,
                    {0, 1'000'000});
        table.value("--max-per-client", "N", "unfinished requests of one key or address (0: any number)", a->per_client,
                    {0, 1'000'000});
        table.value("--api-key-file", "FILE", "lines 'NAME SHA256' of the keys that are taken (none are needed)",
                    a->key_file);
        table.value("--name", "NAME", "what clients call the model (its folder's name)", a->name);
        table.value("--cors", "ORIGIN", "a site whose pages may use this server (none)", a->cors);
        table.value("--request-timeout", "TIME", "for a whole answer (600s)", a->request_limit, {1, 86'400});
        table.value("--drain-time", "TIME", "for answers that have begun, after SIGTERM (30s)", a->drain_limit,
                    {0, 86'400});
        table.value("--upstream", "URL", "serve what another server computes (http://127.0.0.1:8000); no MODEL then",
                    a->upstream);
        table.value("--config", "FILE",
                    "serve the models of this file, each loaded when it is asked for; no MODEL then", a->config);
        table.flag("--no-resume", "with --upstream: end streams whose server dies, rather than go on by a completion",
                   a->no_resume);
        table.flag("--check", "only check, and print what would be used", a->check);
        table.flag("--unit", "only print a unit for systemd", a->unit);
        declare_engine(table, a->engine, Presence::kOptional);
        return [a](Session& session) { return run_serve(session, *a); };
      },
      .place = CommandPlace::kHead};
}

}  // namespace yoke::cli

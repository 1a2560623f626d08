#include "yoke/serve/upstream_service.h"

#include <fmt/format.h>

#include <algorithm>

#include "yoke/base/json.h"
#include "yoke/base/log.h"
#include "yoke/base/result.h"
#include "yoke/serve/api_fields.h"
#include "yoke/serve/completion_request.h"
#include "yoke/serve/upstream_asking.h"
#include "yoke/serve/upstream_metrics.h"

namespace yoke::serve {
using namespace literals;
namespace {

constexpr Seconds kLookEvery{5};      // while it works
constexpr Seconds kRetryEvery{0.25};  // while it does not
constexpr Seconds kTokenLimit{20};    // for a canary
constexpr Seconds kMetricsEvery{2};   // the server's own are read
constexpr Seconds kMetricsLimit{1};   // for that
constexpr Seconds kNoMetricsEvery{30};
constexpr Seconds kPatience{60};  // without it, before new requests are refused
constexpr std::size_t kUpstreamNotices = 20;
constexpr std::size_t kAsidesMax = 64;  // small questions that wait

}  // namespace

UpstreamService::UpstreamService(UpstreamOptions options)
    : options_(std::move(options)), queue_(options_.running_max, options_.queue_max), server_(options_.server) {}

Endpoint UpstreamService::server() const {
  const std::lock_guard lock(mutex_);
  return server_;
}

void UpstreamService::set_server(const Endpoint& server) {
  const std::lock_guard lock(mutex_);
  server_ = server;
}

void UpstreamService::start_looking() {
  if (looks_.exchange(true)) return;
  if (looking_.joinable()) looking_.join();
  looking_ = std::thread([this] {
    looked_ = metrics_read_ = {};
    while (looks_) {
      look_in_turn();
      real_clock().sleep(Seconds{0.05});
    }
  });
}

void UpstreamService::stop_looking() {
  looks_ = false;
  if (looking_.joinable()) looking_.join();
  const std::lock_guard lock(mutex_);
  is_up_ = was_up_ = false;
  reported_ = {};
  why_ = "it is not loaded";
}

void UpstreamService::stop_taking() {
  const std::lock_guard lock(mutex_);
  is_draining_ = true;
}

UpstreamService::~UpstreamService() {
  stop_looking();
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
    waiting_.clear();
  }
  changed_.notify_all();
  for (std::thread& worker : workers_) worker.join();
  if (aside_thread_.joinable()) aside_thread_.join();
}

// ---- the owner's thread

void UpstreamService::run() {
  Instant drain_end{};
  while (true) {
    if (held_.take()) {
      const std::lock_guard lock(mutex_);
      if (is_draining_) break;  // a second one
      is_draining_ = true;
      drain_end = real_clock().now() + std::chrono::milliseconds(static_cast<int>(options_.drain_limit.value * 1000));
      if (options_.on_drain) options_.on_drain();
    }
    {
      const std::lock_guard lock(mutex_);
      if (is_draining_ && ((waiting_.empty() && running_ == 0) || real_clock().now() > drain_end)) break;
    }
    look_in_turn();
    real_clock().sleep(Seconds{0.05});
  }
}

void UpstreamService::look_in_turn() {
  const bool is_up = state() == "ready";
  if (to_seconds(real_clock().now() - looked_) > (is_up ? kLookEvery : kRetryEvery)) {
    look();
    looked_ = real_clock().now();
  }
  if (is_up && to_seconds(real_clock().now() - metrics_read_) > metrics_pause_) {
    read_metrics();
    metrics_read_ = real_clock().now();
  }
}

// A server that has none, as llama-server without --metrics, is seldom asked again.
void UpstreamService::read_metrics() {
  const auto answer =
      try_to([&] { return http::ask(server(), question("/metrics", ""), Deadline::after(kMetricsLimit)); });
  metrics_pause_ = answer && answer->status != 200 ? kNoMetricsEvery : kMetricsEvery;
  const UpstreamGauges read = answer && answer->status == 200 ? read_upstream_metrics(answer->body) : UpstreamGauges();
  const std::lock_guard lock(mutex_);
  reported_ = read;
}

// A token that a client got is as good a sign as one of ours.
void UpstreamService::look() {
  {
    const std::lock_guard lock(mutex_);
    const Instant now = real_clock().now();
    if (is_up_ && to_seconds(now - last_token_) < kLookEvery) return metrics_.count_canary(std::nullopt, now);
  }
  try {
    ask_canary();
    set_up();
  } catch (const Error& error) {
    set_down(error.message());
  }
}

void UpstreamService::set_up() {
  bool is_new = false;
  {
    const std::lock_guard lock(mutex_);
    is_new = !std::exchange(is_up_, true);
    const bool was_up = std::exchange(was_up_, true);
    if (is_new && was_up) metrics_.count_recovery(to_seconds(real_clock().now() - down_since_));
    why_.clear();
  }
  changed_.notify_all();
  if (is_new) note(fmt::format("{} answers", to_string(server())));
  if (is_new && options_.on_ready) options_.on_ready();
}

void UpstreamService::set_down(const std::string& why) {
  bool is_new = false;
  {
    const std::lock_guard lock(mutex_);
    is_new = std::exchange(is_up_, false) || why_.empty();
    if (is_new) {
      down_since_ = real_clock().now();
      if (was_up_) ++losses_;
    }
    reported_ = {};
    why_ = why;
  }
  if (is_new) note(fmt::format("{} does not answer: {}", to_string(server()), why));
}

http::HttpQuestion UpstreamService::question(const std::string& path, std::string body) const {
  http::HttpQuestion asked{.method = body.empty() ? "GET" : "POST", .path = path, .body = std::move(body)};
  if (options_.key) asked.headers.emplace_back("Authorization", "Bearer " + *options_.key);
  return asked;
}

void UpstreamService::learn_model() {
  const http::HttpAnswer answer = http::ask(server(), question("/v1/models", ""), Deadline::after(5_s));
  if (answer.status != 200) {
    throw Error(ErrorCode::kUnavailable, fmt::format("its list of models has the status {}", answer.status));
  }
  const Document models = parse_json(answer.body, "models");
  const auto* const list = given_field(models, "data");
  if (!list || list->items.empty() || !given_field(list->items.front(), "id")) {
    throw Error(ErrorCode::kUnavailable, "it lists no model");
  }
  const Document& first = list->items.front();
  const auto* const length = given_field(first, "max_model_len");
  const std::lock_guard lock(mutex_);
  model_ = given_field(first, "id")->text;
  context_max_ = length ? api_integer(*length, "max_model_len", 0, 1 << 30) : 0;
}

Seconds UpstreamService::canary() {
  std::string model;
  {
    const std::lock_guard lock(mutex_);
    model = model_;
  }
  Document body = Document::map({{"model", Document::string(model)},
                                 {"prompt", Document::string("a")},
                                 {"max_tokens", Document::number(std::int64_t{1})},
                                 {"temperature", Document::number(std::int64_t{0})},
                                 {"stream", Document::boolean(true)},
                                 {"stream_options", Document::map({{"include_usage", Document::boolean(true)}})},
                                 {"return_token_ids", Document::boolean(true)}});
  const Instant start = real_clock().now();
  const auto ask = [&] {
    return http::ask(server(), question("/v1/completions", print_json(body, JsonLayout::kOneLine)),
                     Deadline::after(kTokenLimit));
  };
  http::HttpAnswer answer = ask();
  for (int i = 0; i < 2 && answer.status == 400; ++i) {  // perhaps for the parameter that OpenAI does not have
    body.fields.pop_back();
    answer = ask();
  }
  if (answer.status != 200 && answer.status != 429) {
    const auto read = try_to([&] { return parse_json(answer.body, "error"); });
    const auto* const error = read ? given_field(*read, "error") : nullptr;
    const auto* const words = error ? given_field(*error, "message") : nullptr;
    throw Error(ErrorCode::kUnavailable,
                words ? words->text : fmt::format("a request for one token has the status {}", answer.status));
  }
  if (answer.status == 200) {
    const std::lock_guard lock(mutex_);
    gives_ids_ = answer.body.find("\"prompt_token_ids\"") != std::string::npos &&
                 answer.body.find("\"token_ids\"") != std::string::npos;
    gives_usage_ = answer.body.find("\"prompt_tokens\"") != std::string::npos;
  }
  return to_seconds(real_clock().now() - start);
}

Seconds UpstreamService::ask_canary() {
  bool is_alone = false;
  bool was_up = false;
  {
    const std::lock_guard lock(mutex_);
    is_alone = running_ == 0;
    was_up = was_up_;
  }
  try {
    learn_model();
    const Seconds took = canary();
    metrics_.count_canary(is_alone ? std::optional(took) : std::nullopt, real_clock().now());
    return took;
  } catch (const Error&) {
    if (was_up) metrics_.count_lost_canary(real_clock().now());
    throw;
  }
}

void UpstreamService::note(const std::string& text) {
  {
    const std::lock_guard lock(mutex_);
    notices_.push_back(fmt::format("{} {}", utc_now(), text));
    if (notices_.size() > kUpstreamNotices) notices_.pop_front();
  }
  if (options_.on_notice) options_.on_notice(text);
}

// ---- any thread

std::string UpstreamService::name() const {
  const std::lock_guard lock(mutex_);
  return options_.name.value_or(model_);
}

std::string UpstreamService::state() const {
  const std::lock_guard lock(mutex_);
  return is_up_ ? "ready" : was_up_ ? "restarting" : "loading";
}

Document UpstreamService::model_entry() const {
  Document entry = Document::map({{"id", Document::string(name())},
                                  {"object", Document::string("model")},
                                  {"owned_by", Document::string("yoke")}});
  const std::lock_guard lock(mutex_);
  if (context_max_ > 0) entry.add("max_model_len", Document::number(context_max_));
  return entry;
}

GaugeValues UpstreamService::gauges() const {
  GaugeValues gauges{.model = name()};
  const std::lock_guard lock(mutex_);
  gauges.running = running_;
  gauges.waiting = std::ssize(waiting_);
  gauges.upstream = reported_;
  gauges.is_ready = is_up_;
  return gauges;
}

Document UpstreamService::cluster_view() {
  Document view = Document::map({{"model", Document::string(name())}, {"state", Document::string(state())}});
  const double rate = metrics_.tokens_per_second(real_clock().now());
  const std::string where = to_string(server());
  const std::lock_guard lock(mutex_);
  if (!why_.empty()) view.add("why", Document::string(why_));
  view.add("upstream", Document::string(where));
  view.add("nodes", Document::list());
  view.add("running", Document::number(std::int64_t{running_}));
  view.add("waiting", Document::number(std::ssize(waiting_)));
  view.add("tokens_per_second", Document::number(rate));
  view.add("recoveries", Document::number(static_cast<std::int64_t>(losses_)));
  Document notices = Document::list();
  for (const std::string& one : notices_) notices.items.push_back(Document::string(one));
  view.add("notices", std::move(notices));
  return view;
}

void UpstreamService::answer_ready(const ExchangePtr& exchange) {
  ask_aside(exchange, ApiKind::kChat, [this, exchange] {
    try {
      const Seconds took = ask_canary();
      set_up();
      reply_document(exchange, metrics_,
                     Document::map({{"status", Document::string("ready")}, {"seconds", Document::number(took.value)}}));
    } catch (const Error& error) {
      reply_document(
          exchange, metrics_,
          Document::map({{"status", Document::string("not ready")}, {"why", Document::string(error.message())}}), 503);
    }
  });
}

// In a thread of its own: the server that is asked may hang, and the threads that read requests are few.
void UpstreamService::ask_aside(const ExchangePtr& exchange, ApiKind kind, std::function<void()> ask) {
  const std::lock_guard lock(mutex_);
  if (asides_.size() >= kAsidesMax) throw Error(ErrorCode::kUnavailable, "too many questions wait for the engine");
  asides_.push_back([this, exchange, kind, ask = std::move(ask)] {
    if (exchange->is_over()) return;
    try {
      ask();
    } catch (const Error& error) {
      const ApiError shown = ApiError::of(error);
      reply_document(exchange, metrics_, shown.json_of(kind), shown.status());
    }
  });
  if (!aside_thread_.joinable()) aside_thread_ = std::thread([this] { answer_asides(); });
  changed_.notify_all();
}

void UpstreamService::answer_asides() {
  while (true) {
    std::function<void()> next;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return ends_ || !asides_.empty(); });
      if (ends_) return;
      next = std::move(asides_.front());
      asides_.pop_front();
    }
    next();
  }
}

void UpstreamService::complete(const ExchangePtr& exchange, ApiKind kind, RequestTicket ticket) {
  Document body = parse_api_body(exchange->request().body);
  const std::lock_guard lock(mutex_);
  if (is_draining_) throw Error(ErrorCode::kUnavailable, "the server is shutting down");
  const bool is_patient =
      options_.waits_for_start || (was_up_ && to_seconds(real_clock().now() - down_since_) < kPatience);
  if (!is_up_ && !is_patient) {
    throw Error(ErrorCode::kUnavailable, fmt::format("the engine does not answer: {}", why_));
  }
  if (!queue_.has_room(ticket.client, 1)) {
    throw Error(ErrorCode::kExhausted,
                fmt::format("{} requests are running and {} wait, which is the limit (the last eighth of the queue is "
                            "kept for clients with few requests)",
                            running_, waiting_.size()));
  }
  queue_.add(ticket.client, ++last_id_);
  waiting_.emplace(last_id_, Waiting{exchange, kind, std::move(ticket), std::move(body), real_clock().now()});
  const bool needs_worker = idle_ < std::ssize(waiting_) && std::ssize(workers_) < options_.running_max;
  if (needs_worker) workers_.emplace_back([this] { work(); });
  changed_.notify_all();
}

// Small questions about tokens, as they are.
void UpstreamService::pass_on(const ExchangePtr& exchange, ApiKind kind) {
  ask_aside(exchange, kind, [this, exchange] {
    const http::HttpRequest& asked = exchange->request();
    const http::HttpAnswer answer = http::ask(server(), question(asked.path, asked.body), Deadline::after(30_s));
    metrics_.count_response(answer.status);
    exchange->respond({.status = answer.status,
                       .content_type = answer.header("content-type").value_or("application/json"),
                       .body = answer.body});
  });
}

// False where the time is over or the client has left.
bool UpstreamService::wait_until_up(Deadline deadline, const http::Exchange& exchange) {
  std::unique_lock lock(mutex_);
  while (!is_up_ && !ends_) {
    if (deadline.expired()) return false;
    changed_.wait_for(lock, std::chrono::milliseconds(200));
    lock.unlock();
    const bool is_over = exchange.is_over();
    lock.lock();
    if (is_over) return false;
  }
  return !ends_;
}

void UpstreamService::work() {
  while (true) {
    Waiting next;
    std::optional<std::uint64_t> id;
    {
      std::unique_lock lock(mutex_);
      ++idle_;
      changed_.wait(lock, [&] {
        if (!ends_) id = queue_.next();
        return ends_ || id;
      });
      --idle_;
      if (ends_) return;
      next = std::move(waiting_.at(*id));
      waiting_.erase(*id);
      ++running_;
    }
    try {
      Asking(*this, next).run();
    } catch (const Error& error) {
      const ApiError shown = ApiError::of(error);
      reply_document(next.exchange, metrics_, shown.json_of(next.kind), shown.status());
    }
    const std::lock_guard lock(mutex_);
    --running_;
    queue_.remove(*id);
  }
}

}  // namespace yoke::serve

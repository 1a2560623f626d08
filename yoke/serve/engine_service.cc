#include "yoke/serve/engine_service.h"

#include <fmt/format.h>

#include <algorithm>

#include "yoke/base/json.h"
#include "yoke/serve/api_error.h"
#include "yoke/serve/api_fields.h"
#include "yoke/serve/chat_messages.h"
#include "yoke/serve/cluster_view.h"
#include "yoke/serve/generation.h"
#include "yoke/serve/link_gauges.h"
#include "yoke/serve/other_requests.h"

namespace yoke::serve {
namespace {

constexpr Seconds kCanaryLimit{10};

// One token through every rank: the engine works, and not only its port.
class Canary : public AnswerSink {
 public:
  Canary(std::shared_ptr<http::Exchange> exchange, RequestHub& hub) : exchange_(std::move(exchange)), hub_(hub) {}

  void on_token(std::uint64_t, const text::SampledToken&) override {
    const Seconds after = to_seconds(real_clock().now() - start_);
    hub_.metrics().count_canary(is_alone_ ? std::optional(after) : std::nullopt, real_clock().now());
    answer(200, Document::map({{"status", Document::string("ready")}, {"seconds", Document::number(after.value)}}));
  }
  void on_end(std::uint64_t, engine::FinishReason, const std::optional<Error>& error) override {
    // A server whose places are all taken answers others meanwhile: that is as good a sign.
    if (hub_.metrics().tokens_per_second(real_clock().now()) > 0) {
      hub_.metrics().count_canary(std::nullopt, real_clock().now());
      return answer(200, Document::map({{"status", Document::string("ready")}, {"busy", Document::boolean(true)}}));
    }
    if (!is_answered_ && was_ready_) hub_.metrics().count_lost_canary(real_clock().now());
    answer(503, Document::map({{"status", Document::string("not ready")},
                               {"why", Document::string(error ? error->message() : "no token came")}}));
  }

 private:
  void answer(int status, const Document& document) {
    if (std::exchange(is_answered_, true)) return;
    http::Reply reply{.status = status, .body = print_json(document, JsonLayout::kOneLine) + "\n"};
    if (status == 503) reply.headers.emplace_back("Retry-After", "5");
    exchange_->respond(reply);
  }
  const std::shared_ptr<http::Exchange> exchange_;
  RequestHub& hub_;
  const Instant start_ = real_clock().now();
  const HubStatus before_ = hub_.status();
  const bool is_alone_ = before_.running == 0 && before_.waiting == 0;
  const bool was_ready_ = before_.ready.has_value();
  bool is_answered_ = false;
};

}  // namespace

void reply_document(const ExchangePtr& exchange, ServeMetrics& metrics, const Document& document, int status) {
  metrics.count_response(status);
  http::Reply reply{.status = status, .body = print_json(document, JsonLayout::kOneLine) + "\n"};
  if (status == 429 || status == 503) reply.headers.emplace_back("Retry-After", "5");
  exchange->respond(reply);
}

EngineService::EngineService(RequestHub& hub, const ModelText& text, EngineServiceOptions options)
    : hub_(hub), text_(text), options_(std::move(options)) {}

ServedModel EngineService::served_model() const {
  ServedModel model{.name = options_.name, .text = &text_};
  if (const auto ready = hub_.status().ready) {
    model.context_max = ready->context_max;
    model.vocabulary = ready->vocabulary;
  }
  return model;
}

Document EngineService::model_entry() const {
  Document entry = Document::map({{"id", Document::string(options_.name)},
                                  {"object", Document::string("model")},
                                  {"owned_by", Document::string("yoke")}});
  const ServedModel model = served_model();
  if (model.context_max > 0) entry.add("max_model_len", Document::number(model.context_max));
  return entry;
}

std::string EngineService::state() const {
  const EngineState state = hub_.status().state;
  for (const auto& [name, value] : enum_names(EngineState{})) {
    if (value == state) return name;
  }
  return {};
}

GaugeValues EngineService::gauges() const {
  const HubStatus status = hub_.status();
  GaugeValues gauges{.model = options_.name,
                     .running = status.running,
                     .waiting = status.waiting,
                     .is_ready = status.state == EngineState::kReady};
  if (status.ready) {
    gauges.ranks = status.ready->ranks;
    gauges.cache_usage = std::min(1.0, static_cast<double>(status.tokens_held) /
                                           static_cast<double>(std::max<std::int64_t>(1, status.ready->cache_tokens)));
  }
  gauges.ranks_each = rank_gauges(status);
  const auto& cluster = hub_.spec().cluster;
  for (std::size_t i = 0; cluster && i < cluster->nodes.size(); ++i) {
    const auto now = node_now(hub_, i, cluster->nodes[i].name, DiskTree());
    if (!now) continue;
    const auto links = link_gauges(cluster->nodes[i], now->state);
    gauges.links.insert(gauges.links.end(), links.begin(), links.end());
  }
  return gauges;
}

Document EngineService::cluster_view() {
  Document view = serve::cluster_view(hub_, options_.name, DiskTree());
  if (options_.plan.kind == Document::Kind::kMap) view.add("plan", options_.plan);
  return view;
}

void EngineService::answer_ready(const ExchangePtr& exchange) {
  hub_.check_room(1);
  engine::Request request{.id = hub_.new_id(), .prompt = {1}, .answer_max = 1};
  request.sampling.temperature = 0;
  hub_.submit(std::move(request), std::make_shared<Canary>(exchange, hub_), kCanaryLimit);
}

void EngineService::complete(const ExchangePtr& exchange, ApiKind kind, RequestTicket ticket) {
  hub_.check_room(1, ticket.client);
  GenerationContext context{
      .hub = hub_, .model = served_model(), .limit = options_.request_limit, .client = ticket.client};
  CompletionRequest request =
      read_of_client([&] { return read_completion_request(kind, exchange->request().body, context.model); });
  context.cache_salt = ticket.cache_salt;
  context.on_end = std::move(ticket.on_end);
  std::make_shared<Generation>(exchange, std::move(request), std::move(context))->start();
}

void EngineService::tokenize(const ExchangePtr& exchange) {
  const ServedModel model = served_model();
  const Document body = parse_api_body(exchange->request().body);
  check_known_fields(body, {"model", "prompt", "messages", "tools", "add_special_tokens", "chat_template_kwargs"});
  check_model_name(body, model);
  if (!text_.tokenizer) throw Error(text_.tokenizer.error());
  std::vector<text::TokenId> ids;
  if (const auto* prompt = given_field(body, "prompt")) {
    const auto* const adds = given_field(body, "add_special_tokens");
    const bool adds_frame = !adds || api_bool(*adds, "add_special_tokens");
    ids = text_.tokenizer->encode(api_text(*prompt, "prompt"),
                                  {.frame = adds_frame ? text::Frame::kAdd : text::Frame::kNone});
  } else {
    const auto* const tools = given_field(body, "tools");
    ids = encode_chat_prompt(body, tools ? *tools : Document::null(), model).ids;
  }
  Document tokens = Document::list();
  for (const text::TokenId id : ids) tokens.items.push_back(Document::number(std::int64_t{id}));
  reply_document(exchange, metrics(),
                 Document::map({{"count", Document::number(std::ssize(ids))},
                                {"max_model_len", Document::number(model.context_max)},
                                {"tokens", std::move(tokens)}}));
}

void EngineService::detokenize(const ExchangePtr& exchange) {
  const Document body = parse_api_body(exchange->request().body);
  check_known_fields(body, {"model", "tokens"});
  check_model_name(body, served_model());
  if (!text_.tokenizer) throw Error(text_.tokenizer.error());
  const auto* const tokens = given_field(body, "tokens");
  if (!tokens || tokens->kind != Document::Kind::kList) {
    refuse_type("tokens", "an array", tokens ? *tokens : Document::null());
  }
  std::vector<text::TokenId> ids;
  for (const Document& item : tokens->items) {
    ids.push_back(static_cast<text::TokenId>(api_integer(item, "tokens", 0, text_.tokenizer->size() - 1)));
    if (!text_.tokenizer->contains(ids.back())) refuse_value("tokens", "there is no such token.");
  }
  reply_document(exchange, metrics(), Document::map({{"prompt", Document::string(text_.tokenizer->decode(ids))}}));
}

void EngineService::count_tokens(const ExchangePtr& exchange) {
  const ServedModel model = served_model();
  const Document body = chat_body_of_messages(parse_api_body(exchange->request().body), MessagesUse::kCount);
  check_model_name(body, model);
  const auto* const tools = given_field(body, "tools");
  const auto prompt = encode_chat_prompt(body, tools ? *tools : Document::null(), model);
  reply_document(exchange, metrics(), Document::map({{"input_tokens", Document::number(std::ssize(prompt.ids))}}));
}

}  // namespace yoke::serve

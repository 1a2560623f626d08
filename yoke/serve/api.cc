#include "yoke/serve/api.h"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>

#include "yoke/base/build_info.h"
#include "yoke/base/hash.h"
#include "yoke/base/ip.h"
#include "yoke/base/json.h"
#include "yoke/base/text.h"
#include "yoke/http/page.h"
#include "yoke/serve/api_error.h"
#include "yoke/serve/api_fields.h"
#include "yoke/serve/completion_request.h"

namespace yoke::serve {
using namespace literals;
namespace {

constexpr http::PageFile kPageFiles[] = {
    {"/", "yoke/serve/page/index.html", "text/html; charset=utf-8"},
    {"/page.css", "yoke/serve/page/page.css", "text/css; charset=utf-8"},
    {"/markdown.js", "yoke/serve/page/markdown.js", "text/javascript; charset=utf-8"},
    {"/chat.js", "yoke/serve/page/chat.js", "text/javascript; charset=utf-8"},
    {"/cluster.js", "yoke/serve/page/cluster.js", "text/javascript; charset=utf-8"},
};

}  // namespace

namespace {

class OneService : public ServiceTable {
 public:
  explicit OneService(Service& service) : service_(service) {}
  std::vector<Service*> all() override { return {&service_}; }
  Service& named(const std::string& name) override {
    if (name == service_.name()) return service_;
    throw unknown_model(name, service_.name());
  }

 private:
  Service& service_;
};

}  // namespace

ApiError unknown_model(const std::string& name, const std::string& known) {
  return ApiError(404, fmt::format("The model '{}' does not exist: this server has '{}'.", printable(name, 100), known),
                  "model", "model_not_found");
}

Api::Api(Service& service, ApiOptions options) : Api(std::make_shared<OneService>(service), std::move(options)) {}

Api::Api(std::shared_ptr<ServiceTable> services, ApiOptions options)
    : services_(std::move(services)),
      options_(std::move(options)),
      created_(std::time(nullptr)),
      clients_(std::make_shared<std::pair<std::mutex, std::map<std::string, int>>>()) {}

const std::vector<Api::Route>& Api::routes() {
  static const std::vector<Route> table = {
      {"GET", "/health", true, &Api::answer_health},
      {"GET", "/ready", true, &Api::answer_ready},
      {"GET", "/version", true, &Api::answer_version},
      {"GET", "/v1/models", false, &Api::answer_models},
      {"POST", "/v1/chat/completions", false, &Api::answer_chat},
      {"POST", "/v1/completions", false, &Api::answer_completion},
      {"POST", "/v1/responses", false, &Api::answer_responses},
      {"POST", "/v1/embeddings", false, &Api::answer_embeddings},
      {"POST", "/v1/messages", false, &Api::answer_messages},
      {"POST", "/v1/messages/count_tokens", false, &Api::answer_count},
      {"POST", "/tokenize", false, &Api::answer_tokenize},
      {"POST", "/detokenize", false, &Api::answer_detokenize},
      {"GET", "/metrics", false, &Api::answer_metrics},
      {"GET", "/v1/cluster", false, &Api::answer_cluster},
      {"GET", "/", true, &Api::answer_page},
      {"GET", "/page.css", true, &Api::answer_page},
      {"GET", "/markdown.js", true, &Api::answer_page},
      {"GET", "/chat.js", true, &Api::answer_page},
      {"GET", "/cluster.js", true, &Api::answer_page},
  };
  return table;
}

void Api::handle(const ExchangePtr& exchange) {
  add_headers(*exchange);
  if (options_.on_request) exchange->on_report(options_.on_request);
  try {
    route(exchange);
  } catch (const Error& error) {
    reply_error(exchange, error);
  } catch (const std::bad_alloc&) {
    reply_error(exchange, ApiError(503, "out of memory"));
  }
}

void Api::route(const ExchangePtr& exchange) {
  const http::HttpRequest& request = exchange->request();
  check_browser(request);
  if (request.method == "OPTIONS" && options_.cors_origin) return reply(exchange, {.status = 204, .content_type = ""});
  std::string allowed;
  const bool is_model = request.path.starts_with("/v1/models/");
  for (const Route& one : routes()) {
    if (one.path != request.path && !(is_model && one.path == "/v1/models")) continue;
    if (one.method == request.method || (one.method == "GET" && request.method == "HEAD")) {
      if (!one.is_open) check_key(request);
      return (this->*one.answer)(exchange);
    }
    allowed = one.method;
  }
  if (allowed.empty()) {
    throw ApiError(404, fmt::format("Unknown request URL: {} {}.", request.method, printable(request.path, 100)), {},
                   "unknown_url");
  }
  throw ApiError(405, fmt::format("Not allowed to {} on {}: use {}.", request.method, request.path, allowed), {},
                 "method_not_supported");
}

// A page of another site must not use the server of the person who looks at it (cross-site requests, DNS rebinding).
void Api::check_browser(const http::HttpRequest& request) const {
  const auto origin = request.header("origin");
  const std::string host = request.header("host").value_or("");
  if (origin && *origin != options_.cors_origin.value_or("") && *origin != "http://" + host &&
      *origin != "https://" + host) {
    throw ApiError(403, fmt::format("Requests from the page '{}' are not allowed here.", printable(*origin, 100)), {},
                   "origin_not_allowed");
  }
  const bool is_browser = origin || request.header("sec-fetch-site");
  if (is_browser && options_.is_loopback_only && !http::is_local_host(host) && !options_.cors_origin) {
    throw ApiError(403, fmt::format("This server listens on this machine only, not as '{}'.", printable(host, 100)), {},
                   "host_not_allowed");
  }
}

void Api::check_key(const http::HttpRequest& request) const {
  if (!options_.keys.are_needed()) return;
  const std::string bearer = request.header("authorization").value_or("");
  const std::string key = bearer.starts_with("Bearer ") ? bearer.substr(7) : request.header("x-api-key").value_or("");
  if (key.empty()) {
    throw ApiError(401, "You didn't provide an API key: send it as 'Authorization: Bearer KEY'.", {},
                   "missing_api_key");
  }
  if (!options_.keys.owner(key)) throw ApiError(401, "Incorrect API key provided.", {}, "invalid_api_key");
}

std::string Api::client_of(const http::Exchange& exchange) const {
  const std::string bearer = exchange.request().header("authorization").value_or("");
  const std::string key =
      bearer.starts_with("Bearer ") ? bearer.substr(7) : exchange.request().header("x-api-key").value_or("");
  if (options_.keys.are_needed()) return "key " + options_.keys.owner(key).value_or("");
  return exchange.client_address();
}

// The service of the model that a request names; of one that names none, the first.
Service& Api::asked_service(const http::HttpRequest& request) {
  const Document body = parse_api_body(request.body);
  const Document* const name = given_field(body, "model");
  return name ? services_->named(api_text(*name, "model")) : *services_->all().front();
}

// ---- replies

// Of every answer.
void Api::add_headers(http::Exchange& exchange) const {
  exchange.add_header("X-Content-Type-Options", "nosniff");
  if (!options_.cors_origin) return;
  exchange.add_header("Access-Control-Allow-Origin", *options_.cors_origin);
  exchange.add_header("Access-Control-Allow-Headers",
                      "authorization, content-type, x-api-key, anthropic-version, anthropic-beta");
  exchange.add_header("Access-Control-Expose-Headers", "X-Request-Id, X-Yoke-Resume, Retry-After");
  exchange.add_header("Vary", "Origin");
}

void Api::reply(const ExchangePtr& exchange, const http::Reply& reply) {
  services_->all().front()->metrics().count_response(reply.status);
  exchange->respond(reply);
}

void Api::reply_json(const ExchangePtr& exchange, const Document& document, int status) {
  reply(exchange, {.status = status, .body = print_json(document, JsonLayout::kOneLine) + "\n"});
}

void Api::reply_error(const ExchangePtr& exchange, const Error& error) {
  const auto* const api = dynamic_cast<const ApiError*>(&error);
  const ApiError shown = api ? *api : ApiError::of(error);
  const bool is_messages = exchange->request().path.starts_with("/v1/messages");
  const Document body = shown.json_of(is_messages ? ApiKind::kMessages : ApiKind::kChat);
  http::Reply answer{.status = shown.status(), .body = print_json(body, JsonLayout::kOneLine) + "\n"};
  if (shown.status() == 429 || shown.status() == 503) answer.headers.emplace_back("Retry-After", "5");
  if (shown.status() == 401) answer.headers.emplace_back("WWW-Authenticate", "Bearer");
  if (shown.status() == 405) answer.headers.emplace_back("Allow", "GET, POST");
  reply(exchange, answer);
}

// ---- endpoints

// Counts the unfinished requests of each client, and refuses one too many.
RequestTicket Api::take_ticket(http::Exchange& exchange) {
  const std::string client = client_of(exchange);
  if (options_.keys.are_needed()) exchange.note("client", client);
  RequestTicket ticket{.client = client};
  // What one key's prompts left in the cache does not show in the time of another key's answers.
  if (options_.keys.are_needed()) ticket.cache_salt = std::stoull(sha256_hex(client).substr(0, 16), nullptr, 16);
  {
    const std::lock_guard lock(clients_->first);
    int& count = clients_->second[client];
    if (options_.client_max > 0 && count >= options_.client_max) {
      throw ApiError(429,
                     fmt::format("You have {} unfinished requests, and {} is the limit.", count, options_.client_max),
                     {}, "rate_limit_exceeded");
    }
    ++count;
  }
  const std::shared_ptr<void> counted(nullptr, [clients = clients_, client](void*) {
    const std::lock_guard lock(clients->first);
    const auto found = clients->second.find(client);
    if (found != clients->second.end() && --found->second <= 0) clients->second.erase(found);
  });
  ticket.on_end = [counted] {};
  return ticket;
}

void Api::answer_models(const ExchangePtr& exchange) {
  const auto entry_of = [&](const Service& one) {
    Document entry = one.model_entry();
    entry.add("created", Document::number(created_));
    return entry;
  };
  const std::string& path = exchange->request().path;
  if (path == "/v1/models") {
    Document all = Document::list();
    for (const Service* one : services_->all()) all.items.push_back(entry_of(*one));
    return reply_json(exchange, Document::map({{"object", Document::string("list")}, {"data", std::move(all)}}));
  }
  reply_json(exchange, entry_of(services_->named(path.substr(11))));
}

void Api::answer_health(const ExchangePtr& exchange) {
  reply_json(exchange, Document::map({{"status", Document::string("ok")},
                                      {"engine", Document::string(services_->all().front()->state())}}));
}

// The first that is loaded, and the states of all.
void Api::answer_cluster(const ExchangePtr& exchange) {
  const std::vector<Service*> services = services_->all();
  const auto is_loaded = [](const Service* one) { return one->state() != "not loaded"; };
  const auto shown = std::find_if(services.begin(), services.end(), is_loaded);
  Document view = (shown == services.end() ? services.front() : *shown)->cluster_view();
  if (services.size() > 1) {
    Document models = Document::list();
    for (const Service* one : services) {
      models.items.push_back(
          Document::map({{"name", Document::string(one->name())}, {"state", Document::string(one->state())}}));
    }
    view.add("models", std::move(models));
  }
  reply_json(exchange, view);
}

void Api::answer_metrics(const ExchangePtr& exchange) {
  std::vector<std::string> texts;
  for (Service* one : services_->all()) {
    GaugeValues gauges = one->gauges();
    if (options_.counts) gauges.connections = options_.counts().connections;
    texts.push_back(one->metrics().text(gauges));
  }
  reply(exchange, {.content_type = "text/plain; version=0.0.4; charset=utf-8", .body = joined_expositions(texts)});
}

void Api::answer_version(const ExchangePtr& exchange) {
  reply_json(exchange, Document::map({{"version", Document::string(std::string(build_info().version))}}));
}

void Api::answer_page(const ExchangePtr& exchange) {
  if (const auto page = http::page_reply(kPageFiles, exchange->request().path)) reply(exchange, *page);
}

}  // namespace yoke::serve

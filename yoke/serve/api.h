// The endpoints of a server: routes each request, checks keys, and answers in the shape that clients of OpenAI's API
// expect. docs/serving.md lists them. Any thread may call handle().
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "yoke/http/server.h"
#include "yoke/serve/api_keys.h"
#include "yoke/serve/service.h"

namespace yoke::serve {

struct ApiOptions {
  ApiKeys keys = {};
  int client_max = 0;            // unfinished requests of one key or address; 0: any number
  bool is_loopback_only = true;  // then browsers must name this machine as they reach it
  std::optional<std::string> cors_origin = {};
  std::function<http::ServerCounts()> counts = {};
  // Of each request whose answer is over; from any thread.
  std::function<void(const http::Exchange&, const http::ExchangeReport&)> on_request = {};
};

// The models of a server, the first of which answers what names none.
class ServiceTable {
 public:
  virtual ~ServiceTable() = default;
  virtual std::vector<Service*> all() = 0;              // one at least
  virtual Service& named(const std::string& name) = 0;  // or ApiError 404
};
ApiError unknown_model(const std::string& name, const std::string& known);

class Api {
 public:
  Api(Service& service, ApiOptions options);
  Api(std::shared_ptr<ServiceTable> services, ApiOptions options);

  void handle(const std::shared_ptr<http::Exchange>& exchange);

 private:
  struct Route {
    std::string_view method, path;
    bool is_open;  // without a key
    void (Api::*answer)(const ExchangePtr& exchange);
  };
  static const std::vector<Route>& routes();

  void route(const ExchangePtr& exchange);
  void check_browser(const http::HttpRequest& request) const;
  void check_key(const http::HttpRequest& request) const;
  std::string client_of(const http::Exchange& exchange) const;
  Service& asked_service(const http::HttpRequest& request);
  RequestTicket take_ticket(http::Exchange& exchange);
  void add_headers(http::Exchange& exchange) const;
  void reply(const ExchangePtr& exchange, const http::Reply& reply);
  void reply_json(const ExchangePtr& exchange, const Document& document, int status = 200);
  void reply_error(const ExchangePtr& exchange, const Error& error);

  void complete(const ExchangePtr& exchange, ApiKind kind) {
    asked_service(exchange->request()).complete(exchange, kind, take_ticket(*exchange));
  }
  void answer_chat(const ExchangePtr& exchange) { complete(exchange, ApiKind::kChat); }
  void answer_completion(const ExchangePtr& exchange) { complete(exchange, ApiKind::kCompletion); }
  void answer_responses(const ExchangePtr& exchange) { complete(exchange, ApiKind::kResponses); }
  void answer_embeddings(const ExchangePtr& exchange);
  void answer_messages(const ExchangePtr& exchange) { complete(exchange, ApiKind::kMessages); }
  void answer_count(const ExchangePtr& exchange) { asked_service(exchange->request()).count_tokens(exchange); }
  void answer_tokenize(const ExchangePtr& exchange) { asked_service(exchange->request()).tokenize(exchange); }
  void answer_detokenize(const ExchangePtr& exchange) { asked_service(exchange->request()).detokenize(exchange); }
  void answer_ready(const ExchangePtr& exchange) { services_->all().front()->answer_ready(exchange); }
  void answer_cluster(const ExchangePtr& exchange);
  void answer_models(const ExchangePtr& exchange);
  void answer_health(const ExchangePtr& exchange);
  void answer_metrics(const ExchangePtr& exchange);
  void answer_version(const ExchangePtr& exchange);
  void answer_page(const ExchangePtr& exchange);

  const std::shared_ptr<ServiceTable> services_;
  const ApiOptions options_;
  const std::int64_t created_;
  std::shared_ptr<std::pair<std::mutex, std::map<std::string, int>>> clients_;  // unfinished requests of each
};

}  // namespace yoke::serve

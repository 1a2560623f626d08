// One model behind the API, wherever it is computed: on ranks of ours (engine_service.h), or by another server
// (upstream_service.h). The Api checks keys and limits before it asks one. Any thread may call.
#pragma once
#include <functional>
#include <memory>
#include <string>

#include "yoke/base/document.h"
#include "yoke/http/server.h"
#include "yoke/serve/api_error.h"
#include "yoke/serve/serve_metrics.h"

namespace yoke::serve {

using ExchangePtr = std::shared_ptr<http::Exchange>;

// What a request brings along: whose it is, which prefixes it may share, and whom to tell when it is over.
struct RequestTicket {
  std::string client = {};  // a key's owner or an address: clients take turns
  std::uint64_t cache_salt = 0;
  std::function<void()> on_end = {};
};

class Service {
 public:
  virtual ~Service() = default;

  virtual std::string name() const = 0;
  virtual Document model_entry() const = 0;  // of /v1/models, less created
  virtual std::string state() const = 0;     // loading, ready, …
  virtual GaugeValues gauges() const = 0;
  virtual ServeMetrics& metrics() = 0;
  virtual Document cluster_view() = 0;

  // Each answers the exchange, now or later, or throws an Error.
  virtual void answer_ready(const ExchangePtr& exchange) = 0;
  virtual void complete(const ExchangePtr& exchange, ApiKind kind, RequestTicket ticket) = 0;
  virtual void embed(const ExchangePtr& exchange, RequestTicket ticket) = 0;
  virtual void tokenize(const ExchangePtr& exchange) = 0;
  virtual void detokenize(const ExchangePtr& exchange) = 0;
  virtual void count_tokens(const ExchangePtr& exchange) = 0;  // of /v1/messages
};

// The answer as JSON, with the headers that every answer has.
void reply_document(const ExchangePtr& exchange, ServeMetrics& metrics, const Document& document, int status = 200);

}  // namespace yoke::serve

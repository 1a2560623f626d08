// A model on ranks of ours, behind the API.
#pragma once
#include "yoke/serve/completion_request.h"
#include "yoke/serve/request_hub.h"
#include "yoke/serve/service.h"

namespace yoke::serve {

struct EngineServiceOptions {
  std::string name;            // what clients call the model
  Seconds request_limit{600};  // for a whole answer
  Document plan = {};          // what the planner expects, for /v1/cluster; null: nothing
};

class EngineService : public Service {
 public:
  EngineService(RequestHub& hub, const ModelText& text, EngineServiceOptions options);

  std::string name() const override { return options_.name; }
  Document model_entry() const override;
  std::string state() const override;
  GaugeValues gauges() const override;
  ServeMetrics& metrics() override { return hub_.metrics(); }
  Document cluster_view() override;
  void answer_ready(const ExchangePtr& exchange) override;
  void complete(const ExchangePtr& exchange, ApiKind kind, RequestTicket ticket) override;
  void embed(const ExchangePtr& exchange, RequestTicket ticket) override;  // embeddings.cc
  void tokenize(const ExchangePtr& exchange) override;
  void detokenize(const ExchangePtr& exchange) override;
  void count_tokens(const ExchangePtr& exchange) override;

 private:
  ServedModel served_model() const;

  RequestHub& hub_;
  const ModelText& text_;
  const EngineServiceOptions options_;
};

}  // namespace yoke::serve

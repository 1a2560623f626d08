// A model that another server computes (vLLM, SGLang, TensorRT-LLM, llama-server, or yoke itself), behind our queue,
// keys, limits, page and metrics. Readiness is a real token every few seconds, never the server's own /health. Where it
// dies in the middle of a stream, the answer goes on as a completion of prompt + answer so far once it is back; what
// has not begun is asked again.
//
//   UpstreamService service({.server = {"127.0.0.1", 8000}});
//   service.run();                         // the owner's thread: until a signal, then until all is answered
#pragma once
#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "yoke/base/clock.h"
#include "yoke/base/socket.h"
#include "yoke/http/plain_client.h"
#include "yoke/job/deferred_signals.h"
#include "yoke/serve/fair_queue.h"
#include "yoke/serve/service.h"
#include "yoke/serve/upstream_text.h"

namespace yoke::serve {

struct UpstreamOptions {
  Endpoint server;
  std::optional<std::string> name = {};  // what clients call the model; otherwise as the server does
  std::optional<std::string> key = {};   // sent to the server as a bearer token
  int running_max = 32;
  int queue_max = 1024;
  bool resumes = true;
  bool waits_for_start = false;  // requests before it was ever there wait for it
  Seconds request_limit{600};
  Seconds drain_limit{30};
  std::function<void(const std::string&)> on_notice = {};
  std::function<void()> on_ready = {};
  std::function<void()> on_drain = {};
};

class UpstreamService : public Service {
 public:
  explicit UpstreamService(UpstreamOptions options);
  ~UpstreamService() override;

  void run();

  // Of a pool, which owns the server: where it is, looking at it in a thread of its own, and what is said of it.
  void set_server(const Endpoint& server);
  void start_looking();
  void stop_looking();
  void stop_taking();  // new requests
  void report(const std::string& text) { note(text); }

  std::string name() const override;
  Document model_entry() const override;
  std::string state() const override;
  GaugeValues gauges() const override;
  ServeMetrics& metrics() override { return metrics_; }
  Document cluster_view() override;
  void answer_ready(const ExchangePtr& exchange) override;
  void complete(const ExchangePtr& exchange, ApiKind kind, RequestTicket ticket) override;
  void embed(const ExchangePtr& exchange, RequestTicket) override { pass_on(exchange, ApiKind::kChat); }
  void tokenize(const ExchangePtr& exchange) override { pass_on(exchange, ApiKind::kChat); }
  void detokenize(const ExchangePtr& exchange) override { pass_on(exchange, ApiKind::kChat); }
  void count_tokens(const ExchangePtr& exchange) override { pass_on(exchange, ApiKind::kMessages); }

 private:
  class Asking;  // one request, from the queue to its end
  struct Waiting {
    ExchangePtr exchange;
    ApiKind kind = ApiKind::kChat;
    RequestTicket ticket;
    Document body;
    Instant came{};
  };

  Endpoint server() const;
  http::HttpQuestion question(const std::string& path, std::string body) const;
  void pass_on(const ExchangePtr& exchange, ApiKind kind);
  void ask_aside(const ExchangePtr& exchange, ApiKind kind, std::function<void()> ask);
  void answer_asides();
  Seconds canary();      // one token; throws what keeps it from coming
  Seconds ask_canary();  // the same, counted
  void look();           // at the server: a canary where nothing else shows that it works
  void look_in_turn();
  void read_metrics();
  void learn_model();
  void set_up();
  void set_down(const std::string& why);
  bool wait_until_up(Deadline deadline, const http::Exchange& exchange);
  void work();
  std::vector<std::int64_t> token_ids(const Document& asked) const;
  std::vector<std::int64_t> prompt_ids(ApiKind kind, const Document& body) const;
  std::vector<std::int64_t> ids_of_text(const std::string& text) const;
  std::vector<std::int64_t> ids_of_pieces(const std::vector<std::string>& pieces) const;
  void note(const std::string& text);

  const job::DeferredSignals held_;  // first: all threads inherit it
  const UpstreamOptions options_;
  ServeMetrics metrics_;

  mutable std::mutex mutex_;  // of all that follows
  std::condition_variable changed_;
  std::map<std::uint64_t, Waiting> waiting_;
  FairQueue queue_;  // of these, and of what runs
  std::uint64_t last_id_ = 0;
  std::deque<std::function<void()>> asides_;  // small questions, beside the queue
  std::thread aside_thread_;
  int running_ = 0;
  int idle_ = 0;  // workers
  bool is_up_ = false, was_up_ = false, ends_ = false, is_draining_ = false;
  std::string why_;  // it is not up
  Instant down_since_ = real_clock().now();
  Instant last_token_{};
  std::string model_ = "upstream";
  std::int64_t context_max_ = 0;
  bool gives_ids_ = false;    // of tokens, where it is asked to
  bool gives_usage_ = false;  // at the end of a stream, likewise
  UpstreamGauges reported_;   // by its own /metrics
  std::uint64_t losses_ = 0;
  std::deque<std::string> notices_;
  Endpoint server_;
  std::vector<std::thread> workers_;
  Instant looked_{}, metrics_read_{};  // of the thread that looks
  Seconds metrics_pause_{};
  std::atomic<bool> looks_{false};
  std::thread looking_;
};

}  // namespace yoke::serve

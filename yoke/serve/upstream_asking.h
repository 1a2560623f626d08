// One request to another server, from the queue to the end of its answer. Internal to upstream_service.cc and
// upstream_asking.cc.
#pragma once
#include "yoke/serve/upstream_service.h"

namespace yoke::serve {

class UpstreamService::Asking {
 public:
  Asking(UpstreamService& service, Waiting& asked);
  void run();

 private:
  enum class Ended { kDone, kBroken, kLeft };

  Ended ask_whole();
  Ended ask_stream();
  Ended read_stream(http::AnswerStream& stream);
  void report_wait();
  void address();
  bool take_events(std::string_view bytes);
  void resume();
  bool pass_on_refusal(http::AnswerStream& stream, const http::HttpAnswer& head);
  void begin_stream(const http::HttpAnswer& head);
  void count_chunk();
  void count_pieces(std::string_view bytes);
  void fail(const ApiError& error);
  void finish(const char* reason);
  std::string path() const;
  bool knows_text() const { return asked_.kind == ApiKind::kChat || asked_.kind == ApiKind::kCompletion; }

  UpstreamService& service_;
  Waiting& asked_;
  const Instant placed_ = real_clock().now();  // its place in the queue was taken
  const Deadline deadline_;
  const bool streams_;
  bool drops_usage_ = false;  // the client did not ask for it, we did
  bool has_begun_ = false;    // the client has the head of a stream
  bool has_sent_ = false;     // and some of its body
  bool is_done_ = false;      // the stream's last event came
  bool must_resume_ = false;  // before anything else is asked
  std::string why_;           // it broke
  SseReader events_;
  UpstreamAnswer answer_;
  std::optional<ResumePoint> resumed_;
  std::optional<Document> resumed_body_;
  Instant last_{};
  Instant last_wait_{};
  std::optional<Instant> first_;
};

}  // namespace yoke::serve

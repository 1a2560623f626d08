// The asker's end of an engine: submits requests, and takes what comes back. It knows each request's prompt and the
// tokens that it was already given: when rank 0 is started anew it hands the unfinished ones over again, and the asker
// only sees a pause.
//
//   Front front(listen_unix(folder / "front"));            // rank 0 connects, and again after its death
//   front.submit({.id = 1, .prompt = ids, .answer_most = 100});
//   while (auto event = front.next(Deadline::after(1_s))) …
//
// One thread owns a Front; only end() may come from any thread.
#pragma once
#include <deque>
#include <map>
#include <mutex>
#include <optional>

#include "yoke/base/clock.h"
#include "yoke/base/socket.h"
#include "yoke/engine/messages.h"

namespace yoke {

class Front {
 public:
  explicit Front(Socket listener);  // of a Unix-domain socket where rank 0 comes
  // Either that, or a connection to an engine in this process: its end is the end.
  enum class Ends { kListener, kConnection };
  Front(Socket socket, Ends ends);
  Front(Front&&) = delete;

  // The id must be none of an unfinished request. Sent when there is an engine, and again to each that follows.
  void submit(const Request& request);
  void cancel(std::uint64_t id);  // RequestEnded comes, if it has not before

  // The next event; nothing at the deadline. Throws the Error of EngineFailed, the reason given to end(), and
  // kInterrupted. Recovery from rank 0's own death is told as EngineRecovered, too; what the new rank 0 says about
  // its loading is not told.
  std::optional<EngineEvent> next(Deadline deadline);

  // There will be no more ranks, for this reason: next() throws it once all that was sent has been read.
  void end(const Error& reason);

 private:
  struct Unfinished {
    Request request;  // with the answer so far
    bool cancelled = false;
    std::int64_t logits_next = 0;  // rows of the prompt's logits before this position were given
  };
  void send(const FrontMessage& message);
  void push_out();
  void wait(Deadline deadline);
  void take_connection();
  void take_bytes();
  void lose_connection();
  void resume();
  std::optional<EngineEvent> take_event();
  std::optional<EngineEvent> passed(EngineEvent event);
  bool is_news(LogitsMade& logits);
  void throw_if_over();

  Socket listener_;    // none where there can be only one connection
  Socket connection_;  // none before the first rank 0, and between two
  EngineMessageReader reader_;
  std::string outgoing_;
  std::map<std::uint64_t, Unfinished> unfinished_;
  std::deque<EngineEvent> made_here_;  // events that no engine sent
  bool was_ready_ = false;             // some rank 0 was: what follows is a recovery
  std::optional<Instant> lost_at_;     // the engine of which somebody was ready is gone since then
  std::optional<Error> failure_;       // what EngineFailed said
  std::mutex end_mutex_;               // of the following
  std::optional<Error> end_;
};

}  // namespace yoke

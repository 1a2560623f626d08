// The client's end of an engine: submits requests, and takes what comes back. It knows each request's prompt and the
// tokens that it was already given: when rank 0 is started again it hands the unfinished ones over again, and the
// client only sees a pause.
//
//   EngineConnection connection(listen_unix(folder / "client"));  // rank 0 connects, and again after its death
//   connection.submit({.id = 1, .prompt = ids, .answer_max = 100});
//   while (auto event = connection.next(Deadline::after(1_s))) …
//
// One thread takes events (next()); submit(), cancel() and end() may come from any thread, are sent at once, and wake
// the one that waits.
#pragma once
#include <deque>
#include <map>
#include <mutex>
#include <optional>

#include "yoke/base/clock.h"
#include "yoke/base/files.h"
#include "yoke/base/socket.h"
#include "yoke/engine/messages.h"

namespace yoke::engine {

class EngineConnection {
 public:
  explicit EngineConnection(Socket listener);  // of a Unix-domain socket where rank 0 comes
  // Either that, or a connection to an engine in this process: its end is the end.
  enum class Ends { kListener, kConnection };
  EngineConnection(Socket socket, Ends ends);
  EngineConnection(EngineConnection&&) = delete;

  // Error(kConflict) where the id is that of an unfinished request; one that is too large to be sent ends with an
  // error. Sent when there is an engine, and again to each that follows.
  void submit(const Request& request);
  void cancel(std::uint64_t id);  // RequestEnded comes, if it has not before
  // EngineAccount comes, unless rank 0 is lost before it.
  void ask_account();

  // The next event; nothing at the deadline. Throws the Error of EngineFailed, the reason given to end(), and
  // kInterrupted. Recovery from rank 0's own death is reported as EngineRecovered, too; what the new rank 0 says about
  // its loading is not told.
  std::optional<EngineEvent> next(Deadline deadline);

  // There will be no more ranks, for this reason: next() throws it once all that was sent has been read.
  void end(const Error& reason);

 private:
  struct Unfinished {
    Request request;  // with the answer so far
    bool cancelled = false;
    std::int64_t logits_next = 0;  // rows of the prompt's logits before this position were given
    std::int64_t read_max = 0;     // tokens of the prompt that any rank 0 has read
  };
  void send(std::string bytes);
  void push_out();
  void wake() const;
  void wait(Deadline deadline, std::unique_lock<std::mutex>& lock);
  void take_connection();
  void take_bytes();
  void lose_connection();
  void resume();
  std::optional<EngineEvent> take_event();
  std::optional<EngineEvent> passed(EngineEvent event);
  bool is_news(LogitsEvent& logits);
  void throw_if_over();

  std::mutex mutex_;   // of all that follows, but while next() sleeps
  UniqueFd wake_;      // an eventfd, beside the socket
  Socket listener_;    // none where there can be only one connection
  Socket connection_;  // none before the first rank 0, and between two
  EngineMessageReader reader_;
  std::string outgoing_;
  std::size_t sent_ = 0;  // so much of it has gone
  std::map<std::uint64_t, Unfinished> unfinished_;
  std::deque<EngineEvent> made_here_;   // events that no engine sent
  bool was_ready_ = false;              // some rank 0 was: what follows is a recovery
  std::optional<Instant> lost_at_;      // the engine of which somebody was ready is gone since then
  std::optional<std::uint64_t> alone_;  // the request that the engine runs alone
  std::optional<Error> failure_;        // what EngineFailed said
  std::optional<Error> end_;
};

}  // namespace yoke::engine

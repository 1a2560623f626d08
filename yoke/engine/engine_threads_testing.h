// An engine whose ranks are threads, for tests: asked through a real EngineConnection, over a real socket.
//
//   Engine engine({.model = folder}, 2);
//   const Answer answer = engine.ask(request);
#pragma once
#include <functional>
#include <map>
#include <optional>
#include <thread>
#include <vector>

#include "yoke/comm/local/local.h"
#include "yoke/engine/engine_connection.h"
#include "yoke/engine/engine_sockets.h"
#include "yoke/engine/rank.h"
#include "yoke/rank/local_world.h"

namespace yoke::engine {

// What came back for one request.
struct Answer {
  std::vector<text::TokenId> tokens;
  std::int64_t logit_rows = 0;
  std::optional<RequestEnded> ended;
};

class Engine {
 public:
  Engine(const EngineOptions& options, int ranks) : Engine(options, ranks, make_engine_sockets()) {}
  Engine(EngineOptions options, int ranks, EngineSocketPair line, const RankParts& parts = {})
      : connection_(std::move(line.of_client), EngineConnection::Ends::kConnection) {
    options.threads = 1;
    auto comms = comm::local::make_local(ranks);
    for (int rank = 0; rank < ranks; ++rank) {
      std::optional<Socket> own;
      if (rank == 0) own = std::move(line.of_engine);
      threads_.emplace_back(
          [options, parts, own = std::move(own), comm = std::move(comms[static_cast<std::size_t>(rank)])]() mutable {
            try {
              run_engine_rank(*rank::make_local_world(std::move(comm)), options, std::move(own), parts);
            } catch (const Error&) {  // rank 0 has told the client
            }
          });
    }
  }

  EngineConnection& connection() { return connection_; }

  // Until all of these have ended; each event may be looked at.
  std::map<std::uint64_t, Answer> wait_for(std::size_t count,
                                           const std::function<void(const EngineEvent&)>& look = {}) {
    std::map<std::uint64_t, Answer> answers;
    std::size_t ended = 0;
    const Deadline deadline = Deadline::after(Seconds{900});
    while (ended < count) {
      const auto event = connection_.next(deadline);
      if (!event) throw Error(ErrorCode::kTimeout, "the engine did not answer");
      if (look) look(*event);
      if (const auto* token = std::get_if<TokenEvent>(&*event)) answers[token->id].tokens.push_back(token->token.id);
      if (const auto* logits = std::get_if<LogitsEvent>(&*event))
        answers[logits->id].logit_rows += logits->rows.extent(0);
      if (const auto* end = std::get_if<RequestEnded>(&*event)) {
        answers[end->id].ended = *end;
        ++ended;
      }
    }
    return answers;
  }
  Answer ask(const Request& request) {
    connection_.submit(request);
    return wait_for(1)[request.id];
  }

 private:
  std::vector<std::jthread> threads_;
  EngineConnection connection_;  // goes first: the line closes, and the threads end
};

}  // namespace yoke::engine

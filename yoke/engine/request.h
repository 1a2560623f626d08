// What goes into an engine and what comes out of it, as plain data. Between the process that asks (a Front) and rank 0
// these travel as messages (messages.h).
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "yoke/base/error.h"
#include "yoke/base/units.h"
#include "yoke/tensor/tensor.h"
#include "yoke/text/sampling.h"

namespace yoke {

enum class LogitsWanted { kNone, kLast, kAll };
constexpr auto enum_names(LogitsWanted) {
  return std::array{std::pair{"none", LogitsWanted::kNone}, std::pair{"last", LogitsWanted::kLast},
                    std::pair{"all", LogitsWanted::kAll}};
}

struct Request {
  std::uint64_t id = 0;  // the asker's own
  std::vector<TokenId> prompt;
  std::vector<TokenId> answer;  // so far: where a request is taken up again after a death
  std::int64_t answer_most = 0;
  std::vector<TokenId> stop_ids;
  SamplingOptions sampling;
  LogitsWanted logits = LogitsWanted::kNone;  // of the prompt's tokens: all, or of the last
};

// How far rank 0 is; the others load at the same pace.
struct LoadProgress {
  Bytes done;
  Bytes total;
};

struct EngineReady {
  int ranks = 1;
  std::vector<std::string> nodes;  // of each rank; empty where the launcher does not say
  std::string transport;           // as Communicator::describe() tells it
  std::string backend;
  std::int64_t vocabulary = 0;
  std::int64_t context_most = 0;         // tokens of one sequence, prompt and answer
  std::int64_t cache_tokens = 0;         // that the cache holds, of all sequences
  std::vector<Bytes> weights_each = {};  // held by each rank
  Bytes cache_each;                      // of each rank
};

// How far a prompt that takes several steps is.
struct PromptRead {
  std::uint64_t id = 0;
  std::int64_t done = 0;  // tokens
  std::int64_t total = 0;
};

struct TokenMade {
  std::uint64_t id = 0;
  Sampled token;
};

struct LogitsMade {
  std::uint64_t id = 0;
  std::int64_t position = 0;  // of the first row
  Tensor rows;                // f32 [rows, V]
};

enum class FinishReason { kStop, kLength, kCancelled };
constexpr auto enum_names(FinishReason) {
  return std::array{std::pair{"stop", FinishReason::kStop}, std::pair{"length", FinishReason::kLength},
                    std::pair{"cancelled", FinishReason::kCancelled}};
}
// Why an answer has ended; nothing where more tokens may come.
std::optional<FinishReason> finished(const Request& request);

struct RequestEnded {
  std::uint64_t id = 0;
  FinishReason reason = FinishReason::kStop;
  std::optional<Error> error;  // refused: too long, no tokens, no such option
};

// A rank died, and the group goes on: unfinished requests stand where they stood.
struct EngineRecovered {
  Seconds after;  // from the failure to the first step of the new group
  std::string cause;
};

// The engine's end.
struct EngineFailed {
  Error error;
};

using EngineEvent = std::variant<LoadProgress, EngineReady, PromptRead, TokenMade, LogitsMade, RequestEnded,
                                 EngineRecovered, EngineFailed>;

}  // namespace yoke

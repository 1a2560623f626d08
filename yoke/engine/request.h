// What goes into an engine and what comes out of it, as plain data. Between the process that asks (an EngineConnection)
// and rank 0 these travel as messages (messages.h).
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "yoke/base/error.h"
#include "yoke/base/units.h"
#include "yoke/spec/rank_trace.h"
#include "yoke/spec/step_account.h"
#include "yoke/tensor/tensor.h"
#include "yoke/text/sampling.h"

namespace yoke::engine {

// Of the prompt's tokens: their logits, or their states (what goes into the head: after the last norm), of which
// embeddings are made.
enum class LogitsWanted { kNone, kLast, kAll, kLastState, kStates };
constexpr auto enum_names(LogitsWanted) {
  return std::array{std::pair{"none", LogitsWanted::kNone}, std::pair{"last", LogitsWanted::kLast},
                    std::pair{"all", LogitsWanted::kAll}, std::pair{"last-state", LogitsWanted::kLastState},
                    std::pair{"states", LogitsWanted::kStates}};
}

struct Request {
  std::uint64_t id = 0;  // the client's own
  std::vector<text::TokenId> prompt;
  std::vector<text::TokenId> answer;  // so far: where a request is taken up again after a death
  std::int64_t answer_max = 0;
  std::vector<text::TokenId> stop_ids;
  text::SamplingOptions sampling;
  std::string grammar = {};  // what the answer may be, as text/grammar.h reads it; empty: anything
  LogitsWanted logits = LogitsWanted::kNone;
  // Requests of another salt do not share cached prefixes with this one: what was asked before shows in the time that
  // an answer takes.
  std::uint64_t cache_salt = 0;
  int recoveries = 0;         // of the engine while this request was in the step that failed, since it last got further
  std::int64_t furthest = 0;  // so many of its tokens were computed before the last recovery
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
  std::int64_t context_max = 0;          // tokens of one sequence, prompt and answer
  std::int64_t context_of_model = 0;     // that it was trained for
  std::int64_t cache_tokens = 0;         // that the cache holds, of all sequences
  std::vector<Bytes> weights_each = {};  // held by each rank
  Bytes cache_each;                      // of each rank
};

// How far a prompt that takes several steps is.
struct PromptProgress {
  std::uint64_t id = 0;
  std::int64_t done = 0;  // tokens
  std::int64_t total = 0;
  std::int64_t cached = 0;  // of those, that earlier prompts left in the cache
};

// One step has ended.
struct StepDone {
  std::int64_t tokens = 0;       // of prompts and answers that it computed
  std::int64_t preemptions = 0;  // sequences that were put off for want of pages since the step before
};

struct TokenEvent {
  std::uint64_t id = 0;
  text::SampledToken token;
};

struct LogitsEvent {
  std::uint64_t id = 0;
  std::int64_t position = 0;  // of the first row
  tensor::Tensor rows;        // f32 [rows, V]; of states [rows, C]
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

// This request runs alone from now on, until it ends: the engine failed twice while it ran, perhaps because of it.
struct RequestAlone {
  std::uint64_t id = 0;
};

// What the steps so far were made of, as it was asked for.
struct EngineAccount {
  spec::StepAccount account;
  std::vector<spec::RankTrace> traces = {};  // where the engine keeps them
};

// The engine's end.
struct EngineFailed {
  Error error;
};

using EngineEvent = std::variant<LoadProgress, EngineReady, PromptProgress, TokenEvent, LogitsEvent, RequestEnded,
                                 EngineRecovered, RequestAlone, EngineAccount, EngineFailed, StepDone>;

}  // namespace yoke::engine

// Many requests on one engine, measured: how many tokens a second all of them get, how long the first token takes, and
// whether every answer is the one that the request gets alone.
//
//   EngineLoad load(host);                       // waits until the model is loaded
//   const LoadRow alone = load.one_by_one(requests), together = load.at_once(requests);
//
// One thread owns it.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <vector>

#include "yoke/serve/engine_host.h"

namespace yoke::serve {

using TokenList = std::vector<text::TokenId>;

struct LoadRow {
  int at_once = 1;
  std::int64_t tokens = 0;  // of all answers
  Seconds time;             // from the first request to the last token
  Seconds first_token;      // median over the requests
  Seconds token;            // median between two tokens of an answer
  std::map<std::uint64_t, TokenList> answers;

  double rate() const { return time.value > 0 ? static_cast<double>(tokens) / time.value : 0; }
};

// What a long prompt does to answers that are under way: the time between two of their tokens before it comes and while
// it is read.
struct FairnessTimes {
  std::int64_t tokens = 0;  // of the prompt
  int answers = 0;          // under way
  Seconds before, during;   // medians
  Seconds reading;          // of the prompt
};

class EngineLoad {
 public:
  // Throws what the engine says instead of being ready. `on_notice` of the host's spec tells what happens to ranks.
  explicit EngineLoad(EngineHost& host);

  const engine::EngineReady& ready() const { return ready_; }
  LoadRow one_by_one(const std::vector<engine::Request>& requests);
  LoadRow at_once(const std::vector<engine::Request>& requests);
  FairnessTimes beside_prompt(std::int64_t tokens, int answers);

 private:
  std::optional<engine::EngineEvent> next();
  // Until it returns false; takes the token's request. Throws what a request ended with.
  void take_tokens(const std::function<bool(std::uint64_t id)>& take);
  void finish(LoadRow& row, Instant start);
  void run(const std::vector<engine::Request>& requests, LoadRow& row);

  EngineHost& host_;
  engine::EngineReady ready_;
  std::vector<double> first_, between_;  // of the row that is being measured
  int ended_ = 0;                        // requests, while take_tokens() is used
};

struct RandomRequests {
  std::int64_t count = 6;
  std::int64_t prompt = 16;  // tokens
  std::int64_t answer = 32;
  std::int64_t vocabulary = 0;
  std::uint64_t salt = 0;  // no prefix is shared with requests of another salt
  std::uint64_t seed = 1;
};
// Greedy, with prompts of random tokens; the same for the same numbers, but for the salt.
std::vector<engine::Request> random_requests(const RandomRequests& options);

// The time to the first token of a prompt whose beginning nobody has read before, and of one that shares it.
struct PrefixTimes {
  std::int64_t tokens = 0;
  Seconds cold, warm;
};
PrefixTimes measure_prefix(EngineLoad& load, std::int64_t tokens);

}  // namespace yoke::serve

// An engine of another project, or a server of yoke, that was watched for a while: what its metrics, the port counters
// and the GPUs say, against the plan. Pure.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "yoke/why/answer.h"
#include "yoke/why/evaluate_run.h"

namespace yoke::why {

// One rail of one node while it was watched.
struct WatchedRail {
  std::string node, rail, interface;
  bool is_up = true;
  double bytes_per_second = 0;  // both directions
  double errors = 0, retransmits = 0, discards = 0;
};

struct WatchedGpu {
  std::string node;
  int index = 0;
  double busy = 0;                        // 0 to 1
  double held_down = 0;                   // share of the time in which heat or power held the clock down
  std::vector<std::string> clock_limits;  // "thermal", "power cap"
};

struct WatchedNode {
  std::string name;
  double cpu_busy = 0;     // 0 to 1
  double memory_full = 0;  // share of the time in which all tasks waited for memory
};

// What the engine's metrics said, averaged over the watch; what it does not publish is absent.
struct WatchedEngine {
  std::string kind, model;
  double seconds = 0;            // of the watch
  double tokens_per_second = 0;  // made
  bool is_counted = true;        // false: its metrics have no count of tokens that we know
  std::optional<double> prompt_tokens_per_second = {};
  std::optional<double> running = {}, waiting = {};  // requests
  std::optional<double> cache_usage = {};            // 0 to 1
  std::optional<double> preemptions = {};            // during the watch
};

// The plan of the same engine with as many requests.
struct PlannedEngine {
  PlannedStep step;    // of all running requests together
  double prompts = 0;  // of a step: prompts read beside
  double rate = 0;     // tokens/s
  double low = 0, high = 0;
  double prefill_rate = 0;  // prompt tokens/s
};

struct EngineQuestion {
  std::string subject;
  WatchedEngine engine;
  std::vector<WatchedNode> nodes = {};
  std::vector<WatchedRail> rails = {};
  std::vector<WatchedGpu> gpus = {};
  std::optional<PlannedEngine> planned = {};
  std::string options = {};
};

Answer evaluate_engine(const EngineQuestion& question);

}  // namespace yoke::why

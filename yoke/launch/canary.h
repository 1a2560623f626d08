// Asks a serving engine for one token every two seconds, in a thread of its own. A full queue is no fault: the engine's
// own count of tokens counts as life too.
#pragma once
#include <atomic>
#include <chrono>
#include <string>
#include <thread>

#include "yoke/base/units.h"

namespace yoke::launch {

// The sum of the counters of generated tokens in a page of /metrics; -1 where there is none. Of vLLM
// (vllm:generation_tokens_total), SGLang (sglang:generation_tokens_total) and llama.cpp
// (llamacpp:tokens_predicted_total).
double count_tokens(std::string_view metrics);
// Whether an answer of /v1/completions holds a choice.
bool is_token(int status, std::string_view body);

class Canary {
 public:
  Canary(int port, std::string model);
  Canary(const Canary&) = delete;
  Canary& operator=(const Canary&) = delete;
  ~Canary();

  bool has_answered() const { return answered_; }
  Seconds silent_for() const;  // since the last sign of life, or since the start
  Seconds ready_after() const { return Seconds{ready_after_.load()}; }

 private:
  using Clock = std::chrono::steady_clock;
  void run();
  bool ask_token();
  bool tokens_grew();
  void note_life();

  int port_;
  std::string model_;
  Clock::time_point start_ = Clock::now();
  std::atomic<Clock::rep> last_;
  std::atomic<bool> answered_{false};
  std::atomic<double> ready_after_{0};
  std::atomic<bool> ends_{false};
  double tokens_ = -1;
  std::thread thread_;
};

}  // namespace yoke::launch

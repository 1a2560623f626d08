// Samples of this machine, one after the other: the far end of `yoke watch`. It asks little and keeps what it found, so
// that a sample a second takes less than 1% of one core. NVML and slow files have their own pace.
//
//   Sampler sampler({});
//   const Sample sample = sampler.take();
//
// One thread owns it.
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "yoke/agent/action.h"
#include "yoke/base/process.h"
#include "yoke/watch/sample.h"

namespace yoke::watch {

struct SamplerOptions {
  Seconds interval{1};
  std::vector<int> engine_ports = {};  // empty: the usual ones
};
Document to_json(const SamplerOptions& options);
void from_json(const Document& document, SamplerOptions& options);

inline constexpr double kMinInterval = 0.2, kMaxInterval = 60;  // seconds

class Sampler {
 public:
  explicit Sampler(const SamplerOptions& options);
  Sampler(const Sampler&) = delete;
  Sampler& operator=(const Sampler&) = delete;
  ~Sampler();

  Sample take();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// The agent's action "watch": names the program whose lines are the samples, as JSON. The question is a SamplerOptions.
inline constexpr const char* kSamplerWord = "sampler";
Command sampler_command(const Document& question);
// That program: ends with its input. Nothing where the arguments are not what yoke gives it.
std::optional<int> run_sampler_part(const std::vector<std::string>& arguments);

}  // namespace yoke::watch

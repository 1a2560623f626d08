// Time to read a prompt and to make a token. Pure arithmetic; every term is in docs/planning.md with an example.
#pragma once
#include <array>
#include <string_view>
#include <utility>
#include <vector>

#include "yoke/plan/collectives.h"
#include "yoke/plan/format.h"

namespace yoke::plan {

enum class Engine { kYoke, kVllm, kSglang, kLlamaCpp, kTensorRt };
constexpr auto enum_names(Engine) {
  return std::array{std::pair{"yoke", Engine::kYoke}, std::pair{"vllm", Engine::kVllm},
                    std::pair{"sglang", Engine::kSglang}, std::pair{"llama.cpp", Engine::kLlamaCpp},
                    std::pair{"trtllm", Engine::kTensorRt}};
}
std::string_view to_string(Engine engine);

struct Layout {
  int tensor = 1;    // ranks that share each layer
  int pipeline = 1;  // stages
  int replicas = 1;  // copies, each with its own requests
  int experts = 1;   // ranks over which experts are spread; 1: split like the rest
  int ranks() const { return tensor * pipeline * replicas; }
};

// What each rank of a stage holds in weights, of the largest part, as the engine's backend packs them.
struct RankWeights {
  int ranks = 1;  // that share each layer
  double bytes = 0;
  double work_space = 0;   // of a step
  int stages = 1;          // of the engine
  double layers_part = 1;  // of the model's layers that this stage has
  friend bool operator==(const RankWeights&, const RankWeights&) = default;
};

struct ServeCase {
  spec::ModelFacts model;
  WeightFormat format{};
  double file_bytes = 0;                       // of the checkpoint, where known exactly
  double read_bytes_given = 0;                 // of one token at batch 1, where published
  std::vector<RankWeights> rank_weights = {};  // of every stage, where the engine counted the files
  Engine engine = Engine::kVllm;
  bool graphs = true;  // CUDA graphs
  Machines machines;
  Layout layout;
  double batch = 1;          // sequences at once, over all replicas
  double sequences_max = 0;  // of one replica, 0: no limit
  double context = 512;      // tokens in the cache while decoding
  double prompt = 0;         // tokens of a request's prompt; mixed into decode steps under load
  double generated = 0;      // tokens of a request's answer
  double cache_bytes = 2;    // of one value
  double chunk = 2048;       // tokens of a prompt that are read at once
  int draft = 0;             // tokens that a draft proposes in each step; 0: none
  double acceptance = 0;     // of one proposed token; 0: the default
};

// Where a step's time goes, in seconds.
struct StepTime {
  double weights = 0;
  double cache = 0;
  double fixed = 0;  // launches, per layer and per stream
  double arithmetic = 0;
  double exchange = 0;
  double bubble = 0;
  double prompts = 0;  // other requests' prompts
  double total() const { return weights + cache + fixed + arithmetic + exchange + bubble + prompts; }
};

// Dense FLOP/s in that arithmetic; what a GPU has no units for is widened to BF16.
double peak_rate(const GpuModel& gpu, Arithmetic arithmetic);

double weight_bytes(const ServeCase& c);                                           // of the whole model in memory
double read_bytes(const ServeCase& c, double tokens, const Constants& constants);  // of weights in one step
// Of one rank's weights that compete for its processor's caches. Tokens of a mixture choose other experts each time, so
// all of them count.
double rank_bytes(const ServeCase& c, const Constants& constants);
double cache_bytes_per_sequence(const ServeCase& c, double tokens);  // read
double cache_bytes_held(const ServeCase& c, double tokens);          // by this engine's rules

StepTime decode_step(const ServeCase& c, const Constants& constants);
double decode_rate(const ServeCase& c, const Constants& constants);  // tokens/s of all sequences together
// Reading `fresh` new tokens on top of `depth` that are in the cache.
double prefill_seconds(const ServeCase& c, double fresh, double depth, const Constants& constants);
// With as many sequences as memory holds; output tokens/s of all GPUs.
double full_rate(const ServeCase& c, const Constants& constants);

}  // namespace yoke::plan

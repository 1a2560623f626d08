// How fast a model runs on these ranks, apart from an engine around it: prompts are read and tokens are made step by
// step, with the ceilings of the machine measured in the same run, and every operation against them.
//
//   const ModelSpeed speed = measure_model_speed(world, {.folder = "model", .prompt = 512, .tokens = 64});
//
// All ranks call it together; each returns its own times. Every round must make the same tokens: Error(kInternal).
#pragma once
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "yoke/ops/timed_backend.h"
#include "yoke/rank/world.h"
#include "yoke/weights/make_model.h"

namespace yoke::bench {

using ops::OperationTime;

struct ModelSpeedOptions {
  std::filesystem::path folder;                     // of a model; or, where it is empty,
  std::optional<weights::MakeModelOptions> made{};  // one that is made in memory
  std::string backend = "auto";
  bool exact = false;
  int threads = 0;            // of each rank; 0: the processors divided among the ranks of this machine
  std::int64_t prompt = 512;  // tokens that are read in each round
  std::int64_t tokens = 64;   // that are made in each round, for each sequence
  std::int64_t context = 0;   // tokens that are in the cache before
  int batch = 1;              // sequences that are at work at once
  int rounds = 3;
  // One rank's work of several, without the others: sums over ranks are left out. Of one: all of it.
  int part = 0, parts = 1;
};

struct RateSamples {
  std::vector<double> seconds;  // of each round
  double tokens = 0;            // in each round, of all sequences
  double median() const;        // tokens a second
  double low() const;           // quartiles
  double high() const;
};

struct ModelCeilings {
  double read = 0;        // bytes a second, with the threads of this rank
  double arithmetic = 0;  // operations a second, of the kind that the weights want
  double plain = 0;       // of f32
  std::string kind;       // "int8"
};

struct ModelSpeed {
  std::string backend, source;
  int ranks = 1, threads = 1;
  int part = 0, parts = 1;  // as in the options
  double weight_bytes = 0;  // of this rank
  double step_bytes = 0;    // that this rank reads for a step of one token
  double cache_bytes = 0;   // of this rank
  double peak_memory = 0;   // the most that this process has held
  double load_seconds = 0;
  ModelCeilings ceilings;
  RateSamples prefill, decode;
  std::vector<OperationTime> prefill_operations, decode_operations;  // of all rounds
};

// `between` is called by rank 0 before each round; a peer is measured there.
ModelSpeed measure_model_speed(rank::World& world, const ModelSpeedOptions& options,
                               const std::function<void(int round)>& between = {});

// The least time that an operation can take, and the share of it that it took.
double limit_seconds(const OperationTime& time, const ModelCeilings& ceilings);

}  // namespace yoke::bench

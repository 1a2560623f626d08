// What an engine is made of, the same on all ranks.
#pragma once
#include <filesystem>
#include <optional>
#include <string>

#include "yoke/base/units.h"
#include "yoke/tensor/dtype.h"

namespace yoke::engine {

struct EngineOptions {
  std::filesystem::path model;
  std::string backend = "ref";    // of ops/backends.h; commands say "auto", the fastest there is
  bool exact = false;             // f32 throughout, where the backend would round for speed
  int threads = 0;                // of each rank; 0: the node's processors divided among its ranks
  std::int64_t context_max = 0;   // tokens of one sequence; 0: the model's, as far as default_cache_tokens() goes
  std::int64_t cache_tokens = 0;  // of all sequences; 0: context_max
  tensor::DType cache_type = tensor::DType::kF32;  // of keys and values: f32, bf16 or f16
  std::int64_t chunk_tokens = 512;                 // of prompts that one step takes
  int sequences_max = 64;                          // in one step
  bool trace = false;                              // keep what each rank does and when, for ask_account()
};

}  // namespace yoke::engine

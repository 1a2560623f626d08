// What an engine is made of, the same on all ranks.
#pragma once
#include <filesystem>
#include <optional>
#include <string>

#include "yoke/base/units.h"
#include "yoke/tensor/dtype.h"

namespace yoke {

struct EngineOptions {
  std::filesystem::path model;
  std::string backend = "ref";
  int threads = 0;                  // of each rank; 0: the node's processors divided among its ranks
  std::int64_t context_most = 0;    // tokens of one sequence; 0: the model's, or what memory allows where that is less
  std::int64_t cache_tokens = 0;    // of all sequences; 0: context_most
  DType cache_type = DType::kF32;   // of keys and values: f32, bf16 or f16
  std::int64_t chunk_tokens = 512;  // of prompts that one step takes
  int sequences_most = 64;          // in one step
};

}  // namespace yoke

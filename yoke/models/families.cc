#include "yoke/models/families.h"

#include "yoke/base/error.h"
#include "yoke/models/llama/llama.h"
#include "yoke/models/qwen3_moe/qwen3_moe.h"
#include "yoke/spec/model_config.h"

namespace yoke::models {

std::unique_ptr<ModelOutline> outline_model(const Document& config) {
  switch (spec::model_shape_from_config(config).architecture) {
    case spec::ModelArchitecture::kQwen3Moe:
      return std::make_unique<models::qwen3_moe::Qwen3MoeOutline>(qwen3_moe::read_qwen3_moe_config(config));
    case spec::ModelArchitecture::kLlama:
    case spec::ModelArchitecture::kMistral:
    case spec::ModelArchitecture::kQwen2:
    case spec::ModelArchitecture::kQwen3:
      break;
  }
  return std::make_unique<models::llama::LlamaOutline>(llama::read_llama_config(config));
}

std::vector<int> ModelOutline::rank_counts(const weights::WeightSource& source, const ops::Backend& ops,
                                           int most) const {
  std::vector<int> counts;
  for (int ranks = 1; ranks <= most; ++ranks) {
    try {
      check_split(ranks);
      try_layer(source, {.rank = 0, .size = ranks}, ops);
      counts.push_back(ranks);
    } catch (const Error&) {
      continue;
    }
  }
  return counts;
}

}  // namespace yoke::models

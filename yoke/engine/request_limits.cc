#include "yoke/engine/request_limits.h"

#include <algorithm>

#include "yoke/base/files.h"
#include "yoke/base/json.h"
#include "yoke/models/llama/config.h"

namespace yoke {

SchedulerLimits request_limits(const EngineOptions& engine) {
  const std::filesystem::path file = engine.model / "config.json";
  const LlamaConfig config = read_llama_config(parse_json(read_file(file), file.native()));
  const bool is_given = engine.context_most > 0;
  return {.vocabulary = config.V,
          .context_most = is_given ? std::min(engine.context_most, config.context) : config.context};
}

}  // namespace yoke

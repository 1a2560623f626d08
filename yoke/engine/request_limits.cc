#include "yoke/engine/request_limits.h"

#include <algorithm>

#include "yoke/base/files.h"
#include "yoke/base/json.h"
#include "yoke/models/families.h"

namespace yoke::engine {

SchedulerLimits request_limits(const EngineOptions& engine) {
  const std::filesystem::path file = engine.model / "config.json";
  const models::LanguageFacts facts = models::outline_model(parse_json(read_file(file), file.native()))->facts();
  const bool is_given = engine.context_max > 0;
  return {.vocabulary = facts.vocabulary,
          .context_max = is_given ? std::min(engine.context_max, facts.context) : facts.context};
}

}  // namespace yoke::engine

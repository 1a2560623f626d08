// What a model takes, by its config.json alone: so that mistakes in a request are reported before it is loaded. Memory
// may allow less.
#pragma once
#include "yoke/engine/options.h"
#include "yoke/engine/scheduler.h"

namespace yoke::engine {

SchedulerLimits request_limits(const EngineOptions& engine);

}  // namespace yoke::engine

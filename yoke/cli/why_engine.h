// An engine that is watched for a while, gathered for its judge.
#pragma once
#include <string>

#include "yoke/cli/watch_input.h"
#include "yoke/why/evaluate_engine.h"

namespace yoke::cli {

struct WhyEngineAsked {
  WatchInput input;
  Seconds time{10};
  std::string model;   // for the plan; empty: as the engine calls it
  std::string format;  // of its weights; empty: as the model's files or name say
};

// Error(kNotFound) where no engine answers.
why::EngineQuestion watch_engine(const Session& session, const WhyEngineAsked& asked);

}  // namespace yoke::cli

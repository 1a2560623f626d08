// What each rank of an engine takes of memory, as fit.h asks it.
#pragma once
#include "yoke/engine/fit.h"
#include "yoke/engine/options.h"
#include "yoke/models/language_model.h"
#include "yoke/weights/weight_source.h"

namespace yoke::engine {

// The largest step of an engine with these options.
models::StepLimits step_limits(const models::LanguageFacts& facts, const EngineOptions& options);

// Of a rank of this mesh, packed by this backend. Error where ranks cannot share the model so.
RankNeed rank_need(const weights::WeightSource& source, const models::ModelOutline& outline, const ops::Backend& ops,
                   const EngineOptions& options, const models::Mesh& mesh);

}  // namespace yoke::engine

// What 'yoke why' needs of a run, put together when the run has ended: the account of its steps, the plan's terms of
// the same step, and what the cluster file says of the rails; and what the plan expects of an engine that is watched.
#pragma once
#include <string>

#include "yoke/bench/run_record.h"
#include "yoke/predict/predicted.h"
#include "yoke/why/evaluate_engine.h"
#include "yoke/why/evaluate_run.h"

namespace yoke::predict {

// `options`: " --lab NAME" or " --cluster FILE" as it was given, for commands to paste.
why::RunQuestion why_question(const std::string& options, const RunAsked& asked, const spec::StepAccount& account);
// The record of a run with its question in it.
void keep_question(bench::RunRecord& record, const why::RunQuestion& question);

why::RailsExpected rails_expected(const std::optional<spec::Cluster>& cluster);

struct EnginePlanAsked {
  std::string model;   // empty: as the engine calls it
  std::string format;  // of its weights; empty: as the model's files or name say
  std::optional<spec::Cluster> cluster;
};
// What the plan expects of an engine that was watched; throws where there is no plan of it.
why::PlannedEngine plan_engine(const EnginePlanAsked& asked, const why::WatchedEngine& engine);

}  // namespace yoke::predict

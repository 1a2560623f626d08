// What 'yoke why' needs of a run, put together when the run has ended: the account of its steps, the plan's terms of
// the same step, and what the cluster file says of the rails.
#pragma once
#include <string>

#include "yoke/bench/run_record.h"
#include "yoke/cli/command.h"
#include "yoke/cli/predicted.h"
#include "yoke/why/evaluate_run.h"

namespace yoke::cli {

why::RunQuestion why_question(const Session& session, const RunAsked& asked, const spec::StepAccount& account);
// The record of a run with its question in it.
void keep_question(bench::RunRecord& record, const why::RunQuestion& question);

// " --lab NAME" or " --cluster FILE" as it was given, for commands to paste.
std::string session_options(const Session& session);
why::RailsExpected rails_expected(const std::optional<spec::Cluster>& cluster);

}  // namespace yoke::cli

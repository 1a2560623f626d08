#include "yoke/launch/launch_input.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "yoke/base/interrupt.h"
#include "yoke/base/log.h"
#include "yoke/base/text.h"
#include "yoke/check/rule.h"
#include "yoke/job/job_output.h"
#include "yoke/launch/preflight.h"
#include "yoke/launch/run.h"
#include "yoke/report/findings_text.h"
#include "yoke/report/given_commands.h"
#include "yoke/survey/survey.h"

namespace yoke::launch {
namespace {

using Steady = std::chrono::steady_clock;
double seconds_since(Steady::time_point start) { return std::chrono::duration<double>(Steady::now() - start).count(); }

std::vector<spec::ClusterNode> cluster_nodes(const LaunchSetting& setting) {
  return setting.cluster ? setting.cluster->nodes : std::vector<spec::ClusterNode>{job::this_machine()};
}

// The memory of a killed engine comes back after seconds to a minute: a start before that runs out of it at once.
void wait_for_memory(LaunchSetting& setting) {
  if (!setting.fleet) return;
  const Deadline deadline = Deadline::after(Seconds{120});
  for (std::size_t i = 0; i < setting.machines.size(); ++i) {
    const double wanted = 0.9 * static_cast<double>(setting.machines[i].memory.available.value_or(Bytes{0}).value);
    while (!deadline.expired()) {
      throw_if_interrupted();
      const auto now = try_to([&] {
        return from_json<spec::Machine>((*setting.fleet)[i].ask("pin-facts", Document::null(), Seconds{10}))
            .memory.available;
      });
      if (!now || static_cast<double>(now->value_or(Bytes{0}).value) >= wanted) break;
      std::this_thread::sleep_for(std::chrono::milliseconds(500));
    }
  }
}

void run_stop_command(LaunchSetting& setting, const LaunchPlan& plan) {
  if (plan.engine.stop.empty() || !setting.fleet) return;
  setting.fleet->each("",
                      [&](fleet::Node& node) { return node.run({.argv = plan.engine.stop, .timeout = Seconds{60}}); });
}

void pause_for(Seconds pause) {
  const Deadline deadline = Deadline::after(pause);
  while (!deadline.expired()) {
    throw_if_interrupted();
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
}

struct Attempt {
  job::JobOutcome outcome;
  AttemptEnd end;
  std::string job;
};

Attempt start_once(terminal::Session& session, const LaunchArguments& arguments, LaunchSetting& setting,
                   const LaunchPlan& plan) {
  const ThroughOptions through = through_options(arguments, setting);
  job::JobSpec spec = job_of(plan, cluster_nodes(setting),
                             {.through = through_from(arguments.through),
                              .floor = through.floor,
                              .limit = through.limit,
                              .folder = arguments.folder});
  job::JobOutput output(session, session.json ? job::OutputStyle::kErrors : job::OutputStyle::kPrefixed);
  output.show(spec);
  bool ready = false;
  spec.on_output = [&ready, show = spec.on_output](const job::RankOutput& line) {
    if (line.text.find("yoke guard: ready:") != std::string_view::npos) ready = true;
    show(line);
  };
  const Steady::time_point start = Steady::now();
  job::Job job(std::move(spec));
  Attempt attempt{.outcome = job.wait(), .end = {}, .job = job.name()};
  attempt.end = {.kind = attempt.outcome.cause ? attempt.outcome.cause->kind : job::CauseKind::kRankExited,
                 .lasted = Seconds{seconds_since(start)},
                 .was_ready = ready};
  return attempt;
}

void add_findings(std::vector<spec::Finding>& all, std::vector<spec::Finding> more) {
  all.insert(all.end(), more.begin(), more.end());
}

}  // namespace

std::optional<int> preflight_launch(terminal::Session& session, const LaunchArguments& arguments,
                                    LaunchSetting& setting, const LaunchPlan& plan) {
  if (arguments.no_preflight || !setting.fleet) return std::nullopt;
  const ThroughOptions options = through_options(arguments, setting);
  std::vector<spec::Finding> findings;
  add_findings(findings, preflight(plan, through_from(arguments.through), options.floor, *setting.fleet));
  add_findings(findings, check::evaluate(survey::survey_nodes(*setting.fleet, *setting.cluster, Seconds{10})));
  add_findings(findings, module_findings(plan, *setting.fleet));
  report::give_options(findings, session.given_options());
  const bool stops = std::any_of(findings.begin(), findings.end(), [](const spec::Finding& finding) {
    return finding.severity == spec::Severity::kError;
  });
  if (stops) return refuse_launch(session, plan, findings);
  for (const spec::Finding& finding : findings) log(LogLevel::kWarning, "{}", finding.what);
  return std::nullopt;
}

int refuse_launch(terminal::Session& session, const LaunchPlan& plan, const std::vector<spec::Finding>& findings) {
  if (session.json) {
    session.print_json(Document::map({{"engine", Document::string(plan.engine.name)},
                                      {"started", Document::boolean(false)},
                                      {"findings", report::findings_json(findings)}}));
  } else {
    session.print(report::findings_text(findings));
    session.print("Nothing was started. --no-preflight starts it all the same.\n");
  }
  return kExitFindings;
}

int run_launch(terminal::Session& session, const LaunchArguments& arguments, LaunchSetting& setting,
               const LaunchPlan& plan) {
  const int usual = plan.engine.serves() ? 4 : 0;
  Restarts restarts({.restarts_max = arguments.restarts.value_or(usual), .first_pause = arguments.pause});
  for (;;) {
    const Attempt attempt = start_once(session, arguments, setting, plan);
    run_stop_command(setting, plan);
    if (arguments.profile) collect_profiles(session, *arguments.profile, setting, plan);
    const auto pause = attempt.outcome.cause ? restarts.after(attempt.end) : std::nullopt;
    if (!pause) {
      if (attempt.outcome.cause && plan.engine.serves() && never_worked(attempt.end)) {
        log(LogLevel::kWarning, "{} ended {:.0f} s after its start, before its first token: it is not started again",
            plan.engine.name, attempt.end.lasted.value);
      }
      return job::JobOutput(session, job::OutputStyle::kPrefixed).report(attempt.job, attempt.outcome);
    }
    const job::JobCause& cause = *attempt.outcome.cause;
    log(LogLevel::kWarning, "{}; all ranks are stopped, start {} of {} in {}", cause.error.message(),
        restarts.used() + 1, arguments.restarts.value_or(usual) + 1, to_string(*pause));
    pause_for(*pause);
    wait_for_memory(setting);
  }
}

}  // namespace yoke::launch

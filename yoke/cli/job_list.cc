// yoke job list and stop: the jobs of this user that run from this machine.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "yoke/base/error.h"
#include "yoke/base/text.h"
#include "yoke/cli/commands.h"
#include "yoke/job/job.h"
#include "yoke/job/job_record.h"
#include "yoke/report/table.h"

namespace yoke::cli {
namespace {

constexpr Seconds kStopLimit{15};

std::string as_text(const std::vector<job::JobRecord>& jobs) {
  if (jobs.empty()) return "No job runs from this machine.\n";
  report::Table table{.columns = {{.header = "name"},
                                  {.header = "ranks", .align = report::TextAlign::kRight},
                                  {.header = "nodes"},
                                  {.header = "since"},
                                  {.header = "head", .align = report::TextAlign::kRight},
                                  {.header = "program", .fit = report::ColumnFit::kShrinks}}};
  for (const job::JobRecord& job : jobs) {
    table.rows.push_back({job.name, std::to_string(job.ranks), fmt::format("{}", fmt::join(job.nodes, ", ")), job.since,
                          std::to_string(job.head.pid), printable(job.command, 60)});
  }
  return report::render_text(table);
}

Document as_json(const std::vector<job::JobRecord>& jobs, std::string_view key) {
  Document list = Document::list();
  for (const job::JobRecord& job : jobs) list.items.push_back(job::to_json(job));
  return Document::map({{std::string(key), std::move(list)}});
}

std::vector<job::JobRecord> choose_jobs(const std::string& name, bool all) {
  std::vector<job::JobRecord> jobs = job::running_jobs();
  if (all) return jobs;
  if (!name.empty()) {
    std::vector<std::string> names;
    for (const job::JobRecord& job : jobs) names.push_back(job.name);
    std::erase_if(jobs, [&](const job::JobRecord& job) { return job.name != name; });
    if (jobs.empty()) {
      throw Error(ErrorCode::kNotFound, fmt::format("no job '{}' runs from this machine", printable(name, 80)),
                  names.empty() ? "no job runs: 'yoke job list' shows them" : suggest(name, names, "jobs"));
    }
  }
  if (jobs.empty()) throw Error(ErrorCode::kNotFound, "no job runs from this machine");
  if (jobs.size() > 1) {
    throw Error(ErrorCode::kUsage, fmt::format("{} jobs run from this machine", jobs.size()),
                "name one ('yoke job list' shows them), or end them with --all");
  }
  return jobs;
}

int run_stop(Session& session, const std::string& name, bool all) {
  if (all && !name.empty()) throw Error(ErrorCode::kUsage, "a name and --all cannot both be given");
  const std::vector<job::JobRecord> jobs = choose_jobs(name, all);
  for (const job::JobRecord& job : jobs) {
    job::stop_running_job(job, kStopLimit);
    if (!session.json) session.print(fmt::format("Job '{}' is ended.\n", job.name));
  }
  if (session.json) session.print_json(as_json(jobs, "ended"));
  return kExitOk;
}

}  // namespace

CommandRow job_list_command() {
  return {
      .name = "list",
      .summary = "the jobs that run from this machine",
      .description = "Lists the jobs of this user whose command runs on this machine, or for a lab on its head node.",
      .examples = {{"yoke job list", "name, ranks, nodes, since when"}, {"yoke job list --json", "for a script"}},
      .prepare = [](OptionTable&) -> Action {
        return [](Session& session) {
          const std::vector<job::JobRecord> jobs = job::running_jobs();
          if (session.json) {
            session.print_json(as_json(jobs, "jobs"));
          } else {
            session.print(as_text(jobs));
          }
          return kExitOk;
        };
      },
      .place = CommandPlace::kHead};
}

CommandRow job_stop_command() {
  return {.name = "stop",
          .summary = "end a job from another terminal",
          .description = "Ends a job as Ctrl-C in its own terminal would, and waits until it is gone.",
          .examples = {{"yoke job stop", "the only one there is"},
                       {"yoke job stop train-3f2a", "one of several"},
                       {"yoke job stop --all", "all of them"}},
          .prepare = [](OptionTable& table) -> Action {
            auto name = std::make_shared<std::string>();
            auto all = std::make_shared<bool>(false);
            table.flag("--all", "every job of this user that runs from this machine", *all);
            table.positional("NAME", "which job (the only one unless given)", *name, Presence::kOptional);
            return [name, all](Session& session) { return run_stop(session, *name, *all); };
          },
          .place = CommandPlace::kHead};
}

}  // namespace yoke::cli

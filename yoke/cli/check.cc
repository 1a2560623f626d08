// yoke check: everything that can be silently wrong, as findings.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>

#include "yoke/base/error.h"
#include "yoke/base/log.h"
#include "yoke/base/text.h"
#include "yoke/check/check_text.h"
#include "yoke/check/prometheus_text.h"
#include "yoke/check/remembered.h"
#include "yoke/check/rule.h"
#include "yoke/cli/check_modes.h"
#include "yoke/cli/cluster_file.h"
#include "yoke/cli/commands.h"
#include "yoke/cli/lab_head.h"
#include "yoke/link/link_survey.h"
#include "yoke/link/pairs.h"
#include "yoke/report/findings_text.h"
#include "yoke/report/given_commands.h"
#include "yoke/survey/link_evaluate.h"
#include "yoke/survey/links.h"
#include "yoke/survey/survey.h"

namespace yoke::cli {
namespace {

struct CheckOptions {
  bool no_measure = false;
  bool changed = false;
  bool paste = false;
  std::vector<std::string> roots;
  std::optional<std::string> node;
  Seconds timeout{10};
  bool prolog = false;
  bool new_baseline = false;
  std::optional<std::string> explain;
  std::optional<std::string> prometheus;
};

void refuse_contradictions(const Session& session, const CheckOptions& options) {
  const auto refuse = [](std::string what, std::string hint) {
    throw Error(ErrorCode::kUsage, std::move(what), std::move(hint));
  };
  if (options.changed && options.paste) refuse("--changed and --paste do not go together", "one after the other");
  if (options.paste && session.json) refuse("--paste is a page for people, not JSON", "leave out --json");
  if (options.changed && !options.roots.empty()) {
    refuse("--changed compares the machines themselves, not captures", "leave out --root");
  }
  if (options.prolog && (!options.roots.empty() || options.changed || options.paste || options.explain)) {
    refuse("--prolog examines this node alone", "leave out the other options");
  }
  if (options.new_baseline && !options.prolog) refuse("--new-baseline is for --prolog", "add --prolog");
  if (options.explain && (options.changed || options.paste))
    refuse("--explain is a report of its own", "leave out the other");
  if (options.timeout.value <= 0) refuse("--timeout must be above zero", "10s is usual");
}

// On a lab's head where the cluster is a lab's. Not by CommandPlace::kHead: --root names folders of the machine where
// it was typed.
std::optional<int> check_in_lab(const Session& session, const CheckOptions& options) {
  std::vector<std::string> arguments = {"check", "--timeout", exact(options.timeout)};
  if (options.no_measure) arguments.emplace_back("--no-measure");
  if (options.changed) arguments.emplace_back("--changed");
  if (options.paste) arguments.emplace_back("--paste");
  if (options.node) arguments.insert(arguments.end(), {"--node", *options.node});
  if (session.json) arguments.emplace_back("--json");
  if (session.quiet) arguments.emplace_back("--quiet");
  if (session.verbose) arguments.emplace_back(session.protocol ? "-vv" : "-v");
  return run_on_lab_head(session, arguments);
}

// Each rail takes part in five windows of this length, so that a rail is measured for about a second.
constexpr Seconds kCheckWindow{0.2};

spec::Measurement measure_links(fleet::Fleet& fleet, const spec::Cluster& cluster) {
  if (const auto why = survey::why_not_measured(cluster)) throw Error(*why);
  const std::vector<link::NodePair> pairs = link::pairs_of(cluster, {});
  survey::LinkSurveyOptions options = survey::link_survey_of(cluster, pairs);
  options.measure.time = kCheckWindow;
  return link::measurement_of(survey::survey_links(fleet, cluster, pairs, options));
}

// Why nothing was measured is an answer here: the rest of the check stands all the same.
void measure(const CheckOptions& options, fleet::Fleet& fleet, check::CheckReport& report) {
  if (options.no_measure) {
    report.not_measured = "--no-measure was given";
  } else if (!report.reached_all_nodes()) {
    report.not_measured = "not every node answers";
  } else if (const auto measured = try_to([&] { return measure_links(fleet, *report.facts.cluster); }); measured) {
    report.facts.measurement = *measured;
  } else if (measured.error().code() == ErrorCode::kInterrupted) {
    throw Error(measured.error());
  } else {
    report.not_measured = measured.error().message();
  }
}

check::CheckReport look(const Session& session, const CheckOptions& options) {
  check::CheckReport report;
  if (!options.roots.empty()) {
    // A cluster file that merely lies in this folder says nothing about captures.
    report.facts =
        survey::survey_captures(options.roots, session.cluster_file ? read_session_cluster(session) : std::nullopt);
    report.not_measured = "captures cannot be measured";
  } else if (const auto cluster = read_session_cluster(session)) {
    fleet::Fleet fleet(cluster->nodes, survey::survey_login(options.timeout));
    // The nodes of a lab share one machine, and would measure each other.
    const bool canary = !options.no_measure && !cluster->lab;
    report.facts = survey::survey_nodes(fleet, *cluster, options.timeout,
                                        canary ? survey::Canary::kMeasured : survey::Canary::kNotMeasured);
    measure(options, fleet, report);
  } else {
    report.facts = survey::survey_here(options.no_measure ? survey::Canary::kNotMeasured : survey::Canary::kMeasured);
    report.not_measured = "without a cluster file there is this machine only, and no link";
  }
  check::update_memory_records(report.facts);
  report.findings = check::evaluate(report.facts);
  report::give_options(report.findings, session.given_options());
  report.withheld = check::withheld(report.facts);
  return report;
}

void check_node_name(const spec::Survey& facts, const std::string& wanted) {
  std::vector<std::string> names;
  for (const spec::SurveyedNode& node : facts.nodes) names.push_back(node.name);
  if (std::find(names.begin(), names.end(), wanted) != names.end()) return;
  throw Error(ErrorCode::kUsage, fmt::format("there is no node '{}'", printable(wanted, 60)),
              suggest(wanted, names, "nodes"));
}

// The verdict is about all nodes all the same: the other end of a cable of this one may be at fault.
void show_only(check::CheckReport& report, const std::string& node) {
  report.node = node;
  std::vector<spec::Finding> about;
  for (spec::Finding& finding : report.findings) {
    const bool is_about = !finding.node || *finding.node == node;
    (is_about ? about : report.elsewhere).push_back(std::move(finding));
  }
  report.findings = std::move(about);
}

std::optional<std::string> key_of(const check::CheckReport& report) {
  return report.facts.cluster ? std::optional(report.facts.cluster->name) : std::nullopt;
}

void remember(const check::CheckReport& report) {
  try {
    check::remember_check(key_of(report), report.facts);
  } catch (const Error& error) {
    log(LogLevel::kWarning, "this clean check is not remembered: {}", error.message());
  }
}

// Names of people, so that a page for a forum does not hold them.
std::vector<std::string> user_names(const check::CheckReport& report) {
  std::vector<std::string> names;
  for (const char* variable : {"USER", "LOGNAME", "SUDO_USER"}) {
    if (const char* name = std::getenv(variable); name && *name && std::string_view(name) != "root") {
      names.emplace_back(name);
    }
  }
  for (const spec::ClusterNode& node :
       report.facts.cluster ? report.facts.cluster->nodes : std::vector<spec::ClusterNode>{}) {
    if (node.user && *node.user != "root") names.push_back(*node.user);
  }
  return names;
}

int show_changes(Session& session, const check::CheckReport& report, const std::optional<std::string>& node) {
  const auto last = check::recall_check(key_of(report));
  if (!last) {
    throw Error(ErrorCode::kNotFound, "there is no clean check to compare with yet",
                "run 'yoke check': it remembers each check that finds nothing wrong");
  }
  std::vector<check::FactChange> changes = check::find_changes(last->facts, report.facts);
  if (node) std::erase_if(changes, [&](const check::FactChange& change) { return change.node != *node; });
  if (session.json) {
    session.print_json(Document::map({{"schema", Document::number(std::int64_t{1})},
                                      {"since", Document::string(last->when)},
                                      {"changes", check::to_json(changes)},
                                      {"findings", report::findings_json(report.findings)}}));
  } else {
    session.print(check::changes_text(changes, last->when));
    if (!report.findings.empty()) {
      session.print(fmt::format("Findings now: {} ('yoke check' explains them).\n", report.findings.size()));
    }
  }
  return changes.empty() ? kExitOk : kExitFindings;
}

// The file is one of this machine, so that a lab's head is not asked: its nodes' facts are those of its hardware.
int explain_on_machines(Session& session, CheckOptions options) {
  options.no_measure = true;
  return explain_file(session, *options.explain, look(session, options).facts);
}

int run_check(Session& session, const CheckOptions& options) {
  refuse_contradictions(session, options);
  if (options.prolog) {
    return run_prolog(session, {.new_baseline = options.new_baseline, .prometheus = options.prometheus.value_or("")});
  }
  if (options.explain) return explain_on_machines(session, options);
  if (options.roots.empty()) {
    if (const auto status = check_in_lab(session, options)) return *status;
  }
  check::CheckReport report = look(session, options);
  if (options.node) {
    check_node_name(report.facts, *options.node);
    show_only(report, *options.node);
  }
  if (options.changed) return show_changes(session, report, options.node);
  const bool clean = report.findings.empty() && report.withheld.empty() && report.reached_all_nodes() && !options.node;
  if (clean && options.roots.empty()) remember(report);
  if (options.prometheus) check::write_prometheus(*options.prometheus, report.findings);
  if (options.paste) {
    session.print(check::paste_text(report, user_names(report)));
  } else if (session.json) {
    session.print_json(check::report_json(report));
  } else {
    session.print(check::report_text(report));
  }
  return report.exit_status();
}

}  // namespace

CommandRow check_command() {
  return {
      .name = "check",
      .summary = "find what is silently wrong, and how to fix it",
      .description =
          "Looks at every node of the cluster at once (or at this machine, where there is no cluster file), tries "
          "what passes each rail, measures each rail for about a second, reads each machine's memory for a moment (its "
          "best rate is kept), and holds all of it against the rules of "
          "docs/checks.md. Each finding has what is wrong, the evidence, what it costs and how to fix it. Nothing "
          "is changed.\n\n"
          "Exit status: 0 clean, 1 findings, 2 a node could not be looked at, 3 clean but nothing was measured, or not "
          "evaluated as a machine was busy. A "
          "clean check is remembered; --changed shows what is different since.",
      .examples = {{"yoke check", "all nodes of cluster.yaml"},
                   {"yoke check --no-measure --json", "without load on the link, for a script"},
                   {"yoke check --changed", "it worked yesterday: what is different?"},
                   {"yoke check --paste", "one page for a forum, secrets left out"},
                   {"yoke check --root desk-1 --root desk-2", "two machines written down by 'yoke probe --capture'"},
                   {"yoke check --explain nccl_env.sh", "what each line does, and whether it is right here"},
                   {"yoke check --prolog", "for Slurm's Prolog: one line, exit status 1 drains the node"},
                   {"yoke check nccl-log job.log", "what NCCL logged about its transport"}},
      .prepare = [](OptionTable& table) -> Action {
        auto options = std::make_shared<CheckOptions>();
        table.flag("--no-measure", "do not measure the rails, nor the memory", options->no_measure);
        table.value("--node", "NAME", "only findings about this node", options->node);
        table.flag("--changed", "what changed since the last clean check", options->changed);
        table.flag("--paste", "one page of Markdown for a post, without secrets", options->paste);
        table.values("--root", "DIR", "check a capture instead (may be repeated)", options->roots);
        table.value("--explain", "FILE", "what each setting of an environment file or Slurm script does here",
                    options->explain);
        table.flag("--prolog", "this node in one line, in under 2 s: is it fit for a job?", options->prolog);
        table.flag("--new-baseline", "with --prolog: what the node has now is right", options->new_baseline);
        table.value("--prometheus", "FILE", "also write the findings for node_exporter (*.prom)", options->prometheus);
        table.value("--timeout", "TIME", "how long to wait for a node (10s unless given)", options->timeout);
        return [options](Session& session) { return run_check(session, *options); };
      },
      .subcommands = {check_nccl_log_command()}};
}

}  // namespace yoke::cli

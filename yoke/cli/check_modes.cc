#include "yoke/cli/check_modes.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>

#include "yoke/base/clock.h"
#include "yoke/base/error.h"
#include "yoke/base/fields.h"
#include "yoke/base/files.h"
#include "yoke/base/fork_call.h"
#include "yoke/base/json.h"
#include "yoke/base/limits.h"
#include "yoke/base/text.h"
#include "yoke/check/explain_settings.h"
#include "yoke/check/nccl_log.h"
#include "yoke/check/node_baseline.h"
#include "yoke/check/prometheus_text.h"
#include "yoke/check/rule.h"
#include "yoke/cli/commands.h"
#include "yoke/probe/probe.h"
#include "yoke/report/findings_text.h"
#include "yoke/terminal/typed_input.h"

namespace yoke::cli {

struct PrologAnswer {
  std::string node;
  std::vector<spec::Finding> findings;
  check::NodeBaseline baseline;
};

template <class Visitor>
void visit_fields(Visitor& visit, PrologAnswer& answer) {
  visit.required("node", answer.node);
  visit.optional("findings", answer.findings);
  visit.required("baseline", answer.baseline);
}

namespace {

constexpr Seconds kPrologLimit{1.8};  // so that the whole is below two seconds

PrologAnswer examine_this_node() {
  spec::Survey facts;
  facts.nodes.push_back({.name = "here", .machine = probe::probe_machine(probe::health_sources_here())});
  spec::SurveyedNode& node = facts.nodes.front();
  if (!node.machine->hostname.empty()) node.name = node.machine->hostname;
  PrologAnswer answer{.node = node.name};
  answer.findings = check::evaluate(facts, check::kNeedsLinks | check::kNeedsAddresses | check::kNeedsFacts);
  answer.baseline = check::baseline_of(*node.machine);
  return answer;
}

// In a process of its own, as a driver that hangs cannot be called off. Nothing: it did not answer in time.
std::optional<PrologAnswer> examine_in_time() {
  int ends[2] = {-1, -1};
  if (pipe2(ends, O_CLOEXEC) != 0) throw system_error(errno, "cannot make a pipe", "");
  const UniqueFd reading(ends[0]);
  UniqueFd writing(ends[1]);
  const pid_t child = fork_call([&] {
    std::string text = print_json(to_document(examine_this_node()));
    for (std::string_view rest = text; !rest.empty();) {
      const ssize_t count = write(writing.get(), rest.data(), rest.size());
      if (count <= 0) return 1;
      rest.remove_prefix(static_cast<std::size_t>(count));
    }
    return 0;
  });
  writing = UniqueFd();
  const Deadline deadline = Deadline::after(kPrologLimit);
  std::string text;
  bool whole = false;
  while (!whole) {
    pollfd waiting{.fd = reading.get(), .events = POLLIN, .revents = 0};
    const int left = static_cast<int>(deadline.remaining().value * 1000);
    if (left <= 0 || poll(&waiting, 1, left) <= 0) break;
    char buffer[65536];
    const ssize_t count = read(reading.get(), buffer, sizeof buffer);
    if (count > 0) text.append(buffer, static_cast<std::size_t>(count));
    whole = count <= 0;
  }
  if (!whole) kill(child, SIGKILL);
  waitpid(child, nullptr, WNOHANG);  // one that hangs in the driver ends when that lets it
  if (!whole || text.empty()) return std::nullopt;
  return from_json<PrologAnswer>(parse_json(text, "this node"));
}

std::string in_words(const std::vector<spec::Finding>& findings) {
  std::vector<std::string> words;
  for (const spec::Finding& finding : findings) {
    words.push_back(fmt::format("{}{}: {}", finding.rule, finding.subject ? " " + *finding.subject : "", finding.what));
  }
  return fmt::format("{}", fmt::join(words, "; "));
}

}  // namespace

int run_prolog(Session& session, const PrologOptions& options) {
  const auto answer = examine_in_time();
  if (!answer) {
    session.print(fmt::format("yoke: unfit: this node did not answer within {} s (a GPU or its driver hangs)\n",
                              kPrologLimit.value));
    return kExitFindings;
  }
  std::vector<spec::Finding> findings = answer->findings;
  const auto before = options.new_baseline ? std::nullopt : check::recall_baseline(answer->node);
  if (before) {
    const std::vector<spec::Finding> less = check::find_below_baseline(answer->node, answer->baseline, *before);
    // What a rule has found needs no second finding.
    if (std::ranges::none_of(findings, [](const auto& one) { return one.severity == spec::Severity::kError; })) {
      findings.insert(findings.end(), less.begin(), less.end());
    }
  }
  if (!options.prometheus.empty()) check::write_prometheus(options.prometheus, findings);
  std::vector<spec::Finding> errors = findings;
  std::erase_if(errors, [](const spec::Finding& finding) { return finding.severity != spec::Severity::kError; });
  if (session.json) {
    session.print_json(Document::map({{"node", Document::string(answer->node)},
                                      {"fit", Document::boolean(errors.empty())},
                                      {"findings", report::findings_json(findings)}}));
  } else if (errors.empty()) {
    const std::string warnings = findings.empty() ? "" : fmt::format("; warnings: {}", in_words(findings));
    session.print(fmt::format("yoke: {} is fit: {} GPUs, {} rails{}\n", answer->node, answer->baseline.gpus,
                              answer->baseline.rails, warnings));
  } else {
    session.print(fmt::format("yoke: {} is unfit: {}\n", answer->node, in_words(errors)));
  }
  if (errors.empty() && !before) check::remember_baseline(answer->node, answer->baseline);
  return errors.empty() ? kExitOk : kExitFindings;
}

int explain_file(Session& session, const std::string& file, const spec::Survey& facts) {
  constexpr Bytes kMaxFile{4LL << 20};
  const auto settings = check::explain_settings(read_file(file, kMaxFile), file, facts);
  if (settings.empty()) {
    throw Error(ErrorCode::kInvalid, fmt::format("there is no setting in '{}'", printable(file, 200)),
                "lines such as NCCL_IB_HCA=mlx5_0, with or without export, or #SBATCH --nodes=2");
  }
  const auto wrong = std::ranges::count(settings, check::SettingVerdict::kWrong, &check::ExplainedSetting::verdict);
  if (session.json) {
    session.print_json(Document::map({{"file", Document::string(file)}, {"settings", check::to_json(settings)}}));
    return wrong > 0 ? kExitFindings : kExitOk;
  }
  std::string out;
  for (const check::ExplainedSetting& setting : settings) {
    out += fmt::format("{}:{}: {}={}\n  {}{}\n", file, setting.line, setting.name, setting.value,
                       check::to_string(setting.verdict), setting.does.empty() ? "" : ": " + setting.does);
    if (!setting.why.empty()) out += fmt::format("  why   {}\n  fix   {}\n", setting.why, setting.fix);
  }
  std::vector<std::string> names;
  for (const spec::SurveyedNode& node : facts.nodes) names.push_back(node.name);
  out += fmt::format("\n{} settings, {} wrong on {}.\n", settings.size(), wrong, fmt::join(names, ", "));
  session.print(out);
  return wrong > 0 ? kExitFindings : kExitOk;
}

// yoke check nccl-log: what an NCCL log says, in words.

namespace {

constexpr Bytes kMaxLog{limits::kLogBytes};

constexpr const char* kHowToLog =
    "run the job with NCCL_DEBUG=INFO, and give its output or the file of NCCL_DEBUG_FILE";

std::string read_log(const std::string& file) {
  if (file == "-") return terminal::read_standard_input(kMaxLog);
  try {
    return read_file(file, kMaxLog);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kNotFound) throw;
    throw Error(ErrorCode::kNotFound, fmt::format("there is no file '{}'", file), kHowToLog);
  }
}

std::string conclusion(const spec::NcclLog& log, const std::vector<spec::Finding>& findings) {
  if (!findings.empty()) return fmt::format("Findings: {}.\n", findings.size());
  if (!log.warnings.empty()) {
    return fmt::format("Nothing is known to be wrong in it, but NCCL warned ({}), first: {}\n", log.warnings.size(),
                       log.warnings.front().text);
  }
  return log.complete ? "Nothing is wrong in it.\n" : "No fault in this log, but it ends before NCCL had connected.\n";
}

void add_log(spec::NcclLog& log, const std::string& file) {
  try {
    check::add_nccl_log(log, read_log(file));
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kExhausted) throw;
    throw Error(ErrorCode::kExhausted, fmt::format("{}: {}", file, error.message()),
                "give a part of it, such as the output of some ranks");
  }
}

int read_logs(Session& session, const std::vector<std::string>& files) {
  spec::NcclLog log;
  for (const std::string& file : files) {
    const int lines = log.lines;
    add_log(log, file);
    if (log.lines > lines || log.error) continue;  // ranks that never met came to no line of NCCL
    throw Error(
        ErrorCode::kInvalid,
        fmt::format("there is no line of NCCL in {}", file == "-" ? "standard input" : fmt::format("'{}'", file)),
        kHowToLog);
  }
  const std::vector<spec::Finding> findings = check::evaluate({.log = log});
  if (session.json) {
    Document document = check::to_json(log);
    document.add("findings", report::findings_json(findings));
    session.print_json(document);
  } else {
    session.print(check::describe(log) + "\n" + report::findings_text(findings) + conclusion(log, findings));
  }
  return findings.empty() ? kExitOk : kExitFindings;
}

}  // namespace

CommandRow check_nccl_log_command() {
  return {
      .name = "nccl-log",
      .summary = "explain an NCCL log: transport, rails, MTU, GIDs",
      .description =
          "Reads what a job printed with NCCL_DEBUG=INFO and shows how the ranks talk: by RDMA or TCP, over which "
          "devices, over both rails or one, with which packet size and GIDs, with GPUDirect or without; what is wrong "
          "with it, and why it failed where it did. Several files of one job may be given. Exit status 0: nothing is "
          "wrong; 1: findings.",
      .examples = {{"yoke check nccl-log job.log", "the output of a job"},
                   {"yoke check nccl-log - < job.log", "by standard input"},
                   {"yoke check nccl-log nccl.spark-1.* nccl.spark-2.*", "files of NCCL_DEBUG_FILE"}},
      .prepare = [](OptionTable& table) -> Action {
        auto files = std::make_shared<std::vector<std::string>>();
        table.positionals("FILE", "output of a job with NCCL_DEBUG=INFO; '-' is standard input", *files,
                          Presence::kRequired);
        return [files](Session& session) { return read_logs(session, *files); };
      }};
}

}  // namespace yoke::cli

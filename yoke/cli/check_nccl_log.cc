// yoke check nccl-log: what an NCCL log says, in words.
#include <fmt/format.h>

#include "yoke/base/error.h"
#include "yoke/base/files.h"
#include "yoke/base/limits.h"
#include "yoke/check/check_text.h"
#include "yoke/check/nccl_log.h"
#include "yoke/check/rule.h"
#include "yoke/cli/commands.h"
#include "yoke/report/findings_text.h"
#include "yoke/terminal/typed_input.h"

namespace yoke::cli {
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

// yoke check nccl-log: what an NCCL log says, in words.
#include <fmt/format.h>

#include "yoke/base/error.h"
#include "yoke/base/files.h"
#include "yoke/base/limits.h"
#include "yoke/check/nccl_log.h"
#include "yoke/check/rule.h"
#include "yoke/cli/check_text.h"
#include "yoke/cli/commands.h"
#include "yoke/cli/findings_text.h"
#include "yoke/cli/standard_input.h"

namespace yoke {
namespace {

constexpr Bytes kLogMost{limits::kLogBytes};

constexpr const char* kHowToLog =
    "run the job with NCCL_DEBUG=INFO, and give its output or the file of NCCL_DEBUG_FILE";

std::string read_log(const std::string& file) {
  if (file == "-") return read_standard_input(kLogMost);
  try {
    return read_file(file, kLogMost);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kNotFound) throw;
    throw Error(ErrorCode::kNotFound, fmt::format("there is no file '{}'", file), kHowToLog);
  }
}

std::string conclusion(const NcclLog& log, const std::vector<Finding>& findings) {
  if (!findings.empty()) return fmt::format("Findings: {}.\n", findings.size());
  if (!log.warnings.empty()) {
    return fmt::format("Nothing is known to be wrong in it, but NCCL warned ({}), first: {}\n", log.warnings.size(),
                       log.warnings.front().text);
  }
  return log.complete ? "Nothing is wrong in it.\n"
                      : "Nothing is wrong in what it shows; whether a communicator came to be it does not show.\n";
}

int read_logs(Session& session, const std::vector<std::string>& files) {
  NcclLog log;
  for (const std::string& file : files) {
    const int lines = log.lines;
    add_nccl_log(log, read_log(file));
    if (log.lines > lines || log.error) continue;  // ranks that never met came to no line of NCCL
    throw Error(
        ErrorCode::kInvalid,
        fmt::format("there is no line of NCCL in {}", file == "-" ? "standard input" : fmt::format("'{}'", file)),
        kHowToLog);
  }
  const std::vector<Finding> findings = judge({.log = log});
  if (session.json) {
    Document document = to_json(log);
    document.add("findings", findings_json(findings));
    session.print_json(document);
  } else {
    session.print(describe(log) + "\n" + findings_text(findings) + conclusion(log, findings));
  }
  return findings.empty() ? kExitOk : kExitFindings;
}

}  // namespace

CommandRow check_nccl_log_command() {
  return {
      .name = "nccl-log",
      .summary = "explain an NCCL log: transport, halves, MTU, GIDs",
      .description =
          "Reads what a job printed with NCCL_DEBUG=INFO and says how the ranks talk: by RDMA or TCP, over which "
          "devices, over both halves or one, with which packet size and GIDs, with GPUDirect or without; what is wrong "
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

}  // namespace yoke

#include "yoke/check/nccl_log.h"

#include <algorithm>
#include <array>

#include "yoke/base/interrupt.h"
#include "yoke/base/limits.h"
#include "yoke/base/text.h"
#include "yoke/check/nccl_log_read.h"

namespace yoke {
namespace {

constexpr std::size_t kHostsMost = 4096;  // what claims more is no log of ours
constexpr std::size_t kWarningsMost = 200;

// "NCCL version 2.28.9+cuda13.0"
void read_version(std::string_view line, NcclLog& log) {
  const auto version = between(line, "NCCL version ", " ");
  if (version && version->find("+cuda") != std::string_view::npos) log.version = printable(*version, 40);
}

// A job has several communicators, and splits some: the largest tells how many ranks and nodes it has.
void keep_largest(std::optional<int>& most, std::optional<int> number) {
  if (number) most = std::max(most.value_or(0), *number);
}

void read_job(std::string_view line, NcclLog& log) {
  keep_largest(log.ranks, number_behind(line, " nranks "));
  keep_largest(log.nodes, number_behind(line, " nNodes "));
  if (line.find("Init START") != std::string_view::npos) {
    log.started = true;
    if (log.start_line.empty()) log.start_line = printable(trim(line), 200);
  }
  if (line.find("Init COMPLETE") != std::string_view::npos) log.complete = true;
  if (const auto plugin = between(line, "Plugin Path : ", " ")) log.plugin = printable(*plugin, 120);
  if (line.find("Subnet-aware routing: overriding dev") != std::string_view::npos) ++log.route_overrides;
  if (line.find("ListenerRouting") != std::string_view::npos) {
    const auto advertised = number_behind(line, "advertised=");
    const auto observed = number_behind(line, "observed=");
    if (advertised && observed && *advertised < *observed) log.listeners_capped = true;
  }
  if (line.find("ncclTransportTreeConnect") != std::string_view::npos) log.tree_failed = true;
}

// Warnings of jobs that run well: of events that NCCL passes over, of connections that it tries again, of a process
// that ends.
bool is_harmless(std::string_view warning) {
  constexpr std::array<std::string_view, 5> kTexts = {"non-fatal async event", "GID table changed", "retrying",
                                                      "driver shutting down", "unknown event type"};
  return std::any_of(kTexts.begin(), kTexts.end(), [&](auto text) { return warning.find(text) != warning.npos; });
}

void add_warning(NcclLog& log, NcclWarning warning) {
  if (is_harmless(warning.text) || log.warnings.size() >= kWarningsMost) return;
  if (std::find(log.warnings.begin(), log.warnings.end(), warning) != log.warnings.end()) return;
  log.warnings.push_back(std::move(warning));
}

// Lines from which somebody has cut "host:1:1 [0] NCCL INFO ".
bool is_bare_line(std::string_view line) {
  constexpr std::array<std::string_view, 7> kBegins = {
      "NET/IB : ",         "NET/IB: ", "NET/Socket : ", "Bootstrap : Using ",
      "Bootstrap: Using ", "NET/OFI ", "Using network "};
  const bool known = std::any_of(kBegins.begin(), kBegins.end(), [&](auto text) { return line.starts_with(text); });
  const bool channel = (line.starts_with("Channel ") || line.starts_with("Ring ")) &&
                       line.find(" via ") != std::string_view::npos && line.find(" -> ") != std::string_view::npos;
  return known || channel;
}

void add_words(NcclLog& log, const std::string& name, std::string_view said) {
  if (log.hosts.size() >= kHostsMost && !log.hosts.contains(name)) return;
  ++log.lines;
  read_job(said, log);
  read_host(said, log.hosts[name]);
}

void add_line(NcclLog& log, std::string_view line) {
  read_version(line, log);  // the first rank prints it bare, without a host
  const std::size_t info = line.find("NCCL INFO ");
  const std::size_t warn = line.find("NCCL WARN ");
  const std::size_t at = std::min(info, warn);
  if (at == std::string_view::npos) {
    if (read_nccl_tests(line, log.tests)) ++log.lines;
    if (is_bare_line(line)) add_words(log, host_before(""), line);
    if (!log.error && tells_of_error(line)) log.error = printable(line, 300);
    return;
  }
  const std::string name = host_before(line.substr(0, at));
  const std::string_view said = line.substr(at + 10);
  add_words(log, name, said);
  if (warn == at) add_warning(log, {name, printable(trim(said), 300)});
}

}  // namespace

void add_nccl_log(NcclLog& log, std::string_view text) {
  while (!text.empty()) {
    const std::size_t newline = text.find('\n');
    add_line(log, plain_line(text.substr(0, std::min(newline, limits::kLogLineBytes))));
    if (log.lines % 4096 == 0) throw_if_interrupted();
    text.remove_prefix(newline == std::string_view::npos ? text.size() : newline + 1);
  }
}

NcclLog parse_nccl_log(std::string_view text) {
  NcclLog log;
  add_nccl_log(log, text);
  return log;
}

}  // namespace yoke

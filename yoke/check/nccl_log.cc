#include "yoke/check/nccl_log.h"

#include <algorithm>
#include <array>
#include <set>

#include "yoke/base/cpu_budget.h"
#include "yoke/base/limits.h"
#include "yoke/base/text.h"
#include "yoke/check/nccl_log_read.h"

namespace yoke::check {
namespace {

constexpr std::size_t kMaxHosts = 4096;  // what claims more is no log of ours
constexpr std::size_t kMaxWarnings = 200;

// "NCCL version 2.28.9+cuda13.0"
void read_version(std::string_view line, spec::NcclLog& log) {
  const auto version = between(line, "NCCL version ", " ");
  if (version && version->find("+cuda") != std::string_view::npos) log.version = printable(*version, 40);
}

// A job has several communicators, and splits some: the largest tells how many ranks and nodes it has.
void keep_largest(std::optional<int>& most, std::optional<int> number) {
  if (number) most = std::max(most.value_or(0), *number);
}

void read_job(std::string_view line, LogWords words, spec::NcclLog& log) {
  using enum LogWord;
  if (words.has(kRanks)) keep_largest(log.ranks, number_behind(line, " nranks "));
  if (words.has(kNodes)) keep_largest(log.nodes, number_behind(line, " nNodes "));
  if (words.has(kInitStart)) {
    log.started = true;
    if (log.start_line.empty()) log.start_line = printable(trim(line), 200);
  }
  if (words.has(kInitComplete)) log.complete = true;
  if (words.has(kPluginPath)) log.plugin = printable(*between(line, "Plugin Path : ", " "), 120);
  if (words.has(kOverriding)) ++log.route_overrides;
  if (words.has(kListener)) {
    const auto advertised = number_behind(line, "advertised=");
    const auto observed = number_behind(line, "observed=");
    if (advertised && observed && *advertised < *observed) log.listeners_capped = true;
  }
  if (words.has(kTreeConnect)) log.tree_failed = true;
}

// Warnings of jobs that run well: of events that NCCL passes over, of connections that it tries again, of a process
// that ends.
bool is_harmless(std::string_view warning) {
  constexpr std::array<std::string_view, 5> kTexts = {"non-fatal async event", "GID table changed", "retrying",
                                                      "driver shutting down", "unknown event type"};
  return std::any_of(kTexts.begin(), kTexts.end(), [&](auto text) { return warning.find(text) != warning.npos; });
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

struct Mark {
  std::size_t at = std::string_view::npos;  // of "NCCL INFO " or "NCCL WARN ", the first of them
  bool warns = false;
  bool version_before = false;
};

Mark find_mark(std::string_view line) {
  Mark mark;
  for (std::size_t at = line.find("NCCL "); at != std::string_view::npos; at = line.find("NCCL ", at + 5)) {
    const std::string_view rest = line.substr(at + 5);
    if (rest.starts_with("version ")) mark.version_before = true;
    mark.warns = rest.starts_with("WARN ");
    if (!mark.warns && !rest.starts_with("INFO ")) continue;
    mark.at = at;
    break;
  }
  return mark;
}

// Lines of one file. A log may have millions of lines: what is the same for many of them is kept.
class LogReader {
 public:
  explicit LogReader(spec::NcclLog& log) : log_(log) {
    for (const spec::NcclWarning& warning : log.warnings) warned_.emplace(warning.host, warning.text);
  }

  void add_line(std::string_view line) {
    const Mark mark = find_mark(line);
    const bool of_nccl = mark.at != std::string_view::npos;
    const std::string_view said = of_nccl ? line.substr(mark.at + 10) : line;
    const LogWords words = words_in(said);
    // The first rank prints it bare, without a host.
    if (mark.version_before || words.has(LogWord::kVersion)) read_version(line, log_);
    if (of_nccl) {
      const std::string_view name = host_before(line.substr(0, mark.at));
      add_words(name, said, words);
      if (mark.warns) add_warning(name, said);
      return;
    }
    if (read_nccl_tests(line, log_.tests)) ++log_.lines;
    if (words.bits == 0) return;
    if (is_bare_line(line)) add_words(host_before(""), line, words);
    if (!log_.error && words.has(LogWord::kJobFailed)) log_.error = printable(line, 300);
  }

 private:
  void add_words(std::string_view name, std::string_view said, LogWords words) {
    if (host_ == nullptr || name != host_name_) {
      host_ = nullptr;
      const std::string shown = printable(name, 64);
      if (log_.hosts.size() >= kMaxHosts && !log_.hosts.contains(shown)) return;
      host_ = &log_.hosts[shown];
      host_name_ = name;
    }
    ++log_.lines;
    if (words.bits == 0) return;
    read_job(said, words, log_);
    read_host(said, words, *host_);
    read_graph(said, words, *host_, log_);
  }

  void add_warning(std::string_view name, std::string_view said) {
    if (log_.warnings.size() >= kMaxWarnings) return;
    spec::NcclWarning warning{printable(name, 64), printable(trim(said), 300)};
    if (is_harmless(warning.text) || !warned_.emplace(warning.host, warning.text).second) return;
    log_.warnings.push_back(std::move(warning));
  }

  spec::NcclLog& log_;
  std::string host_name_;  // of the last line, as it stands there
  spec::NcclHost* host_ = nullptr;
  std::set<std::pair<std::string, std::string>> warned_;
};

}  // namespace

void add_nccl_log(spec::NcclLog& log, std::string_view text, std::chrono::nanoseconds allowed) {
  CpuBudget budget(allowed, "reading the log");
  LogReader reader(log);
  std::string made;
  for (std::size_t lines = 0; !text.empty(); ++lines) {
    if (lines % 64 == 0) budget.look();
    const std::size_t newline = text.find('\n');
    reader.add_line(plain_line(text.substr(0, std::min(newline, limits::kLogLineBytes)), made));
    text.remove_prefix(newline == std::string_view::npos ? text.size() : newline + 1);
  }
}

}  // namespace yoke::check

#include "yoke/cli/link_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "yoke/cli/findings_text.h"
#include "yoke/link/expectation.h"
#include "yoke/report/table.h"
#include "yoke/spec/measurement.h"

namespace yoke {
namespace {

// What TCP cannot tell, and what to do about it.
constexpr const char* kFloorText =
    "By TCP the processors are the limit: only rates that even TCP should pass are judged. Install perftest on all\n"
    "nodes ('apt-get install perftest') to measure by RDMA.\n";

std::string percent(BitsPerSecond rate, const std::optional<LinkExpectation>& expected, int halves) {
  if (!expected) return "-";
  return fmt::format("{:.0f}%", rate / (expected->half_rate * static_cast<double>(halves)) * 100);
}

std::string cores_of(const LinkPhase& phase) {
  std::vector<std::string> parts;
  for (const NodeLoad& load : phase.loads) parts.push_back(fmt::format("{:.1f}", load.cores));
  return parts.empty() ? "-" : fmt::format("{}", fmt::join(parts, " / "));
}

void add_phase(Table& table, const PairResult& pair, const LinkPhase& phase,
               const std::optional<LinkExpectation>& expected) {
  for (const std::string& from : {pair.a, pair.b}) {
    std::vector<std::string> halves, parts;
    std::int64_t retransmits = 0;
    for (const HalfRate& rate : phase.rates) {
      if (rate.from != from) continue;
      halves.push_back(rate.half);
      parts.push_back(to_string(rate.rate));
      retransmits += rate.retransmits;
    }
    if (halves.empty()) continue;
    const BitsPerSecond sum = phase.sum(from);
    std::string what = fmt::format("{}", fmt::join(halves, " + "));
    if (phase.kind == LinkPhaseKind::kBothWays) what += ", both ways";
    table.rows.push_back({what, fmt::format("{} to {}", from, from == pair.a ? pair.b : pair.a), to_string(sum),
                          parts.size() > 1 ? fmt::format("{}", fmt::join(parts, " + ")) : "",
                          percent(sum, expected, static_cast<int>(halves.size())), std::to_string(retransmits),
                          cores_of(phase)});
  }
}

std::string rates_text(const PairResult& pair, const std::optional<LinkExpectation>& expected) {
  Table table{.columns = {{.header = "halves"},
                          {.header = "direction"},
                          {.header = "rate", .align = TextAlign::kRight},
                          {.header = "each"},
                          {.header = "of expected", .align = TextAlign::kRight},
                          {.header = "resent", .align = TextAlign::kRight},
                          {.header = "cores", .align = TextAlign::kRight}}};
  for (const LinkPhase& phase : pair.phases) add_phase(table, pair, phase, expected);
  return table.rows.empty() ? "" : render_text(table, {.width = kUnlimitedWidth});
}

// What was measured twice, and what else the machines did.
std::string repeats_text(const PairResult& pair) {
  std::string text;
  for (const LinkPhase& phase : pair.phases) {
    for (const HalfRate& rate : phase.rates) {
      if (!rate.again) continue;
      text += fmt::format("Measured again, as it fell short: half {} from {} to {}{}: {}, then {}.\n", rate.half,
                          rate.from, rate.to, phase.kind == LinkPhaseKind::kAlone ? " alone" : " beside the others",
                          to_string(rate.rate), to_string(*rate.again));
    }
  }
  return text;
}

double taken_meanwhile(const LinkTestResult& result) {
  double taken = result.all_reduce ? result.all_reduce->taken : 0;
  for (const PairResult& pair : result.pairs) {
    for (const LinkPhase& phase : pair.phases) {
      for (const NodeLoad& load : phase.loads) taken = std::max(taken, load.taken);
    }
  }
  return taken;
}

std::string latency_text(const PairResult& pair) {
  Table table{.columns = {{.header = "half"},
                          {.header = "message", .align = TextAlign::kRight},
                          {.header = "min", .align = TextAlign::kRight},
                          {.header = "p50", .align = TextAlign::kRight},
                          {.header = "p99", .align = TextAlign::kRight},
                          {.header = "max", .align = TextAlign::kRight},
                          {.header = "messages", .align = TextAlign::kRight}}};
  for (const HalfLatency& latency : pair.latencies) {
    for (const PingResult& row : latency.rows) {
      table.rows.push_back({latency.half, to_string(Bytes{row.size}), to_string(row.least), to_string(row.p50),
                            to_string(row.p99), to_string(row.most), std::to_string(row.count)});
    }
  }
  if (table.rows.empty()) return "";
  std::string text = "One way (half of the round trip):\n" + render_text(table);
  for (const HalfLatency& latency : pair.latencies) {
    for (const SentMessages& sent : latency.sent) {
      if (sent.resent > 0) {
        text += fmt::format("Of {} messages on half {}, {} sent {} again.\n", sent.count, latency.half, sent.from,
                            sent.resent);
      }
    }
  }
  return text;
}

std::string counters_text(const PairResult& pair) {
  if (pair.counters.empty()) return "Error and drop counters: none moved.\n";
  std::string text = "Counters that moved:";
  for (const CounterChange& counter : pair.counters) {
    text += fmt::format(" {}/{} {} {:+};", counter.node, counter.interface, counter.name, counter.change);
  }
  text.back() = '\n';
  return text;
}

std::string pair_text(const PairResult& pair, const std::optional<LinkExpectation>& expected) {
  std::string text = fmt::format("{} and {}\n", pair.a, pair.b);
  if (pair.transport == "tcp") {
    text += fmt::format("*** RDMA NOT USED, TCP measured instead: {} ***\n", pair.transport_reason);
    if (expected && is_floor(pair.transport, expected->half_rate)) text += kFloorText;
    if (pair.streams > 1) text += fmt::format("{} connections for each half.\n", pair.streams);
  } else {
    text += "By RDMA (perftest, writes of 1 MiB, four queue pairs a half).\n";
  }
  const std::string rates = rates_text(pair, expected);
  const std::string latency = latency_text(pair);
  if (!rates.empty()) text += "\n" + rates + repeats_text(pair);
  if (!latency.empty()) text += "\n" + latency;
  return text + "\n" + counters_text(pair);
}

}  // namespace

std::string link_test_text(const LinkTestResult& result) {
  std::string text;
  for (const PairResult& pair : result.pairs) text += pair_text(pair, result.expected) + "\n";
  if (result.all_reduce) {
    text += fmt::format("All-reduce over {} nodes: {} on the bus with {}; {}.\n", result.all_reduce->ranks,
                        to_string(to_bits_per_second(result.all_reduce->large_bus_bandwidth)),
                        to_string(result.all_reduce->large_size), token_cost(*result.all_reduce));
    if (const auto& again = result.all_reduce->large_bus_bandwidth_again) {
      text += fmt::format("Measured again, as it fell short: {}.\n", to_string(to_bits_per_second(*again)));
    }
  } else {
    text += fmt::format("No all-reduce was run: {}.\n", result.all_reduce_missing);
  }
  if (result.expected) {
    text += fmt::format("Expected of each half: {} ({}).\n", to_string(result.expected->half_rate),
                        result.expected->source);
  } else {
    text += "Nothing is known of what a half should carry: set fabric.half_rate or hardware in the cluster file.\n";
  }
  const double taken = taken_meanwhile(result);
  if (taken >= kTakenMost) {
    text += fmt::format("The CPU was up to {:.0f}% busy with other programs meanwhile.\n", taken * 100);
  }
  const std::string not_judged = withheld_text(result.withheld, taken);
  if (result.findings.empty()) {
    return text + (not_judged.empty() ? "Verdict: the link is healthy.\n" : "Verdict: none. " + not_judged);
  }
  return text + not_judged +
         fmt::format("Verdict: {} finding{}.\n\n{}", result.findings.size(), result.findings.size() == 1 ? "" : "s",
                     findings_text(result.findings));
}

}  // namespace yoke

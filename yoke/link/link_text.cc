#include "yoke/link/link_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "yoke/link/expectation.h"
#include "yoke/report/findings_text.h"
#include "yoke/report/table.h"
#include "yoke/spec/measurement.h"

namespace yoke::link {
namespace {

// What TCP cannot tell, and what to do about it.
constexpr const char* kFloorText =
    "By TCP the processors are the limit: only rates that even TCP should pass are evaluated. Install perftest on all\n"
    "nodes ('apt-get install perftest') to measure by RDMA.\n";

std::string percent(BitsPerSecond rate, const std::optional<LinkExpectation>& expected, int rails) {
  if (!expected) return "-";
  return fmt::format("{:.0f}%", rate / (expected->rail_rate * static_cast<double>(rails)) * 100);
}

std::string cores_of(const LinkPhase& phase) {
  std::vector<std::string> parts;
  for (const NodeLoad& load : phase.loads) parts.push_back(fmt::format("{:.1f}", load.cores));
  return parts.empty() ? "-" : fmt::format("{}", fmt::join(parts, " / "));
}

// "A + B"; of the rails of a server "A to H".
std::string rails_text(const std::vector<std::string>& rails) {
  bool in_order = rails.size() > 2;
  for (std::size_t i = 0; in_order && i < rails.size(); ++i) {
    in_order = rails[i].size() == 1 && rails[i][0] == rails[0][0] + static_cast<char>(i);
  }
  return in_order ? fmt::format("{} to {}", rails.front(), rails.back()) : fmt::format("{}", fmt::join(rails, " + "));
}

// "1.99 Gb/s + 1.98 Gb/s"; of more than two rails the lowest and the highest, so that the row fits a line.
std::string each_text(const std::vector<BitsPerSecond>& rates) {
  if (rates.size() < 2) return "";
  if (rates.size() == 2) return fmt::format("{} + {}", yoke::to_string(rates[0]), yoke::to_string(rates[1]));
  const auto [min, max] = std::ranges::minmax_element(rates);
  return fmt::format("{:.3g} to {:.3g} Gb/s", min->value / 1e9, max->value / 1e9);
}

void add_phase(report::Table& table, const PairResult& pair, const LinkPhase& phase,
               const std::optional<LinkExpectation>& expected) {
  for (const std::string& from : {pair.a, pair.b}) {
    std::vector<std::string> rails;
    std::vector<BitsPerSecond> rates;
    std::int64_t retransmits = 0;
    for (const RailRate& rate : phase.rates) {
      if (rate.from != from) continue;
      rails.push_back(rate.rail);
      rates.push_back(rate.rate);
      retransmits += rate.retransmits;
    }
    if (rails.empty()) continue;
    const BitsPerSecond sum = phase.sum(from);
    std::string what = rails_text(rails);
    if (phase.kind == LinkPhaseKind::kBothWays) what += ", both ways";
    table.rows.push_back({what, fmt::format("{} to {}", from, from == pair.a ? pair.b : pair.a), yoke::to_string(sum),
                          each_text(rates), percent(sum, expected, static_cast<int>(rails.size())),
                          std::to_string(retransmits), cores_of(phase)});
  }
}

std::string rates_text(const PairResult& pair, const std::optional<LinkExpectation>& expected) {
  report::Table table{.columns = {{.header = "rails"},
                                  {.header = "direction"},
                                  {.header = "rate", .align = report::TextAlign::kRight},
                                  {.header = "each"},
                                  {.header = "of expected", .align = report::TextAlign::kRight},
                                  {.header = "resent", .align = report::TextAlign::kRight},
                                  {.header = "cores", .align = report::TextAlign::kRight}}};
  for (const LinkPhase& phase : pair.phases) add_phase(table, pair, phase, expected);
  return table.rows.empty() ? "" : report::render_text(table, report::for_output(report::kUnlimitedWidth));
}

// What was measured twice, and what else the machines did.
std::string repeats_text(const PairResult& pair) {
  std::string text;
  for (const LinkPhase& phase : pair.phases) {
    for (const RailRate& rate : phase.rates) {
      if (!rate.again) continue;
      text += fmt::format("Measured again, as it fell short: rail {} from {} to {}{}: {}, then {}.\n", rate.rail,
                          rate.from, rate.to, phase.kind == LinkPhaseKind::kAlone ? " alone" : " beside the others",
                          yoke::to_string(rate.rate), yoke::to_string(*rate.again));
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
  report::Table table{.columns = {{.header = "rail"},
                                  {.header = "message", .align = report::TextAlign::kRight},
                                  {.header = "min", .align = report::TextAlign::kRight},
                                  {.header = "p50", .align = report::TextAlign::kRight},
                                  {.header = "p99", .align = report::TextAlign::kRight},
                                  {.header = "max", .align = report::TextAlign::kRight},
                                  {.header = "messages", .align = report::TextAlign::kRight}}};
  for (const RailLatency& latency : pair.latencies) {
    for (const PingResult& row : latency.rows) {
      table.rows.push_back({latency.rail, yoke::to_string(Bytes{row.size}), yoke::to_string(row.min),
                            yoke::to_string(row.p50), yoke::to_string(row.p99), yoke::to_string(row.max),
                            std::to_string(row.count)});
    }
  }
  if (table.rows.empty()) return "";
  std::string text = "One way (half of the round trip):\n" + report::render_text(table);
  for (const RailLatency& latency : pair.latencies) {
    for (const SentMessages& sent : latency.sent) {
      if (sent.resent > 0) {
        text += fmt::format("Of {} messages on rail {}, {} sent {} again.\n", sent.count, latency.rail, sent.from,
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
    text += fmt::format("Measured by TCP, not RDMA: {}.\n", pair.transport_reason);
    if (expected && spec::is_floor(pair.transport, expected->rail_rate)) text += kFloorText;
    if (pair.streams > 1) text += fmt::format("{} connections for each rail.\n", pair.streams);
  } else {
    text += "By RDMA (perftest, writes of 1 MiB, four queue pairs a rail).\n";
  }
  const std::string rates = rates_text(pair, expected);
  const std::string latency = latency_text(pair);
  if (!rates.empty()) text += "\n" + rates + repeats_text(pair);
  if (!latency.empty()) text += "\n" + latency;
  return text + "\n" + counters_text(pair);
}

// "Verdict: healthy: 2 rails, each at least 95% of 2 Gb/s."
std::string healthy_text(const LinkTestResult& result) {
  std::set<std::string> rails;
  double min = 1;
  for (const PairResult& pair : result.pairs) {
    for (const LinkPhase& phase : pair.phases) {
      if (phase.kind != LinkPhaseKind::kAlone) continue;
      for (const RailRate& rate : phase.rates) {
        rails.insert(rate.rail);
        min = std::min(min, std::max(rate.rate, rate.again.value_or(rate.rate)) / result.expected->rail_rate);
      }
    }
  }
  if (rails.empty()) return "Verdict: healthy.\n";
  return fmt::format("Verdict: healthy: {} rail{}, {}at least {:.0f}% of {}.\n", rails.size(),
                     rails.size() == 1 ? "" : "s", rails.size() == 1 ? "" : "each ", min * 100,
                     yoke::to_string(result.expected->rail_rate));
}

}  // namespace

std::string link_test_text(const LinkTestResult& result) {
  std::string text;
  for (const PairResult& pair : result.pairs) text += pair_text(pair, result.expected) + "\n";
  if (result.all_reduce) {
    text += fmt::format("All-reduce over {} nodes: {} on the bus with {}; {}.\n", result.all_reduce->ranks,
                        yoke::to_string(to_bits_per_second(result.all_reduce->large_bus_bandwidth)),
                        yoke::to_string(result.all_reduce->large_size), token_cost(*result.all_reduce));
    if (const auto& again = result.all_reduce->large_bus_bandwidth_again) {
      text += fmt::format("Measured again, as it fell short: {}.\n", yoke::to_string(to_bits_per_second(*again)));
    }
  } else {
    text += fmt::format("No all-reduce was run: {}.\n", result.all_reduce_missing);
  }
  if (result.expected) {
    text += fmt::format("Expected of each rail: {} ({}).\n", yoke::to_string(result.expected->rail_rate),
                        result.expected->source);
  } else {
    text += "No expected rate: set hardware (or fabric.rail_rate) in the cluster file.\n";
  }
  const double taken = taken_meanwhile(result);
  if (taken >= spec::kMaxTaken) {
    text += fmt::format("The CPU was up to {:.0f}% busy with other programs meanwhile.\n", taken * 100);
  }
  const std::string not_evaluated = report::withheld_text(result.withheld, taken);
  if (result.findings.empty()) {
    if (!not_evaluated.empty()) return text + "Verdict: none. " + not_evaluated;
    return text + (result.expected ? healthy_text(result)
                                   : "Verdict: measured; there is nothing to compare the rates with.\n");
  }
  return text + not_evaluated +
         fmt::format("Verdict: {} finding{}.\n\n{}", result.findings.size(), result.findings.size() == 1 ? "" : "s",
                     report::findings_text(result.findings));
}

}  // namespace yoke::link

// The phases about the cable itself: what its rails carry, alone and together (two healthy rails that share a
// bottleneck look well one by one), and what is said of a rail that is pulled, or slow with all lights green.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "yoke/gameday/answers.h"
#include "yoke/gameday/findings.h"
#include "yoke/gameday/lab_fault.h"
#include "yoke/gameday/phases.h"

namespace yoke::gameday {
namespace {

// Windows as short as the shaped cables of a lab allow; real ones, with RDMA, are measured for whole seconds. The
// all-reduce is left to the phase of that name.
std::vector<std::string> link_test(const Environment& environment) {
  const std::string seconds = environment.lab() ? "0.2" : "1";
  return {"link", "test", "--seconds", seconds, "--no-all-reduce", "--cluster", environment.cluster_word()};
}

// What rails carry together in one direction.
struct Flow {
  std::string rails;  // "A + B"
  double rate = 0;    // bits per second
};

// By sender and receiver.
std::map<std::pair<std::string, std::string>, Flow> flows_of(const Document& phase) {
  std::map<std::pair<std::string, std::string>, Flow> flows;
  for (const Document& rate : list_at(phase, "rates").items) {
    Flow& flow = flows[{text_at(rate, "from"), text_at(rate, "to")}];
    flow.rails += (flow.rails.empty() ? "" : " + ") + text_at(rate, "rail");
    flow.rate += number_at(rate, "rate");
  }
  return flows;
}

struct LinkRates {
  std::vector<Flow> slowest;       // of "A", "B" and "A + B", one way: the least of all pairs and directions
  double latency = 0;              // s, of 8 B one way: the rail with the largest median
  std::optional<double> expected;  // of one rail
  report::Table table{.columns = {{.header = "rails"},
                                  {.header = "from"},
                                  {.header = "to"},
                                  {.header = "rate", .align = report::TextAlign::kRight}}};
};

void keep_min(std::vector<Flow>& slowest, const Flow& flow) {
  const auto known =
      std::find_if(slowest.begin(), slowest.end(), [&](const Flow& other) { return other.rails == flow.rails; });
  if (known == slowest.end()) return slowest.push_back(flow);
  known->rate = std::min(known->rate, flow.rate);
}

LinkRates rates_of(const Document& answer) {
  LinkRates rates;
  if (find_at(answer, "expected.rail_rate")) rates.expected = number_at(answer, "expected.rail_rate");
  for (const Document& pair : list_at(answer, "pairs").items) {
    for (const Document& phase : list_at(pair, "phases").items) {
      const bool both_ways = text_at(phase, "kind") == "both-ways";
      for (const auto& [ends, flow] : flows_of(phase)) {
        rates.table.rows.push_back({flow.rails + (both_ways ? ", both ways" : ""), ends.first, ends.second,
                                    yoke::to_string(BitsPerSecond{flow.rate})});
        if (!both_ways) keep_min(rates.slowest, flow);
      }
    }
    for (const Document& rail : list_at(pair, "latencies").items)
      rates.latency = std::max(rates.latency, number_at(rail, "rows.0.p50"));
  }
  return rates;
}

// "99% of 2 Gb/s" for two rails; nothing where nothing is expected.
std::string against_expected(const Flow& flow, std::optional<double> expected_of_one) {
  if (!expected_of_one) return "";
  const auto rails = 1 + std::count(flow.rails.begin(), flow.rails.end(), '+');
  const double expected = *expected_of_one * static_cast<double>(rails);
  return fmt::format("{:.0f}% of {}", 100 * flow.rate / expected, yoke::to_string(BitsPerSecond{expected}));
}

void report_rate(PhaseRun& phase_run, const std::string& name, const Flow& flow, const LinkRates& rates) {
  phase_run.figure(
      {.name = name, .value = flow.rate / 1e9, .unit = "Gb/s", .note = against_expected(flow, rates.expected)});
}

void report_rail_b(PhaseRun& phase_run, const std::string& name, const LinkRates& rates) {
  for (const Flow& flow : rates.slowest) {
    if (flow.rails == "B") return report_rate(phase_run, name, flow, rates);
  }
  phase_run.expect(false, "rail B is measured");
}

void prove_link(const Environment& environment, PhaseRun& phase_run) {
  const Document answer = look(phase_run, link_test(environment));
  const LinkRates rates = rates_of(answer);
  phase_run.show(rates.table);
  report::BarChart chart{.title = "What the cable carries one way", .value = {.label = "rate (Gb/s)"}};
  report::BarSeries bars{.name = "the least of all directions"};
  for (const Flow& flow : rates.slowest) {
    const std::string name = flow.rails.size() == 1 ? "rail " + flow.rails : flow.rails;
    report_rate(phase_run, name, flow, rates);
    chart.categories.push_back(name);
    bars.values.push_back(flow.rate / 1e9);
  }
  chart.series = {std::move(bars)};
  if (rates.expected) {
    const double rail = *rates.expected / 1e9;
    const auto rails = std::count_if(rates.slowest.begin(), rates.slowest.end(),
                                     [](const Flow& flow) { return flow.rails.size() == 1; });
    chart.references = {{.value = rail, .label = "limit of a rail"}};
    if (rails > 1) chart.references.push_back({.value = rail * static_cast<double>(rails), .label = "of all"});
  }
  phase_run.block(std::move(chart));
  phase_run.figure({.name = "latency", .value = rates.latency * 1e6, .unit = "us", .note = "8 B one way, median"});
  if (!rates.expected) phase_run.print("no verdict on the rates: none is expected (fabric.rail_rate)");
  phase_run.expect(is_clean(answer), "each rail alone and all together: the link is healthy");
}

void prove_nodes(const Environment& environment, PhaseRun& phase_run) {
  if (const auto why = environment.why_no_network()) return phase_run.print("no check of the nodes: " + *why);
  const Document answer = look(phase_run, {"check", "--cluster", environment.cluster_word()});
  if (find_at(answer, "not_measured")) phase_run.print("nothing was measured: " + text_at(answer, "not_measured"));
  phase_run.expect(is_clean(answer), fmt::format("yoke check is clean: none of its {:.0f} rules finds anything",
                                                 number_at(answer, "rules")));
}

void pull_rail(const Environment& environment, PhaseRun& phase_run) {
  const std::string node = environment.cluster().nodes.back().name;
  const std::vector<std::string> check = {"check", "--no-measure", "--cluster", environment.cluster_word()};
  LabFault fault(environment, phase_run, "B");
  fault.make("rail-down", "rail B is pulled");
  const Instant start = real_clock().now();
  const bool named = all_name(look(phase_run, check), node, "B");
  phase_run.figure(
      {.name = "pulled rail found in", .value = to_seconds(real_clock().now() - start).value, .unit = "s"});
  phase_run.expect(named, fmt::format("the pulled rail is found: rail B of {}, and nothing else", node));
  fault.clear();
  phase_run.expect(is_clean(look(phase_run, check)), "the check is clean again");
}

// All that can be looked at is healthy then: state, carrier, addresses, MTU, counters. Only measuring tells.
void slow_rail(const Environment& environment, PhaseRun& phase_run) {
  const spec::Cluster cluster = environment.cluster();
  if (!cluster.fabric || !cluster.fabric->rail_rate)
    return phase_run.print("no slow rail to be found: no rate is expected (fabric.rail_rate)");
  LabFault fault(environment, phase_run, "B");
  fault.make("slow-rail", "rail B is slowed to an eighth of its rate");
  phase_run.expect(is_clean(look(phase_run, {"check", "--no-measure", "--cluster", environment.cluster_word()})),
                   "all lights are green: without measuring nothing is found");
  const Document measured = look(phase_run, link_test(environment));
  report_rail_b(phase_run, "slow rail", rates_of(measured));
  const std::string node = cluster.nodes.back().name;
  phase_run.expect(all_name(measured, node, "B"),
                   fmt::format("measuring finds the slow rail: rail B of {}, and nothing else", node));
  fault.clear();
  std::vector<std::string> test_rail = link_test(environment);
  test_rail.insert(test_rail.end(), {"--rail", "B"});
  const Document healed = look(phase_run, test_rail);
  report_rail_b(phase_run, "healed rail", rates_of(healed));
  phase_run.expect(is_clean(healed), "rail B carries its rate again");
}

}  // namespace

void run_prove_phase(Environment& environment, PhaseRun& phase_run) {
  prove_link(environment, phase_run);
  prove_nodes(environment, phase_run);
}

void run_fault_phase(Environment& environment, PhaseRun& phase_run) {
  pull_rail(environment, phase_run);
  slow_rail(environment, phase_run);
}

}  // namespace yoke::gameday

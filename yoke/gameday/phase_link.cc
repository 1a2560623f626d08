// The phases about the cable itself: what its halves carry, alone and together (two healthy halves that share a
// bottleneck look well one by one), and what is said of a half that is pulled, or slow with all lights green.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "yoke/gameday/answers.h"
#include "yoke/gameday/findings.h"
#include "yoke/gameday/lab_fault.h"
#include "yoke/gameday/phases.h"

namespace yoke {
namespace {

// Windows as short as the shaped cables of a lab allow; real ones, with RDMA, are measured for whole seconds. The
// all-reduce is left to the phase of that name.
std::vector<std::string> link_test(const Venue& venue) {
  const std::string seconds = venue.lab() ? "0.2" : "1";
  return {"link", "test", "--seconds", seconds, "--no-all-reduce", "--cluster", venue.cluster_word()};
}

// What halves carry together in one direction.
struct Flow {
  std::string halves;  // "A + B"
  double rate = 0;     // bits per second
};

// By sender and receiver.
std::map<std::pair<std::string, std::string>, Flow> flows_of(const Document& phase) {
  std::map<std::pair<std::string, std::string>, Flow> flows;
  for (const Document& rate : list_at(phase, "rates").items) {
    Flow& flow = flows[{text_at(rate, "from"), text_at(rate, "to")}];
    flow.halves += (flow.halves.empty() ? "" : " + ") + text_at(rate, "half");
    flow.rate += number_at(rate, "rate");
  }
  return flows;
}

struct LinkRates {
  std::vector<Flow> least;         // of "A", "B" and "A + B", one way: the least of all pairs and directions
  double latency = 0;              // s, of 8 B one way: the half with the largest median
  std::optional<double> expected;  // of one half
  Table table{
      .columns = {
          {.header = "halves"}, {.header = "from"}, {.header = "to"}, {.header = "rate", .align = TextAlign::kRight}}};
};

void keep_least(std::vector<Flow>& least, const Flow& flow) {
  const auto known =
      std::find_if(least.begin(), least.end(), [&](const Flow& other) { return other.halves == flow.halves; });
  if (known == least.end()) return least.push_back(flow);
  known->rate = std::min(known->rate, flow.rate);
}

LinkRates rates_of(const Document& answer) {
  LinkRates rates;
  if (find_at(answer, "expected.half_rate")) rates.expected = number_at(answer, "expected.half_rate");
  for (const Document& pair : list_at(answer, "pairs").items) {
    for (const Document& phase : list_at(pair, "phases").items) {
      const bool both_ways = text_at(phase, "kind") == "both-ways";
      for (const auto& [ends, flow] : flows_of(phase)) {
        rates.table.rows.push_back({flow.halves + (both_ways ? ", both ways" : ""), ends.first, ends.second,
                                    to_string(BitsPerSecond{flow.rate})});
        if (!both_ways) keep_least(rates.least, flow);
      }
    }
    for (const Document& half : list_at(pair, "latencies").items)
      rates.latency = std::max(rates.latency, number_at(half, "rows.0.p50"));
  }
  return rates;
}

// "99% of 2 Gb/s" for two halves; nothing where nothing is expected.
std::string against_expected(const Flow& flow, std::optional<double> expected_of_one) {
  if (!expected_of_one) return "";
  const auto halves = 1 + std::count(flow.halves.begin(), flow.halves.end(), '+');
  const double expected = *expected_of_one * static_cast<double>(halves);
  return fmt::format("{:.0f}% of {}", 100 * flow.rate / expected, to_string(BitsPerSecond{expected}));
}

void tell_rate(Scene& scene, const std::string& name, const Flow& flow, const LinkRates& rates) {
  scene.figure(
      {.name = name, .value = flow.rate / 1e9, .unit = "Gb/s", .note = against_expected(flow, rates.expected)});
}

void tell_half_b(Scene& scene, const std::string& name, const LinkRates& rates) {
  for (const Flow& flow : rates.least) {
    if (flow.halves == "B") return tell_rate(scene, name, flow, rates);
  }
  scene.expect(false, "half B is measured");
}

void prove_link(const Venue& venue, Scene& scene) {
  const Document answer = look(scene, link_test(venue));
  const LinkRates rates = rates_of(answer);
  scene.show(rates.table);
  BarChart chart{.title = "What the cable carries one way", .value = {.label = "rate (Gb/s)"}};
  BarSeries bars{.name = "the least of all directions"};
  for (const Flow& flow : rates.least) {
    const std::string name = flow.halves.size() == 1 ? "half " + flow.halves : flow.halves;
    tell_rate(scene, name, flow, rates);
    chart.categories.push_back(name);
    bars.values.push_back(flow.rate / 1e9);
  }
  chart.series = {std::move(bars)};
  scene.block(std::move(chart));
  scene.figure({.name = "latency", .value = rates.latency * 1e6, .unit = "us", .note = "8 B one way, median"});
  if (!rates.expected) scene.say("no verdict on the rates: none is expected (fabric.half_rate)");
  scene.expect(is_clean(answer), "each half alone and both together: the link is healthy");
}

void prove_nodes(const Venue& venue, Scene& scene) {
  if (const auto why = venue.why_no_network()) return scene.say("no check of the nodes: " + *why);
  const Document answer = look(scene, {"check", "--cluster", venue.cluster_word()});
  if (find_at(answer, "not_measured")) scene.say("nothing was measured: " + text_at(answer, "not_measured"));
  scene.figure({.name = "rules", .value = number_at(answer, "rules"), .note = "of yoke check"});
  scene.expect(is_clean(answer), "yoke check is clean: no rule finds anything");
}

void pull_half(const Venue& venue, Scene& scene) {
  const std::string node = venue.cluster().nodes.back().name;
  const std::vector<std::string> check = {"check", "--no-measure", "--cluster", venue.cluster_word()};
  LabFault fault(venue, scene);
  fault.make("half-down", "half B is pulled");
  const Instant start = real_clock().now();
  const bool named = all_name(look(scene, check), node, "B");
  scene.figure({.name = "pulled half found in", .value = to_seconds(real_clock().now() - start).value, .unit = "s"});
  scene.expect(named, fmt::format("the pulled half is found: half B of {}, and nothing else", node));
  fault.clear();
  scene.expect(is_clean(look(scene, check)), "the check is clean again");
}

// All that can be looked at is healthy then: state, carrier, addresses, MTU, counters. Only measuring tells.
void slow_half(const Venue& venue, Scene& scene) {
  const Cluster cluster = venue.cluster();
  if (!cluster.fabric || !cluster.fabric->half_rate)
    return scene.say("no slow half to be found: no rate is expected (fabric.half_rate)");
  LabFault fault(venue, scene);
  fault.make("slow-half", "half B is slowed to an eighth of its rate");
  scene.expect(is_clean(look(scene, {"check", "--no-measure", "--cluster", venue.cluster_word()})),
               "all lights are green: without measuring nothing is found");
  const Document measured = look(scene, link_test(venue));
  tell_half_b(scene, "slow half", rates_of(measured));
  const std::string node = cluster.nodes.back().name;
  scene.expect(all_name(measured, node, "B"),
               fmt::format("measuring finds the slow half: half B of {}, and nothing else", node));
  fault.clear();
  std::vector<std::string> test_half = link_test(venue);
  test_half.insert(test_half.end(), {"--half", "B"});
  const Document healed = look(scene, test_half);
  tell_half_b(scene, "healed half", rates_of(healed));
  scene.expect(is_clean(healed), "half B carries its rate again");
}

}  // namespace

void play_prove(Venue& venue, Scene& scene) {
  prove_link(venue, scene);
  prove_nodes(venue, scene);
}

void play_fault(Venue& venue, Scene& scene) {
  pull_half(venue, scene);
  slow_half(venue, scene);
}

}  // namespace yoke

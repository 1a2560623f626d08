#include "yoke/gameday/pictures.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "yoke/base/ip.h"

namespace yoke::gameday {
namespace {

constexpr double kIntervals = 24;
constexpr double kIntervalMin = 0.2;  // seconds: shorter ones would hold single tokens

struct DrawnEnd {
  std::string node;
  std::string interface;
  std::string address;
};

std::string rail_letter(std::size_t place) { return std::string(1, static_cast<char>('A' + place % 26)); }

}  // namespace

std::string draw_rails(const spec::Cluster& cluster) {
  // By network, in the order of the first node that has it.
  std::vector<std::string> order;
  std::map<std::string, std::vector<DrawnEnd>> networks;
  for (const spec::ClusterNode& node : cluster.nodes) {
    for (const spec::Rail& rail : node.rails) {
      const std::string network = to_string(rail.address.network());
      if (networks[network].empty()) order.push_back(network);
      networks[network].push_back({node.name, rail.interface, to_string(rail.address.address)});
    }
  }
  std::size_t node_width = 0, end_width = 0;
  for (const auto& [network, ends] : networks) {
    for (const DrawnEnd& end : ends) {
      node_width = std::max(node_width, end.node.size());
      end_width = std::max(end_width, end.interface.size() + 1 + end.address.size());
    }
  }
  std::string text;
  for (std::size_t place = 0; place < order.size(); ++place) {
    const std::vector<DrawnEnd>& ends = networks[order[place]];
    const std::string letter = rail_letter(place);
    if (ends.size() == 2) {
      text += fmt::format("{:<{}}  {:>{}} ══ {} ══ {:<{}}  {}\n", ends[0].node, node_width,
                          ends[0].interface + " " + ends[0].address, end_width, letter,
                          ends[1].address + " " + ends[1].interface, end_width, ends[1].node);
      continue;
    }
    for (const DrawnEnd& end : ends) {
      text += fmt::format("{:<{}}  {:>{}} ══ {} ══ {}\n", end.node, node_width, end.interface + " " + end.address,
                          end_width, letter, ends.size() == 1 ? "nothing" : "switch");
    }
  }
  return text;
}

report::LineChart rate_chart(const AnswerCourse& course) {
  report::LineChart chart{.title = "Tokens per second while it happened",
                          .x = {.label = "seconds since the first word", .include = {0}},
                          .y = {.label = "tokens/s", .include = {0}},
                          .series = {{.name = "the answer"}}};
  if (course.progress.empty() || course.progress.back().length == 0) return chart;
  const double end = std::max(course.progress.back().seconds, kIntervalMin);
  const double interval = std::max(kIntervalMin, end / kIntervals);
  const double tokens_each = static_cast<double>(course.tokens) / static_cast<double>(course.progress.back().length);
  double highest = 0;
  std::size_t before = 0;
  auto next = course.progress.begin();
  for (double from = 0; from < end; from += interval) {
    std::size_t length = before;
    while (next != course.progress.end() && (next->seconds < from + interval || from + interval >= end)) {
      length = (next++)->length;
    }
    const double rate = static_cast<double>(length - before) * tokens_each / interval;
    chart.series[0].points.push_back({.x = from + interval / 2, .y = rate});
    highest = std::max(highest, rate);
    before = length;
  }
  chart.series.push_back({.name = course.event,
                          .points = {{.x = course.event_seconds, .y = 0}, {.x = course.event_seconds, .y = highest}}});
  return chart;
}

}  // namespace yoke::gameday

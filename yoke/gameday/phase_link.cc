// The phase about the halves: what each carries alone, and what both carry together. Two healthy halves of one cable
// that share a bottleneck look well one by one.
#include <fmt/format.h>

#include "yoke/base/files.h"
#include "yoke/gameday/bandwidth.h"
#include "yoke/gameday/phases.h"

namespace yoke {
namespace {

// The name of a cluster file in which every node has this half only: what is given it cannot use another.
std::string with_one_half(const Venue& venue, std::size_t half, const std::string& name) {
  Cluster cluster = venue.cluster();
  for (ClusterNode& node : cluster.nodes) {
    if (half < node.halves.size()) node.halves = {node.halves[half]};
  }
  const std::string file = fmt::format("half-{}.yaml", name);
  write_file_atomically(venue.folder() / file, print_cluster(cluster));
  return file;
}

}  // namespace

void play_halves(Venue& venue, Scene& scene) {
  const std::vector<std::string> size = {"-b", "8M", "-e", "8M", "-n", "10"};
  BarChart chart{.title = "What the cable carries", .value = {.label = "bus bandwidth (GB/s)"}};
  BarSeries bars{.name = "all-reduce of 8 MiB"};
  double apart = 0;
  for (const std::size_t half : {0U, 1U}) {
    const std::string name(1, static_cast<char>('A' + half));
    const Bandwidth alone = measure(scene, with_one_half(venue, half, name), size);
    scene.figure({.name = "half " + name, .value = alone.largest(), .unit = "GB/s", .note = alone.against_limit()});
    expect_whole(scene, alone, fmt::format("half {} alone carries its rate", name));
    chart.categories.push_back("half " + name);
    bars.values.push_back(alone.largest());
    apart += alone.largest();
  }
  const Bandwidth both = measure(scene, venue.cluster_word(), size);
  scene.figure({.name = "both", .value = both.largest(), .unit = "GB/s", .note = both.against_limit()});
  expect_whole(scene, both, "both together carry the rate of both");
  scene.say(fmt::format("both together carry {:.0f}% of the sum of each alone", 100 * both.largest() / apart));
  chart.categories.emplace_back("both");
  bars.values.push_back(both.largest());
  chart.series = {std::move(bars)};
  scene.block(std::move(chart));
}

}  // namespace yoke

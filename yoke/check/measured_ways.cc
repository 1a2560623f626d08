#include "yoke/check/measured_ways.h"

#include "yoke/spec/hardware_facts.h"

namespace yoke::check {
namespace {

// Whether the way, or the way back, loses or delays what it carries.
bool delivers_badly(const std::vector<spec::RailMeasurement>& ways, const spec::RailMeasurement& way) {
  return std::any_of(ways.begin(), ways.end(), [&](const spec::RailMeasurement& other) {
    const bool there = other.from == way.from && other.from_interface == way.from_interface && other.to == way.to;
    const bool back = other.from == way.to && other.from_interface == way.to_interface && other.to == way.from;
    return (there || back) && (other.is_lossy() || other.is_late());
  });
}

// What a rail can carry with the PCIe link and port speed that it has now: other rules tell these.
double known_limit(const ClusterView& view, const RailEnd& end) {
  double share = 1;
  if (const auto& pcie = end.interface->pcie; pcie && pcie->width_max > 0 && pcie->speed_gt_per_second_max > 0) {
    share =
        std::min(share, pcie->width * pcie->speed_gt_per_second / (pcie->width_max * pcie->speed_gt_per_second_max));
  }
  const spec::Hardware* hardware = hardware_of(*end.node->machine);
  if (hardware && end.rdma && end.rdma->rate) {
    share = std::min(share, *end.rdma->rate / port_rate(view, *hardware));
  }
  return share;
}

}  // namespace

std::vector<Measured> measured_ways(const ClusterView& view) {
  std::vector<Measured> ways;
  if (!view.facts.measurement) return ways;
  for (const spec::RailMeasurement& way : view.facts.measurement->rails) {
    const RailEnd* from = view.find_rail(way.from, way.from_interface);
    const RailEnd* to = view.find_rail(way.to, way.to_interface);
    if (from && to && are_joined(*from, *to)) ways.push_back({&way, from, to});
  }
  return ways;
}

std::optional<double> share_of(const ClusterView& view, const Measured& measured, BitsPerSecond rate) {
  const auto& expected = view.facts.measurement->expected;
  if (!expected || expected->value <= 0) return std::nullopt;
  if (!spec::is_comparable(measured.way->transport, rate, *expected)) return std::nullopt;
  const double limit = std::min(known_limit(view, *measured.from), known_limit(view, *measured.to));
  return limit <= 0 ? std::nullopt : std::optional(rate / *expected / limit);
}

std::optional<double> share_of(const ClusterView& view, const Measured& measured) {
  const spec::RailMeasurement& way = *measured.way;
  return way.alone ? share_of(view, measured, mean_of(*way.alone, way.alone_again)) : std::nullopt;
}

bool is_degraded_in_all(const ClusterView& view, const Measured& measured) {
  const spec::RailMeasurement& way = *measured.way;
  if (!way.alone) return false;
  const auto share = share_of(view, measured, std::max(*way.alone, way.alone_again.value_or(*way.alone)));
  return share && spec::is_degraded(*share);
}

std::string load_words(double taken) {
  if (taken < spec::kMaxTaken) return "";
  return fmt::format("; measured while the CPU was {:.0f}% busy with other programs", taken * 100);
}

std::vector<std::pair<Measured, double>> worst_ways(const ClusterView& view) {
  std::map<std::pair<const RailEnd*, const RailEnd*>, std::pair<Measured, double>> by_pair;
  for (const Measured& measured : measured_ways(view)) {
    const auto share = share_of(view, measured);
    if (!share) continue;
    const auto key = std::minmax(measured.from, measured.to);
    const auto [place, is_new] = by_pair.try_emplace(key, measured, *share);
    // Both directions of one cable are rarely equal to the last digit: only a clear difference moves the blame.
    if (!is_new && *share < place->second.second * 0.9) place->second = {measured, *share};
  }
  const auto is_rather = [&](const std::pair<Measured, double>& a, const std::pair<Measured, double>& b) {
    const bool a_loses = delivers_badly(view.facts.measurement->rails, *a.first.way);
    const bool b_loses = delivers_badly(view.facts.measurement->rails, *b.first.way);
    return a_loses == b_loses ? a.second < b.second : b_loses && a.second < spec::kHealthyShare;
  };
  std::vector<std::pair<Measured, double>> worst;
  for (const auto& [ends, found] : by_pair) {
    const auto same = std::find_if(worst.begin(), worst.end(),
                                   [&](const auto& other) { return other.first.from == found.first.from; });
    if (same == worst.end()) {
      worst.push_back(found);
    } else if (is_rather(found, *same)) {
      *same = found;
    }
  }
  return worst;
}

std::string rate_text(const ClusterView& view, const Measured& measured) {
  const spec::Measurement& measurement = *view.facts.measurement;
  const bool is_low = spec::is_floor(measured.way->transport, *measurement.expected);
  return fmt::format("{} from {} ({}) to {} ({}), alone; {} expected ({}){}{}",
                     both_of(*measured.way->alone, measured.way->alone_again), measured.way->from, measured.from->name,
                     measured.way->to, measured.to->name, yoke::to_string(*measurement.expected),
                     measurement.expected_source,
                     is_low ? "; by TCP, which alone does not account for it: 'apt-get install perftest' on all nodes "
                              "lets it be measured by RDMA"
                            : "",
                     load_words(measured.way->taken));
}

double nic_rails(const ClusterView& view, const std::string& node) {
  const auto& cluster = view.facts.cluster;
  const spec::Hardware* hardware = cluster && cluster->hardware ? spec::find_hardware(*cluster->hardware) : nullptr;
  const spec::SurveyedNode* found = view.find_node(node);
  if (!hardware && found && found->machine) hardware = hardware_of(*found->machine);
  return hardware ? spec::rails_of_nic(*hardware) : 1e9;
}

std::map<std::pair<std::string, std::string>, PairSums> sums_of(const ClusterView& view) {
  std::map<std::pair<std::string, std::string>, PairSums> sums;
  if (!view.facts.measurement) return sums;
  const auto& expected = view.facts.measurement->expected;
  for (const Measured& measured : measured_ways(view)) {
    const spec::RailMeasurement& way = *measured.way;
    PairSums& sum = sums[{way.from, way.to}];
    if (!way.alone || !way.together || !way.both_ways) sum.whole = false;
    if (expected && spec::is_floor(way.transport, *expected)) sum.floor = true;
    // A rail that carries more than it should, alone, need not do so beside the others.
    const BitsPerSecond alone = mean_of(way.alone.value_or(BitsPerSecond{0}), way.alone_again);
    sum.alone += expected ? std::min(alone, *expected) : alone;
    sum.together += mean_of(way.together.value_or(BitsPerSecond{0}), way.together_again);
    sum.both_ways += mean_of(way.both_ways.value_or(BitsPerSecond{0}), way.both_ways_again);
    sum.busy |= way.is_busy();
    sum.rails.insert(sum.rails.end(), {measured.from, measured.to});
  }
  return sums;
}

}  // namespace yoke::check

// How devices are attached: PCIe width and speed, the speed of ports, distances.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "yoke/check/rules.h"

namespace yoke::check {
namespace {

// "0002:01:00.1" to "0002:01:00": all functions of a device share its link.
std::string slot_of(const std::string& address) { return address.substr(0, address.rfind('.')); }

std::string lanes(double speed, int width) { return fmt::format("{:g} GT/s x{}", speed, width); }

// From near to far; nvidia-smi's words.
int distance(const std::string& path) {
  constexpr std::array<std::string_view, 5> kFar = {"PIX", "PXB", "PHB", "NODE", "SYS"};
  const auto found = std::find(kFar.begin(), kFar.end(), path);
  return found == kFar.end() ? -1 : static_cast<int>(found - kFar.begin());
}
constexpr int kMaxNear = 1;  // PXB: below one root port, so that GPU and NIC need no processor between them

struct NearestNic {
  std::string gpu;
  int distance = -1;  // -1: not known
  std::string path, nic;
};

std::vector<NearestNic> nearest_nics(const spec::DeviceTopology& topology) {
  std::vector<NearestNic> all;
  for (std::size_t i = 0; i < topology.devices.size() && i < topology.paths.size(); ++i) {
    if (!topology.devices[i].starts_with("GPU")) continue;
    NearestNic nearest{.gpu = topology.devices[i]};
    for (std::size_t j = 0; j < topology.devices.size() && j < topology.paths[i].size(); ++j) {
      const int far = distance(topology.paths[i][j]);
      if (topology.devices[j].starts_with("GPU") || far < 0) continue;
      if (nearest.distance < 0 || far < nearest.distance) {
        nearest = {nearest.gpu, far, topology.paths[i][j], topology.devices[j]};
      }
    }
    all.push_back(std::move(nearest));
  }
  return all;
}

std::optional<BitsPerSecond> agreed_rate(const RailEnd& end) {
  const bool is_active = end.is_up() && end.rdma && end.rdma->state == "ACTIVE";
  return is_active ? end.rdma->rate : std::nullopt;
}

// What a port of this kind agrees on where all is well. A Spark's is known. A kind of server comes with NICs of
// several rates: there the fastest port of the same board, on any node, shows what it can.
std::optional<BitsPerSecond> best_rate(const ClusterView& view, const RailEnd& end) {
  const spec::Hardware* hardware = hardware_of(*end.node->machine);
  if (!hardware) return std::nullopt;
  if (is_gb10(*end.node->machine)) return port_rate(view, *hardware);
  if (!end.rdma || !end.rdma->board) return std::nullopt;
  std::optional<BitsPerSecond> best;
  for (const RailEnd& other : view.rails) {
    if (!other.rdma || other.rdma->board != end.rdma->board) continue;
    const auto rate = agreed_rate(other);
    if (rate && (!best || *rate > *best)) best = rate;
  }
  return best;
}

Advice slow_port(const RailEnd& end, BitsPerSecond rate, BitsPerSecond best) {
  Advice advice{.node = end.node->name,
                .subject = end.name,
                .what = fmt::format("port {} of {} agreed on {} instead of {}", end.port, end.node->name,
                                    yoke::to_string(rate), yoke::to_string(best)),
                .evidence = fmt::format("{} reports a rate of {}", end.rdma->name, yoke::to_string(rate))};
  if (is_gb10(*end.node->machine)) {
    advice.consequence = "both rails together carry half of what they could";
    advice.fix =
        "behind a switch: switch off auto-negotiation there and set 200G (200GBASE-CR4); else try a cable that is "
        "made for 200 Gb/s";
  } else {
    advice.evidence += fmt::format("; another of the same board ({}) has {}", *end.rdma->board, yoke::to_string(best));
    advice.consequence = fmt::format("it carries at most {:.0f}% of what it could", 100 * (rate / best));
    advice.fix = "compare its cable or transceiver, and the switch's port, with those of the others";
  }
  return advice;
}

}  // namespace

AdviceList find_narrow_nics(const ClusterView& view) {
  AdviceList list;
  for (const spec::SurveyedNode& node : view.facts.nodes) {
    std::map<std::string, const RailEnd*> narrow;  // by slot
    for (const RailEnd* end : view.rails_of(node)) {
      if (!end->interface || !end->interface->pcie || !end->interface->pci_address) continue;
      const spec::PcieLink& link = *end->interface->pcie;
      const bool below = link.width < link.width_max || link.speed_gt_per_second < link.speed_gt_per_second_max;
      if (below && link.width > 0) narrow.try_emplace(slot_of(*end->interface->pci_address), end);
    }
    for (const auto& [slot, end] : narrow) {
      const spec::PcieLink& link = *end->interface->pcie;
      list.push_back(
          {.node = node.name,
           .subject = end->name,
           .what = fmt::format("the PCIe link of {} on {} is narrower than it could be", end->title(), node.name),
           .evidence = fmt::format("{} now, {} at best ({})", lanes(link.speed_gt_per_second, link.width),
                                   lanes(link.speed_gt_per_second_max, link.width_max), slot),
           .consequence = fmt::format(
               "this rail carries at most {:.0f}% of its rate",
               100.0 * link.width * link.speed_gt_per_second / (link.width_max * link.speed_gt_per_second_max)),
           .fix = "update the firmware (BIOS) of this machine, as some of 2025 wire two lanes of four; else "
                  "power it off, unplug it for 30 s, and start it with the cable in place"});
    }
  }
  return list;
}

AdviceList find_narrow_gpus(const ClusterView& view) {
  AdviceList list;
  for (const spec::SurveyedNode& node : view.facts.nodes) {
    if (!node.machine) continue;
    for (const spec::Gpu& gpu : node.machine->gpus) {
      // Only the width: an idle GPU lowers the speed of its link to save power.
      if (!gpu.pcie || gpu.pcie->width <= 0 || gpu.pcie->width >= gpu.pcie->width_max) continue;
      list.push_back(
          {.node = node.name,
           .subject = gpu.index ? fmt::format("GPU {}", *gpu.index) : gpu.name,
           .what = fmt::format("a GPU of {} has {} PCIe lanes of {}", node.name, gpu.pcie->width, gpu.pcie->width_max),
           .evidence = fmt::format("{} at {}", gpu.name, gpu.pci_address.value_or("an unknown address")),
           .consequence = "loading, and everything that crosses the network from this GPU, is slower",
           .fix = "reseat the GPU or its board; look for AER errors in dmesg"});
    }
  }
  return list;
}

AdviceList find_slow_ports(const ClusterView& view) {
  AdviceList list;
  for (const spec::SurveyedNode& node : view.facts.nodes) {
    std::set<int> reported;                                                  // all rails of a port tell its speed
    std::map<std::pair<double, double>, std::vector<const RailEnd*>> alike;  // on a server: one cause, one finding
    for (const RailEnd* end : view.rails_of(node)) {
      const auto rate = agreed_rate(*end);
      const auto best = best_rate(view, *end);
      if (!rate || !best || *rate >= *best || !reported.insert(end->port).second) continue;
      if (is_gb10(*node.machine)) {
        list.push_back(slow_port(*end, *rate, *best));
      } else {
        alike[{rate->value, best->value}].push_back(end);
      }
    }
    for (const auto& [rates, ends] : alike) {
      Advice advice = slow_port(*ends.front(), BitsPerSecond{rates.first}, BitsPerSecond{rates.second});
      if (ends.size() > 1) {
        std::vector<std::string> names, devices;
        for (const RailEnd* end : ends) {
          names.push_back(end->name);
          devices.push_back(end->rdma->name);
        }
        advice.subject = fmt::format("{}", fmt::join(names, ", "));
        advice.what =
            fmt::format("{} ports of {} agreed on {} instead of {}", ends.size(), node.name,
                        yoke::to_string(BitsPerSecond{rates.first}), yoke::to_string(BitsPerSecond{rates.second}));
        advice.evidence = fmt::format("{} report a rate of {}; another of the same board ({}) has {}",
                                      fmt::join(devices, ", "), yoke::to_string(BitsPerSecond{rates.first}),
                                      *ends.front()->rdma->board, yoke::to_string(BitsPerSecond{rates.second}));
        advice.consequence =
            fmt::format("each carries at most {:.0f}% of what it could", 100 * rates.first / rates.second);
        advice.fix =
            "as several agree on the same, the switch's ports are set so: compare their speed and "
            "auto-negotiation with those of the others";
      }
      list.push_back(std::move(advice));
    }
  }
  return list;
}

AdviceList find_far_nics(const ClusterView& view) {
  AdviceList list;
  for (const spec::SurveyedNode& node : view.facts.nodes) {
    if (!node.machine || !node.machine->topology) continue;
    const std::vector<NearestNic> nearest = nearest_nics(*node.machine->topology);
    const auto near_count = std::count_if(nearest.begin(), nearest.end(), [](const NearestNic& nic) {
      return nic.distance >= 0 && nic.distance <= kMaxNear;
    });
    // Machines whose GPUs are all alike far from their NICs, as a Spark or a virtual machine, are made so.
    if (2 * static_cast<std::size_t>(near_count) <= nearest.size()) continue;
    for (const NearestNic& nic : nearest) {
      if (nic.distance <= kMaxNear && nic.distance >= 0) continue;
      list.push_back(
          {.node = node.name,
           .subject = nic.gpu,
           .what = fmt::format("{} of {} has no NIC near it", nic.gpu, node.name),
           .evidence = nic.distance < 0 ? "no RDMA device at all"
                                        : fmt::format("the nearest is {} ({}); {} of {} GPUs have one below "
                                                      "the same PCIe switch",
                                                      nic.nic, nic.path, near_count, nearest.size()),
           .consequence = "this GPU shares another's NIC through the processor: the slowest rank of all",
           .fix = "look for the missing NIC: 'lspci -d 15b3:', its power and firmware, its slot in the BIOS"});
    }
  }
  return list;
}

}  // namespace yoke::check

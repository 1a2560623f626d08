// Pause frames: which rail holds back the others, or is held back.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>

#include "yoke/check/congestion.h"
#include "yoke/check/rules.h"

namespace yoke::check {
namespace {

// Of pause frames. A lossless fabric has some; a NIC that sends them all the time cannot take what comes (the
// slow-receiver symptom of Guo et al., RDMA over Commodity Ethernet at Scale, SIGCOMM 2016: thousands a second).
constexpr std::int64_t kMinPauses = 10'000;
constexpr double kMaxPauses = 1e-3;  // for each packet of the other direction
constexpr double kMorePauses = 10;   // than the median of all rails, which a busy fabric pauses alike

// Whom the frames stop, and with which counter of packets they are compared.
struct Direction {
  std::optional<std::int64_t> spec::NetworkInterface::*frames;
  std::string_view packets, verb, packet_verb;
};
constexpr Direction kSent{&spec::NetworkInterface::pause_sent, "port_rcv_packets", "sent", "received"};
constexpr Direction kReceived{&spec::NetworkInterface::pause_received, "port_xmit_packets", "received", "sent"};

struct PausingRail {
  const RailEnd* end = nullptr;
  std::int64_t frames = 0, packets = 0;
  double usual = 0;  // the median of all rails
  double share() const { return static_cast<double>(frames) / static_cast<double>(packets); }
};

// The rails that pause far more than the others do.
std::vector<PausingRail> pausing_rails(const ClusterView& view, const Direction& direction) {
  std::vector<PausingRail> rails;
  std::vector<double> shares;
  for (const RailEnd& end : view.rails) {
    if (!end.rdma || !end.interface || !end.is_ethernet() || !(end.interface->*direction.frames)) continue;
    const PausingRail rail{.end = &end,
                           .frames = *(end.interface->*direction.frames),
                           .packets = counter_of(*end.rdma, direction.packets)};
    if (rail.packets <= 0) continue;
    rails.push_back(rail);
    shares.push_back(rail.share());
  }
  if (rails.size() < 2) return {};
  std::ranges::sort(shares);
  for (PausingRail& rail : rails) rail.usual = shares[(shares.size() - 1) / 2];
  std::erase_if(rails, [](const PausingRail& rail) {
    return rail.frames < kMinPauses || rail.share() < kMaxPauses || rail.share() < kMorePauses * rail.usual;
  });
  return rails;
}

Advice pause_advice(const spec::SurveyedNode& node, const std::vector<PausingRail>& rails, const Direction& direction) {
  std::vector<std::string> names, evidence;
  Advice advice{.node = node.name};
  for (const PausingRail& rail : rails) {
    names.push_back(rail.end->name);
    evidence.push_back(fmt::format("{} {} {} pause frames, {:.0f} for a million packets {}", rail.end->name,
                                   direction.verb, rail.frames, 1e6 * rail.share(), direction.packet_verb));
    advice.rails.push_back(rail.end);
  }
  advice.subject = fmt::format("{}", fmt::join(names, ", "));
  advice.evidence = fmt::format("{}, since the driver started; the median of all rails is {:.3g}",
                                fmt::join(evidence, "; "), 1e6 * rails.front().usual);
  if (&direction == &kSent) {
    advice.what = fmt::format("{} on {} cannot take packets as fast as they come", *advice.subject, node.name);
    advice.consequence = "the switch passes the pauses on: ranks of other nodes wait too";
    advice.fix = fmt::format(
        "look for what slows this NIC down: its PCIe link ('yoke probe'), the IOMMU, a busy NUMA "
        "node; 'ethtool -S {}' shows the frames of each priority (tx_prio3_pause); {}",
        names.front(), on_the_switch());
  } else {
    advice.what = fmt::format("the other end of the cable holds back {} on {}", *advice.subject, node.name);
    advice.consequence = "this rail sends less than the others, and collectives wait for it";
    advice.fix = "find who pauses the switch: the port on which it receives pause frames itself; " + on_the_switch();
  }
  return advice;
}

}  // namespace

// Who sends pause frames is the cause; a switch passes them on to all who send to it.
AdviceList find_paused_rails(const ClusterView& view) {
  const std::vector<PausingRail> senders = pausing_rails(view, kSent);
  const Direction& direction = senders.empty() ? kReceived : kSent;
  const std::vector<PausingRail> rails = senders.empty() ? pausing_rails(view, kReceived) : senders;
  AdviceList list;
  for (const spec::SurveyedNode& node : view.facts.nodes) {
    std::vector<PausingRail> own;
    std::ranges::copy_if(rails, std::back_inserter(own),
                         [&](const PausingRail& rail) { return rail.end->node == &node; });
    if (!own.empty()) list.push_back(pause_advice(node, own, direction));
  }
  return list;
}

}  // namespace yoke::check

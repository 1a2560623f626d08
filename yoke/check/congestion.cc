// The way from a NIC to the switch and through it: what loses, pauses or wrongly sorts the packets of RoCE.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <map>

#include "yoke/check/congestion.h"
#include "yoke/check/rules.h"

namespace yoke::check {
namespace {

// Of packets: on RoCE each one that is lost makes the NIC send a whole window again.
constexpr double kMaxLoss = 1e-5;
constexpr std::int64_t kMinLost =
    1000;                              // what a cable that was plugged or a switch that restarted leaves behind is less
constexpr std::int64_t kMaxFlaps = 4;  // more than the other rails of the node, which a switch's restarts hit alike
constexpr std::int64_t kMinMarks = 1000;  // of packets: a few come while settings change

bool has_flow_control(const RailEnd& end) { return end.interface && end.interface->flow_control && end.is_ethernet(); }

// What makes the fabric lossless for this rail, as its driver reports it: "3; DSCP usual". A capture of an earlier
// version lacks the table of DSCPs: then it is compared on no rail.
std::optional<std::string> lossless_settings(const ClusterView& view, const RailEnd& end) {
  if (!has_flow_control(end)) return std::nullopt;
  const bool all_tell = std::ranges::all_of(
      view.rails, [](const RailEnd& other) { return !has_flow_control(other) || other.interface->dscp; });
  return *end.interface->flow_control + (all_tell ? "; DSCP " + *end.interface->dscp : "");
}

std::optional<int> whole_number(std::string_view text) {
  int number = 0;
  const auto [rest, failure] = std::from_chars(text.data(), text.data() + text.size(), number);
  return failure == std::errc{} && rest == text.data() + text.size() ? std::optional(number) : std::nullopt;
}

// The priority of a packet without a VLAN tag; `dscp` as in spec::NetworkInterface.
int priority_of(int value, const std::string& dscp) {
  if (dscp == "none") return 0;
  const std::string list = "," + dscp + ",";
  const std::string mark = fmt::format(",{}:", value);
  const std::size_t at = list.find(mark);
  return at == std::string::npos ? value / 8 : list[at + mark.size()] - '0';
}

}  // namespace

std::int64_t counter_of(const spec::RdmaDevice& device, std::string_view name) {
  for (const spec::PortCounter& counter : device.counters) {
    if (counter.name == name) return counter.value;
  }
  return 0;
}

std::string on_the_switch() {
  return "on the switch: Cumulus 'nv set qos roce mode lossless' and 'nv show interface swpN qos roce counters', SONiC "
         "'show pfc counters' and 'show queue counters', Dell OS10 'show qos interface ethernet 1/1/N roce'";
}

AdviceList find_differing_flow_control(const ClusterView& view) {
  std::map<std::string, int> count;
  for (const RailEnd& end : view.rails) {
    if (const auto settings = lossless_settings(view, end)) ++count[*settings];
  }
  if (count.size() < 2) return {};
  const std::string usual = std::ranges::max_element(count, {}, [](const auto& entry) { return entry.second; })->first;
  AdviceList list;
  for (const spec::SurveyedNode& node : view.facts.nodes) {
    std::vector<std::string> names, evidence;
    for (const RailEnd* end : view.rails_of(node)) {
      const auto settings = lossless_settings(view, *end);
      if (!settings || *settings == usual) continue;
      names.push_back(end->name);
      evidence.push_back(fmt::format("{}: {}", end->name, *settings));
    }
    if (names.empty()) continue;
    std::string priorities = "0,0,0,0,0,0,0,0";
    for (const char c : usual.substr(0, usual.find(';'))) {
      if (c >= '0' && c <= '7') priorities[static_cast<std::size_t>(2 * (c - '0'))] = '1';
    }
    list.push_back(
        {.node = node.name,
         .subject = fmt::format("{}", fmt::join(names, ", ")),
         .what = fmt::format("priority flow control of {} on {} differs from the other rails", fmt::join(names, ", "),
                             node.name),
         .evidence = fmt::format("priorities with PFC: {}; the other rails have {}", fmt::join(evidence, "; "), usual),
         .consequence = "under load the switch drops this rail's packets, or pauses the wrong ones",
         .fix = fmt::format("'mlnx_qos -i {} --pfc {} --trust dscp'; {}", names.front(), priorities, on_the_switch())});
  }
  return list;
}

// NCCL marks its packets by NCCL_IB_TC, DSCP times four.
AdviceList find_classes_without_flow_control(const ClusterView& view) {
  AdviceList list;
  for (const spec::SurveyedNode& node : view.facts.nodes) {
    if (!node.machine) continue;
    for (const spec::NetworkSetting& setting : node.machine->settings) {
      const auto traffic_class = setting.name == "NCCL_IB_TC" ? whole_number(setting.value) : std::nullopt;
      if (!traffic_class || *traffic_class < 0 || *traffic_class > 255) continue;
      std::vector<std::string> evidence;
      std::vector<const RailEnd*> rails;
      for (const RailEnd* end : view.rails_of(node)) {
        if (!has_flow_control(*end) || !end->interface->dscp || *end->interface->flow_control == "none") continue;
        const int priority = priority_of(*traffic_class / 4, *end->interface->dscp);
        if (end->interface->flow_control->find(static_cast<char>('0' + priority)) != std::string::npos) continue;
        rails.push_back(end);
        evidence.push_back(
            fmt::format("{}: priority {}, and flow control on {}", end->name, priority, *end->interface->flow_control));
      }
      if (rails.empty()) continue;
      list.push_back(
          {.node = node.name,
           .subject = setting.name,
           .what = fmt::format("{}={} puts NCCL's packets into a priority without flow control on {}", setting.name,
                               setting.value, node.name),
           .evidence = fmt::format("{} ({}) is DSCP {}; {}", setting.name, setting.where, *traffic_class / 4,
                                   fmt::join(evidence, "; ")),
           .consequence = "the switch drops these packets under load, and whole windows are sent again",
           .fix = fmt::format("set {} to the DSCP of the lossless priority times four (106 for priority 3), and "
                              "'mlnx_qos -i {} --trust dscp' on each rail; {}",
                              setting.name, rails.front()->name, on_the_switch()),
           .rails = std::move(rails)});
    }
  }
  return list;
}

// A switch marks packets as it fills (ECN). The receiver answers with a notice (CNP), and the sender slows down.
AdviceList find_ignored_marks(const ClusterView& view) {
  AdviceList list;
  for (const RailEnd& end : view.rails) {
    if (!end.rdma || !end.is_ethernet()) continue;
    const std::int64_t marked = counter_of(*end.rdma, "np_ecn_marked_roce_packets");
    const std::int64_t sent = counter_of(*end.rdma, "np_cnp_sent");
    const std::int64_t handled = counter_of(*end.rdma, "rp_cnp_handled");
    const std::int64_t ignored = counter_of(*end.rdma, "rp_cnp_ignored");
    const bool answers_none = marked >= kMinMarks && sent == 0;
    if (!answers_none && (ignored < kMinMarks || handled > 0)) continue;
    list.push_back(
        {.node = end.node->name,
         .subject = end.name,
         .what = answers_none ? fmt::format("{} on {} answers no packet that the switch has marked as congested",
                                            end.title(), end.node->name)
                              : fmt::format("{} on {} does not slow down when receivers ask for it", end.title(),
                                            end.node->name),
         .evidence =
             answers_none
                 ? fmt::format("{} packets marked (np_ecn_marked_roce_packets), 0 notices sent (np_cnp_sent)", marked)
                 : fmt::format("{} notices ignored (rp_cnp_ignored), 0 obeyed (rp_cnp_handled)", ignored),
         .consequence = "the switch's queues fill until it pauses or drops: one slow receiver holds up all others",
         .fix = fmt::format("switch congestion control on for the lossless priority: 'echo 1 > "
                            "/sys/class/net/{0}/ecn/{1}/enable/3' (NVIDIA's driver of DOCA or OFED), or by "
                            "'mlxconfig'; on the switch ECN for the same priority",
                            end.name, answers_none ? "roce_np" : "roce_rp"),
         .rails = {&end}});
  }
  return list;
}

namespace {

// A NIC counts discards for the whole port, and both rails of a port show them.
bool is_of_the_same_port(const RailEnd& end, const AdviceList& list) {
  if (list.empty()) return false;
  const RailEnd& last = *list.back().rails.front();
  return last.node == end.node && last.port == end.port && last.interface && end.interface &&
         last.interface->discards_received == end.interface->discards_received;
}

}  // namespace

AdviceList find_lossy_ports(const ClusterView& view) {
  const auto are_many = [](std::int64_t lost, std::int64_t packets) {
    return lost >= kMinLost && packets > 0 && static_cast<double>(lost) >= kMaxLoss * static_cast<double>(packets);
  };
  AdviceList list;
  for (const RailEnd& end : view.rails) {
    if (!end.rdma) continue;
    const std::int64_t again = counter_of(*end.rdma, "packet_seq_err") + counter_of(*end.rdma, "local_ack_timeout_err");
    const std::int64_t discards = counter_of(*end.rdma, "port_xmit_discards");
    const std::int64_t packets = counter_of(*end.rdma, "port_xmit_packets");
    const std::int64_t discarded = end.interface ? end.interface->discards_received.value_or(0) : 0;
    const std::int64_t received = counter_of(*end.rdma, "port_rcv_packets");
    const bool discards_many = are_many(discarded, received);
    if (!are_many(again + discards, packets) && !discards_many) continue;
    if (discards_many && is_of_the_same_port(end, list)) {
      list.back().rails.push_back(&end);
      continue;
    }
    list.push_back(
        {.node = end.node->name,
         .subject = end.name,
         .what = fmt::format("{} on {} loses packets", end.title(), end.node->name),
         .evidence = discards_many
                         ? fmt::format("{} of {} packets found no buffer in the NIC (rx_discards_phy), since the "
                                       "driver started",
                                       discarded, received)
                         : fmt::format("{} of {} packets sent again, {} discarded before they were sent, since the "
                                       "driver started",
                                       again, packets, discards),
         .consequence = "RDMA sends whole windows again: large all-reduces are slow and uneven",
         .fix = "the fabric must be lossless for RoCE: PFC and ECN on the same priority on host and switch; " +
                on_the_switch(),
         .rails = {&end}});
  }
  return list;
}

AdviceList find_flapping_ports(const ClusterView& view) {
  AdviceList list;
  for (const spec::SurveyedNode& node : view.facts.nodes) {
    std::vector<std::int64_t> downs;
    const std::vector<const RailEnd*> rails = view.rails_of(node);
    for (const RailEnd* end : rails) {
      if (end->rdma) downs.push_back(counter_of(*end->rdma, "link_downed"));
    }
    if (downs.size() < 3) continue;
    std::ranges::sort(downs);
    const std::int64_t median = downs[downs.size() / 2];
    for (const RailEnd* end : rails) {
      const std::int64_t down = end->rdma ? counter_of(*end->rdma, "link_downed") : 0;
      if (down < median + kMaxFlaps) continue;
      list.push_back(
          {.node = node.name,
           .subject = end->name,
           .what = fmt::format("the link of {} on {} goes up and down", end->title(), node.name),
           .evidence = fmt::format("{} times down since the driver started; its other rails {}", down, median),
           .consequence = "a job that is running then fails (IBV_WC_RETRY_EXC_ERR), or waits for seconds",
           .fix = "clean or replace the transceiver or cable; 'mlxlink -d DEVICE -c -m' shows its error rate",
           .rails = {end}});
    }
  }
  return list;
}

}  // namespace yoke::check

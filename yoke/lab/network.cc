#include "yoke/lab/network.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <thread>

#include "yoke/base/error.h"
#include "yoke/base/json.h"
#include "yoke/base/result.h"
#include "yoke/base/text.h"
#include "yoke/lab/parts.h"

namespace yoke::lab {
namespace {

using namespace literals;

void run_batch(const std::string& program, const std::vector<std::string>& lines) {
  if (lines.empty()) return;
  std::string input;
  for (const std::string& line : lines) input += line + "\n";
  const Outcome outcome = run({.argv = {program, "-batch", "-"}, .input = input, .timeout = 20_s});
  if (outcome.ok()) return;
  throw Error(ErrorCode::kUnsupported, fmt::format("cannot make links here: {} {}", program, outcome.describe()),
              "the kernel lacks veth, bridges or tbf, or does not let us make them; 'yoke lab up --plain' needs none");
}

// A name in the switch for the far end of a node's interface: at most 15 characters, unique there.
std::string switch_end(int node, std::size_t interface) { return fmt::format("n{}i{}", node, interface); }

void build_switch(const LabLayout& layout) {
  std::vector<std::string> lines = {"link set lo up", "link add mgmt type bridge", "link set mgmt up"};
  std::vector<std::string> bridges;
  for (const LabCable& cable : layout.cables) {
    if (cable.node_b != 0 || std::find(bridges.begin(), bridges.end(), cable.interface_b) != bridges.end()) continue;
    bridges.push_back(cable.interface_b);
    lines.push_back(fmt::format("link add {} type bridge", cable.interface_b));
    lines.push_back(fmt::format("link set {} mtu {} up", cable.interface_b, kLabMtu));
  }
  run_ip(lines);
}

// The network namespaces of a lab, by node; that of the switch first. `ip` is told of one by our own descriptor of it.
using Networks = std::vector<UniqueFd>;

Networks open_networks(const LabLayout& layout) {
  Networks networks;
  for (std::size_t node = 0; node <= layout.nodes.size(); ++node)
    networks.push_back(open_network(layout.name, static_cast<int>(node)));
  return networks;
}

struct LinkEnd {
  int node = 0;
  std::string name;
  std::string mac;
};

std::string veth_line(const Networks& networks, const LinkEnd& a, const LinkEnd& b) {
  const auto words = [&](const LinkEnd& end) {
    return fmt::format("name {}{} netns /proc/{}/fd/{}", end.name, end.mac.empty() ? "" : " address " + end.mac,
                       getpid(), networks.at(static_cast<std::size_t>(end.node)).get());
  };
  return fmt::format("link add {} type veth peer {}", words(a), words(b));
}

const LabInterface& interface_named(const LabLayout& layout, int node, const std::string& name) {
  for (const LabInterface& interface : layout.nodes[static_cast<std::size_t>(node - 1)].interfaces) {
    if (interface.name == name) return interface;
  }
  throw Error(ErrorCode::kInternal, fmt::format("node {} has no interface {}", node, name));
}

// All veths, from wherever we are: `netns` places both ends. The switch's ends are then put into their bridges.
void build_links(const LabLayout& layout, const Networks& networks) {
  std::vector<std::string> links;
  std::vector<std::string> in_switch;
  for (const LabNode& node : layout.nodes) {
    const std::string management = fmt::format("m{}", node.number);
    links.push_back(veth_line(networks, {node.number, layout.management_interface, ""}, {0, management, ""}));
    in_switch.push_back(fmt::format("link set {} master mgmt up", management));
    for (std::size_t i = 0; i < node.interfaces.size(); ++i) {
      const LabInterface& interface = node.interfaces[i];
      const auto cable = std::find_if(layout.cables.begin(), layout.cables.end(), [&](const LabCable& c) {
        return c.node_a == node.number && c.interface_a == interface.name;
      });
      const bool is_far_end = find_peer(layout, node.number, interface.name) && cable == layout.cables.end();
      if (is_far_end) continue;  // made from the other side
      if (cable != layout.cables.end() && cable->node_b != 0) {
        const LabInterface& other = interface_named(layout, cable->node_b, cable->interface_b);
        links.push_back(
            veth_line(networks, {node.number, interface.name, interface.mac}, {cable->node_b, other.name, other.mac}));
        continue;
      }
      // A port without a cable has a far end all the same, which stays down: no carrier.
      links.push_back(
          veth_line(networks, {node.number, interface.name, interface.mac}, {0, switch_end(node.number, i), ""}));
      if (cable != layout.cables.end()) {
        in_switch.push_back(
            fmt::format("link set {} mtu {} master {} up", switch_end(node.number, i), kLabMtu, cable->interface_b));
      }
    }
  }
  run_ip(links);
  in_network(networks.front(), [&] { run_ip(in_switch); });
}

void set_sysctl(const std::string& name, std::string_view value) {
  const std::string file = "/proc/sys/net/" + name;
  write_all(open_file(file, O_WRONLY), value, file);
}

void set_up_node(const LabLayout& layout, const LabNode& node) {
  std::vector<std::string> lines = {
      "link set lo up",
      fmt::format("addr add {} brd + dev {}", yoke::to_string(node.management), layout.management_interface),
      fmt::format("link set {} up", layout.management_interface)};
  std::vector<std::string> shaping = {shape_line(layout.management_interface, layout.management_rate)};
  set_sysctl(fmt::format("ipv6/conf/{}/disable_ipv6", layout.management_interface), "1");
  for (const LabInterface& interface : node.interfaces) {
    if (layout.rail_rate) shaping.push_back(shape_line(interface.name, *layout.rail_rate));
    if (!layout.bare) {
      set_sysctl(fmt::format("ipv6/conf/{}/disable_ipv6", interface.name), "1");
      lines.push_back(fmt::format("link set {} mtu {}", interface.name, kLabMtu));
      if (interface.address)
        lines.push_back(fmt::format("addr add {} brd + dev {}", yoke::to_string(*interface.address), interface.name));
    }
    lines.push_back(fmt::format("link set {} up", interface.name));
  }
  if (!layout.bare && !node.routes.empty()) {
    if (layout.topology == spec::Topology::kRing) {
      set_sysctl("ipv4/conf/all/rp_filter", "0");
      set_sysctl("ipv4/ip_forward", "1");
    }
    for (const LabRoute& route : node.routes) {
      lines.push_back(fmt::format("route add {} via {}", yoke::to_string(route.to), yoke::to_string(route.via)));
    }
  }
  run_ip(lines);
  run_tc(shaping);
}

// What a Spark's NIC carries is the limit however it is cabled: each of its two PCIe links is shared by one rail of
// both ports. Both directions pass a device that is shaped to it, before and after the rails' own queues.
void shape_nic(const LabLayout& layout, const LabNode& node) {
  std::vector<std::string> links, shaping;
  for (const SharedNicLink& shared : shared_nic_links(layout, node)) {
    const std::string out = fmt::format("nic{}-out", shared.rail), in = fmt::format("nic{}-in", shared.rail);
    for (const std::string& device : {out, in}) {
      links.push_back(fmt::format("link add {} mtu {} type ifb", device, kLabMtu));
      links.push_back(fmt::format("link set {} up", device));
      // A NIC holds back its senders and loses nothing, so what waits for it gets a longer queue than a rail has.
      std::string line = shape_line(device, *layout.rail_rate);
      line.replace(line.find("latency 20ms"), std::string::npos, "latency 100ms");
      shaping.push_back(std::move(line));
    }
    for (const std::string& rail : shared.interfaces) {
      shaping.push_back(fmt::format("qdisc add dev {} clsact", rail));
      shaping.push_back(fmt::format(
          "filter add dev {} egress protocol all prio 1 u32 match u32 0 0 action mirred egress redirect dev {}", rail,
          out));
      shaping.push_back(fmt::format(
          "filter add dev {} ingress protocol all prio 1 u32 match u32 0 0 action mirred egress redirect dev {}", rail,
          in));
    }
  }
  run_ip(links);
  run_tc(shaping);
}

// Devices that were made before something failed.
void remove_nic(const LabLayout& layout, const LabNode& node) {
  for (const SharedNicLink& shared : shared_nic_links(layout, node)) {
    for (const std::string& rail : shared.interfaces) {
      (void)try_to([&] { run_tc({fmt::format("qdisc del dev {} clsact", rail)}); });
    }
    for (const char* way : {"out", "in"}) {
      (void)try_to([&] { run_ip({fmt::format("link del nic{}-{}", shared.rail, way)}); });
    }
  }
}

bool all_links_carry() {
  const std::string answer = run_or_throw({.argv = {"ip", "-json", "link"}, .timeout = 10_s}).out;
  const Document links = parse_json(answer, "ip");
  return std::all_of(links.items.begin(), links.items.end(), [](const Document& link) {
    const std::vector<Document>& flags = link.find("flags")->items;
    const bool has_carrier =
        std::any_of(flags.begin(), flags.end(), [](const Document& flag) { return flag.text == "LOWER_UP"; });
    const std::string& state = link.find("operstate")->text;
    return !has_carrier || state == "UP" || state == "UNKNOWN";
  });
}

}  // namespace

void in_network(const UniqueFd& network, const std::function<void()>& function) {
  std::exception_ptr failure;
  std::thread([&] {
    try {
      if (setns(network.get(), CLONE_NEWNET) != 0) throw system_error(errno, "cannot enter a network namespace");
      function();
    } catch (...) {
      failure = std::current_exception();
    }
  }).join();
  if (failure) std::rethrow_exception(failure);
}

void run_ip(const std::vector<std::string>& lines) { run_batch("ip", lines); }
void run_tc(const std::vector<std::string>& lines) { run_batch("tc", lines); }

std::string shape_line(std::string_view interface, BitsPerSecond rate) {
  // The burst must hold the largest GSO packet (64 KiB) and what passes between two timer events, taken as 0.2 ms; more
  // would let short messages through unshaped. The queue holds 20 ms, about what a NIC's rings hold.
  const double burst = std::max(256.0 * 1024, rate.value / 8 * 0.2e-3);
  return fmt::format("qdisc replace dev {} root tbf rate {:.0f}bit burst {:.0f} latency 20ms", interface, rate.value,
                     burst);
}

std::vector<std::string> build_network(const LabLayout& layout) {
  const Networks networks = open_networks(layout);
  in_network(networks.front(), [&] { build_switch(layout); });
  build_links(layout, networks);
  for (const LabNode& node : layout.nodes) {
    in_network(networks.at(static_cast<std::size_t>(node.number)), [&] { set_up_node(layout, node); });
  }
  if (!layout.rail_rate) return {};
  for (const LabNode& node : layout.nodes) {
    std::optional<Error> failure;
    in_network(networks.at(static_cast<std::size_t>(node.number)), [&] {
      if (const auto shaped = try_to([&] { shape_nic(layout, node); }); !shaped) {
        failure = shaped.error();
        remove_nic(layout, node);
      }
    });
    if (failure) return {"limit of the NIC: this kernel lacks ifb, u32 or mirred, so rails have their own only"};
  }
  return {};
}

void wait_for_links(const LabLayout& layout, Deadline deadline) {
  for (const LabNode& node : layout.nodes) {
    in_network(open_network(layout.name, node.number), [&] {
      while (!all_links_carry() && !deadline.expired()) std::this_thread::sleep_for(std::chrono::milliseconds(20));
    });
  }
}

}  // namespace yoke::lab

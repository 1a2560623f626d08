#include "yoke/lab/fault_steps.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "yoke/base/error.h"
#include "yoke/base/json.h"
#include "yoke/base/process.h"
#include "yoke/base/result.h"
#include "yoke/base/text.h"
#include "yoke/lab/hardware.h"
#include "yoke/lab/network.h"
#include "yoke/lab/parts.h"

namespace yoke::lab {
namespace {

using namespace literals;
using Step = ActiveFault::Undo;

// What `ip -json …` answers in a node's network.
Document ask_ip(const LabLayout& layout, int node, std::vector<std::string> words) {
  std::string answer;
  in_network(open_network(layout.name, node), [&] {
    words.insert(words.begin(), {"ip", "-json"});
    answer = run_or_throw({.argv = words, .timeout = 10_s}).out;
  });
  return answer.empty() ? Document::list() : parse_json(answer, "ip");
}

std::vector<std::string> addresses_of(const LabLayout& layout, int node, const std::string& interface) {
  std::vector<std::string> addresses;
  for (const Document& link : ask_ip(layout, node, {"-4", "addr", "show", "dev", interface}).items) {
    const Document* list = link.find("addr_info");
    for (const Document& entry : list ? list->items : std::vector<Document>{}) {
      if (entry.find("local")) addresses.push_back(entry.find("local")->text + "/" + entry.find("prefixlen")->text);
    }
  }
  return addresses;
}

// The routes that the kernel does not make again by itself when an interface comes up.
std::vector<Step> restore_routes(const LabLayout& layout, int node, const std::string& interface) {
  std::vector<Step> steps;
  for (const Document& route : ask_ip(layout, node, {"-4", "route", "show", "dev", interface}).items) {
    const Document* protocol = route.find("protocol");
    if (protocol && protocol->text == "kernel") continue;
    std::string line = fmt::format("route replace {}", route.find("dst")->text);
    if (const Document* gateway = route.find("gateway")) line += " via " + gateway->text;
    steps.push_back({node, "ip", line + " dev " + interface});
  }
  return steps;
}

// On a node whose ports are halves a half's letter, else the port's: A to H on a server of eight.
std::string letter_of(const LabNode& node, const LabInterface& interface) {
  const bool halves =
      std::any_of(node.interfaces.begin(), node.interfaces.end(), [](const auto& one) { return one.rail != "A"; });
  return halves ? interface.rail : std::string(1, static_cast<char>('A' + interface.port));
}

std::vector<const LabInterface*> interfaces_of_rail(const LabNode& node, const std::string& rail) {
  std::vector<const LabInterface*> found;
  std::vector<std::string> letters;
  for (const LabInterface& interface : node.interfaces) {
    if (!interface.address) continue;
    const std::string letter = letter_of(node, interface);
    if (rail.empty() || letter == rail) found.push_back(&interface);
    if (std::find(letters.begin(), letters.end(), letter) == letters.end()) letters.push_back(letter);
  }
  if (found.empty()) {
    throw Error(ErrorCode::kUsage, fmt::format("{} has no cabled rail '{}'", node.name, printable(rail, 20)),
                fmt::format("rails are {}", fmt::join(letters, ", ")));
  }
  return found;
}

void add(std::vector<Step>& steps, std::vector<Step> more) { steps.insert(steps.end(), more.begin(), more.end()); }

FaultSteps cut(const LabLayout& layout, const LabNode& node, const std::string& rail) {
  FaultSteps steps;
  for (const LabInterface* interface : interfaces_of_rail(node, rail)) {
    steps.run.push_back({node.number, "ip", fmt::format("link set {} down", interface->name)});
    steps.undo.push_back({node.number, "ip", fmt::format("link set {} up", interface->name)});
    add(steps.undo, restore_routes(layout, node.number, interface->name));
  }
  return steps;
}

FaultSteps take_addresses(const LabLayout& layout, const LabNode& node, const std::string& rail) {
  FaultSteps steps;
  for (const LabInterface* interface : interfaces_of_rail(node, rail)) {
    for (const std::string& address : addresses_of(layout, node.number, interface->name)) {
      steps.run.push_back({node.number, "ip", fmt::format("addr del {} dev {}", address, interface->name)});
      steps.undo.push_back({node.number, "ip", fmt::format("addr replace {} brd + dev {}", address, interface->name)});
    }
    add(steps.undo, restore_routes(layout, node.number, interface->name));
  }
  return steps;
}

// Both rails in the /24 of rail A: what NVIDIA's own script does for two nodes.
FaultSteps share_subnet(const LabLayout& layout, const LabNode& node) {
  FaultSteps steps = take_addresses(layout, node, "B");
  const std::vector<const LabInterface*> first = interfaces_of_rail(node, "A");
  const std::vector<const LabInterface*> second = interfaces_of_rail(node, "B");
  for (std::size_t i = 0; i < second.size(); ++i) {
    const Ipv4Prefix network = first[i]->address->network();
    const std::string address =
        yoke::to_string(Ipv4Prefix{network.host(static_cast<std::uint32_t>(100 + node.number)), network.length});
    steps.run.push_back({node.number, "ip", fmt::format("addr add {} brd + dev {}", address, second[i]->name)});
    steps.undo.insert(steps.undo.begin(),
                      {node.number, "ip", fmt::format("addr del {} dev {}", address, second[i]->name)});
  }
  return steps;
}

FaultSteps lower_mtu(const LabLayout& layout, const LabNode& node, const std::string& rail) {
  FaultSteps steps;
  for (const LabInterface* interface : interfaces_of_rail(node, rail)) {
    const Document link = ask_ip(layout, node.number, {"link", "show", "dev", interface->name});
    steps.run.push_back({node.number, "ip", fmt::format("link set {} mtu 1500", interface->name)});
    steps.undo.push_back(
        {node.number, "ip", fmt::format("link set {} mtu {}", interface->name, link.items.at(0).find("mtu")->text)});
  }
  return steps;
}

// Both directions: at the far end of a direct cable too. Behind a switch only what the node sends is slowed.
FaultSteps slow_down(const LabLayout& layout, const LabNode& node, const std::string& rail) {
  if (!layout.rail_rate) {
    throw Error(ErrorCode::kUnsupported, "this lab's rails are not shaped, so none can be slowed",
                "start it without --rail-rate none");
  }
  FaultSteps steps;
  const auto slow = [&](int number, const std::string& interface) {
    steps.run.push_back({number, "tc", shape_line(interface, *layout.rail_rate / 8)});
    steps.undo.push_back({number, "tc", shape_line(interface, *layout.rail_rate)});
  };
  for (const LabInterface* interface : interfaces_of_rail(node, rail)) {
    slow(node.number, interface->name);
    if (const auto peer = find_peer(layout, node.number, interface->name)) slow(peer->first, peer->second);
  }
  return steps;
}

FaultSteps route_over_management(const LabLayout& layout, const LabNode& node) {
  FaultSteps steps;
  for (const LabNode& other : layout.nodes) {
    if (other.number == node.number) continue;
    for (const LabInterface& interface : other.interfaces) {
      if (!interface.address) continue;
      const std::string route = fmt::format("{}/32 via {} dev {}", yoke::to_string(interface.address->address),
                                            yoke::to_string(other.management.address), layout.management_interface);
      // A ring has host routes already, which stay behind this one.
      steps.run.push_back({node.number, "ip", fmt::format("route prepend {}", route)});
      steps.undo.push_back({node.number, "ip", fmt::format("route del {}", route)});
    }
  }
  return steps;
}

// New connections to any port but ssh's are dropped on the fast interfaces; pings and ssh go through.
FaultSteps drop_data_ports(const LabNode& node) {
  std::string names;
  for (const LabInterface& interface : node.interfaces) {
    names += fmt::format("{}\"{}\"", names.empty() ? "" : ", ", interface.name);
  }
  const std::string table = fmt::format(
      "table inet yoke_fault {{\n"
      "  chain input {{\n"
      "    type filter hook input priority 0;\n"
      "    iifname {{ {0} }} tcp dport != 22 tcp flags & (syn | ack) == syn drop\n"
      "    iifname {{ {0} }} meta l4proto udp drop\n"
      "  }}\n"
      "}}",
      names);
  return {.run = {{node.number, "nft", table}},
          .undo = {{node.number, "nft", "add table inet yoke_fault\ndelete table inet yoke_fault"}}};
}

// Shown by the watcher in the hardware tree; the devices are PCI functions or RDMA devices.
FaultSteps show_in_hardware(const LabLayout& layout, const LabNode& node, const std::string& rail,
                            std::string LabPort::*device) {
  if (layout.hardware == "none") {
    throw Error(ErrorCode::kUnsupported, "this lab shows no hardware", "start it with --hardware spark");
  }
  FaultSteps steps;
  const std::vector<const LabInterface*> interfaces = interfaces_of_rail(node, rail);
  for (const LabPort& port : lab_ports(lab_hardware({.machine = layout.hardware, .node = node.number}))) {
    const bool meant = std::any_of(interfaces.begin(), interfaces.end(),
                                   [&](const LabInterface* i) { return i->name == port.interface; });
    if (meant) steps.devices.push_back(port.*device);
  }
  return steps;
}

void run_nft(const std::string& rules) {
  try {
    run_or_throw({.argv = {"nft", "-f", "-"}, .input = rules + "\n", .timeout = 10_s});
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kNotFound) throw;
    throw Error(ErrorCode::kNotFound, "this fault needs nft, which is not installed", "apt-get install nftables");
  }
}

// Whether "addr del ADDRESS dev NAME" or "route del ROUTE" has nothing to delete. All other lines of an undo say how
// things are to be, and can be run again.
bool is_deleted(const LabLayout& layout, const Step& step) {
  const std::vector<std::string> words = split(step.line, ' ');
  if (step.line.starts_with("addr del ")) {
    const std::vector<std::string> there = addresses_of(layout, step.node, words.at(4));
    return std::find(there.begin(), there.end(), words.at(2)) == there.end();
  }
  if (!step.line.starts_with("route del ")) return false;
  std::vector<std::string> question = {"-4", "route", "show", "exact"};
  question.insert(question.end(), words.begin() + 2, words.end());
  return ask_ip(layout, step.node, question).items.empty();
}

}  // namespace

FaultSteps plan_fault(const LabLayout& layout, std::string_view name, const LabNode& node, const std::string& rail) {
  if (name == "cable-pulled") return cut(layout, node, "");
  if (name == "rail-down") return cut(layout, node, rail);
  if (name == "rail-unaddressed") return take_addresses(layout, node, rail);
  if (name == "mtu-mismatch") return lower_mtu(layout, node, rail);
  if (name == "same-subnet") return share_subnet(layout, node);
  if (name == "slow-rail") return slow_down(layout, node, rail);
  if (name == "management-only") return route_over_management(layout, node);
  if (name == "firewall") return drop_data_ports(node);
  if (name == "gid-drift") return show_in_hardware(layout, node, rail, &LabPort::rdma_device);
  if (name == "narrow-pcie") return show_in_hardware(layout, node, rail, &LabPort::pci_address);
  if (name == "port-speed-100" && layout.topology == spec::Topology::kMesh) {
    throw Error(ErrorCode::kUnsupported, "the ports of a mesh are split: each link has 100 Gb/s where all is well",
                "slow-rail makes a link slow");
  }
  if (name == "port-speed-100") return show_in_hardware(layout, node, "", &LabPort::rdma_device);
  throw Error(ErrorCode::kUnsupported, "a lab cannot skew a clock: its nodes share this machine's",
              "time namespaces shift only the monotonic clocks, which no tool compares between machines");
}

void run_steps(const LabLayout& layout, const std::vector<Step>& steps) {
  for (const Step& step : steps) {
    in_network(open_network(layout.name, step.node), [&] {
      if (step.tool == "ip") run_ip({step.line});
      if (step.tool == "tc") run_tc({step.line});
      if (step.tool == "nft") run_nft(step.line);
    });
  }
}

void undo_steps(const LabLayout& layout, const std::vector<Step>& steps) {
  std::optional<Error> first;
  for (const Step& step : steps) {
    const auto undone = try_to([&] {
      if (step.tool != "ip" || !is_deleted(layout, step)) run_steps(layout, {step});
    });
    if (!undone && !first) first = undone.error();
  }
  if (first) throw *first;
}

}  // namespace yoke::lab

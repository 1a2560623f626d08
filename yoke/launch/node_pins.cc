#include "yoke/launch/node_pins.h"

#include <fmt/format.h>

#include "yoke/base/fields.h"
#include "yoke/probe/probe.h"
#include "yoke/remote/quote.h"

namespace yoke::launch {
namespace {

constexpr Seconds kPinFactsLimit{20};

Document pin_json(const spec::FabricPin& pin) {
  return Document::map({{"name", Document::string(pin.name)},
                        {"value", Document::string(pin.value)},
                        {"reason", Document::string(pin.reason)}});
}

}  // namespace

PinnedNode pin_node(const spec::Cluster& cluster, std::size_t index, const spec::Machine& machine) {
  PinnedNode node{.node = cluster.nodes.at(index).name, .failure = {}, .facts = {}, .pins = {}};
  node.facts = spec::pin_facts(cluster, index, machine);
  node.pins = spec::choose_pins(node.facts, machine.settings);
  return node;
}

std::vector<PinnedNode> pin_nodes(fleet::Fleet& fleet, const spec::Cluster& cluster) {
  const auto answers = fleet.each("", [](fleet::Node& node) {
    return from_json<spec::Machine>(node.ask("pin-facts", Document::null(), kPinFactsLimit));
  });
  std::vector<PinnedNode> nodes;
  for (std::size_t i = 0; i < fleet.size(); ++i) {
    const auto index = static_cast<std::size_t>(fleet[i].index());
    if (answers[i]) {
      nodes.push_back(pin_node(cluster, index, *answers[i]));
    } else {
      nodes.push_back({.node = fleet[i].name(), .failure = answers[i].error(), .facts = {}, .pins = {}});
    }
  }
  return nodes;
}

std::vector<job::Variable> variables_of(const spec::NodePins& pins) {
  std::vector<job::Variable> variables;
  for (const spec::FabricPin& pin : pins.set) variables.push_back({pin.name, pin.value});
  return variables;
}

std::vector<std::string> overrides_text(const std::vector<PinnedNode>& nodes) {
  std::vector<std::string> lines;
  for (const PinnedNode& node : nodes) {
    for (const spec::OverriddenPin& overridden : node.pins.overridden) {
      lines.push_back(spec::describe_override(node.node, overridden));
    }
  }
  return lines;
}

std::string shell_text(const PinnedNode& node) {
  std::string text = fmt::format("# Pins of {}, from its facts at this moment.\n", node.node);
  for (const spec::FabricPin& pin : node.pins.set) {
    text += fmt::format("export {}={}  # {}\n", pin.name, remote::shell_quote(pin.value), pin.reason);
  }
  for (const spec::OverriddenPin& overridden : node.pins.overridden) {
    text += fmt::format("# {}\n", spec::describe_override(node.node, overridden));
  }
  for (const std::string& reason : node.pins.left_out) text += fmt::format("# {}\n", reason);
  return text;
}

Document to_json(const PinnedNode& node) {
  Document document = Document::map({{"node", Document::string(node.node)}});
  if (node.failure) {
    document.add("error", Document::string(node.failure->message()));
    return document;
  }
  Document pins = Document::list(), overridden = Document::list(), left_out = Document::list();
  for (const spec::FabricPin& pin : node.pins.set) pins.items.push_back(pin_json(pin));
  for (const spec::OverriddenPin& one : node.pins.overridden) {
    Document item = pin_json(one.pin);
    item.add("own_value", Document::string(one.own.value));
    item.add("own_place", Document::string(one.own.where));
    overridden.items.push_back(std::move(item));
  }
  for (const std::string& reason : node.pins.left_out) left_out.items.push_back(Document::string(reason));
  const spec::BootstrapInterface bootstrap = spec::bootstrap_interface(node.facts);
  document.add("meeting", Document::map({{"interface", Document::string(bootstrap.interface)},
                                         {"address", Document::string(bootstrap.address)},
                                         {"reason", Document::string(bootstrap.reason)}}));
  document.add("pins", std::move(pins));
  document.add("overridden", std::move(overridden));
  document.add("left_out", std::move(left_out));
  return document;
}

Document answer_pin_facts(const Document&, agent::AgentContext&) {
  return spec::to_json(probe::probe_machine(probe::quick_sources_here()));
}

}  // namespace yoke::launch

// yoke lab status: the labs of this machine, their nodes, memory, and the faults in force.
#include "yoke/cli/lab_status.h"

#include <fmt/format.h>

#include "yoke/base/error.h"
#include "yoke/base/file_tree.h"
#include "yoke/base/text.h"
#include "yoke/lab/cgroup.h"
#include "yoke/lab/faults.h"
#include "yoke/lab/parts.h"
#include "yoke/lab/state.h"
#include "yoke/report/table.h"

namespace yoke {
namespace {

struct NodeStatus {
  const LabNode* node;
  bool on = false;
  std::optional<Bytes> memory_used;
};

std::vector<NodeStatus> look_at(const LabLayout& layout) {
  std::vector<NodeStatus> nodes;
  for (const LabNode& node : layout.nodes) {
    NodeStatus status{.node = &node, .on = find_part(layout.name, node.number).has_value()};
    if (const auto group = memory_group(layout.name, node.number)) {
      if (const auto used = DiskTree().read_trimmed(group->usage_file().native()))
        status.memory_used = Bytes{std::stoll(*used)};
    }
    nodes.push_back(status);
  }
  return nodes;
}

std::string fault_text(const LabLayout& layout, const ActiveFault& fault) {
  return fmt::format("{} on {}{}", fault.name, layout.nodes.at(static_cast<std::size_t>(fault.node - 1)).name,
                     fault.half.empty() ? "" : " half " + fault.half);
}

Document as_json(const LabLayout& layout) {
  Document nodes = Document::list();
  for (const NodeStatus& status : look_at(layout)) {
    Document node = Document::map({{"name", Document::string(status.node->name)},
                                   {"on", Document::boolean(status.on)},
                                   {"address", Document::string(to_string(status.node->management.address))}});
    if (status.memory_used) node.add("memory_used", Document::number(status.memory_used->value));
    nodes.items.push_back(std::move(node));
  }
  Document faults = Document::list();
  for (const ActiveFault& fault : active_faults(layout.name))
    faults.items.push_back(Document::string(fault_text(layout, fault)));
  Document missing = Document::list();
  for (const std::string& what : load_missing(layout.name)) missing.items.push_back(Document::string(what));
  return Document::map({{"name", Document::string(layout.name)},
                        {"hardware", Document::string(layout.hardware)},
                        {"plain", Document::boolean(layout.plain)},
                        {"topology", Document::string(std::string(to_string(layout.topology)))},
                        {"half_rate", layout.half_rate ? Document::number(layout.half_rate->value) : Document{}},
                        {"nodes", std::move(nodes)},
                        {"faults", std::move(faults)},
                        {"missing", std::move(missing)}});
}

std::string as_text(const LabLayout& layout) {
  Table table{.title = fmt::format("Lab '{}': {}, {}, {}, management {}", layout.name, layout.hardware,
                                   to_string(layout.topology),
                                   layout.half_rate ? "halves of " + to_string(*layout.half_rate) : "halves unshaped",
                                   to_string(layout.management_rate)),
              .columns = {{.header = "node"},
                          {.header = "power"},
                          {.header = "address"},
                          {.header = "memory", .align = TextAlign::kRight},
                          {.header = "halves", .fit = ColumnFit::kShrinks}}};
  if (layout.plain)
    table.title = fmt::format("Lab '{}': plain processes, ssh at port {}", layout.name, layout.ssh_port);
  for (const NodeStatus& status : look_at(layout)) {
    std::string halves;
    for (const LabInterface& interface : status.node->interfaces) {
      if (interface.address)
        halves += fmt::format("{}{} {}", halves.empty() ? "" : ", ", interface.name,
                              layout.bare ? "bare" : to_string(*interface.address));
    }
    const std::string memory =
        status.memory_used ? fmt::format("{} of {}", to_string(*status.memory_used), to_string(layout.memory)) : "-";
    table.rows.push_back(
        {status.node->name, status.on ? "on" : "off", to_string(status.node->management.address), memory, halves});
  }
  std::string text = render_text(table);
  for (const ActiveFault& fault : active_faults(layout.name))
    text += fmt::format("Fault: {}\n", fault_text(layout, fault));
  for (const std::string& what : load_missing(layout.name)) text += fmt::format("Missing here: {}\n", what);
  return text;
}

int run_status(Session& session, const std::optional<std::string>& name) {
  const std::vector<std::string> names = name ? std::vector{*name} : list_labs();
  Document labs = Document::list();
  std::string text = names.empty() ? "There is no lab. Next: yoke lab up\n" : "";
  for (const std::string& lab : names) {
    const LabLayout layout = load_layout(lab);
    if (session.json) {
      labs.items.push_back(as_json(layout));
    } else {
      text += (text.empty() ? "" : "\n") + as_text(layout);
    }
  }
  if (session.json) {
    session.print_json(Document::map({{"labs", std::move(labs)}}));
  } else {
    session.print(text);
  }
  return kExitOk;
}

}  // namespace

CommandRow lab_status_command() {
  return {.name = "status",
          .summary = "the labs, their nodes and the faults in force",
          .description = "Lists the labs of this machine with their nodes, memory in use and faults in force.",
          .examples = {{"yoke lab status", "all labs"}, {"yoke lab status --json", "for a script"}},
          .prepare = [](OptionTable& table) -> Action {
            auto name = std::make_shared<std::optional<std::string>>();
            table.value("--name", "NAME", "only this lab", *name);
            return [name](Session& session) { return run_status(session, *name); };
          }};
}

}  // namespace yoke

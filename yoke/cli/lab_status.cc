#include <fmt/format.h>
#include <fmt/ranges.h>
#include <pwd.h>

#include <algorithm>
#include <ctime>

#include "yoke/base/error.h"
#include "yoke/base/file_tree.h"
#include "yoke/base/text.h"
#include "yoke/cli/commands.h"
#include "yoke/cli/lab_head.h"
#include "yoke/lab/cgroup.h"
#include "yoke/lab/faults.h"
#include "yoke/lab/parts.h"
#include "yoke/lab/rights.h"
#include "yoke/lab/state.h"
#include "yoke/report/table.h"
#include "yoke/status/status.h"

namespace yoke::cli {

namespace {

struct NodeStatus {
  const lab::LabNode* node;
  bool on = false;
  std::optional<Bytes> memory_used;
};

std::vector<NodeStatus> inspect(const lab::LabLayout& layout) {
  std::vector<NodeStatus> nodes;
  for (const lab::LabNode& node : layout.nodes) {
    NodeStatus status{.node = &node, .on = lab::find_part(layout.name, node.number).has_value()};
    if (const auto group = lab::memory_group(layout.name, node.number)) {
      if (const auto used = DiskTree().read_trimmed(group->usage_file().native()))
        status.memory_used = Bytes{std::stoll(*used)};
    }
    nodes.push_back(status);
  }
  return nodes;
}

std::string fault_text(const lab::LabLayout& layout, const lab::ActiveFault& fault) {
  return fmt::format("{} on {}{}", fault.name, layout.nodes.at(static_cast<std::size_t>(fault.node - 1)).name,
                     fault.rail.empty() ? "" : " rail " + fault.rail);
}

Document lab_as_json(const lab::LabLayout& layout) {
  Document nodes = Document::list();
  for (const NodeStatus& status : inspect(layout)) {
    Document node = Document::map({{"name", Document::string(status.node->name)},
                                   {"on", Document::boolean(status.on)},
                                   {"address", Document::string(yoke::to_string(status.node->management.address))}});
    if (status.memory_used) node.add("memory_used", Document::number(status.memory_used->value));
    nodes.items.push_back(std::move(node));
  }
  Document faults = Document::list();
  for (const lab::ActiveFault& fault : lab::active_faults(layout.name))
    faults.items.push_back(Document::string(fault_text(layout, fault)));
  Document missing = Document::list();
  for (const std::string& what : lab::load_missing(layout.name)) missing.items.push_back(Document::string(what));
  return Document::map({{"name", Document::string(layout.name)},
                        {"hardware", Document::string(layout.hardware)},
                        {"plain", Document::boolean(layout.plain)},
                        {"topology", Document::string(std::string(spec::to_string(layout.topology)))},
                        {"rail_rate", layout.rail_rate ? Document::number(layout.rail_rate->value) : Document{}},
                        {"started", Document::number(lab::started_at(layout.name).value_or(0))},
                        {"cluster_file", Document::string(lab::load_cluster_file(layout.name).native())},
                        {"nodes", std::move(nodes)},
                        {"faults", std::move(faults)},
                        {"missing", std::move(missing)}});
}

// "A"; "port 0 A" where a Spark has cables in both ports. The NICs of a server are A, B, C, … in their order.
std::string cabled_rail_name(const lab::LabNode& node, const lab::LabInterface& interface) {
  bool has_halves = false, has_other_port = false;
  std::size_t place = 0;
  for (const lab::LabInterface& other : node.interfaces) {
    has_halves |= other.rail != interface.rail;
    has_other_port |= other.address && other.port != interface.port;
    place += other.address && other.port < interface.port ? 1 : 0;
  }
  if (!has_halves) return std::string(1, static_cast<char>('A' + place % 26));
  return has_other_port ? fmt::format("port {} {}", interface.port, interface.rail) : interface.rail;
}

// Whose it is and where it was started: on a machine with several labs that tells them apart.
std::string origin_text(const lab::LabLayout& layout) {
  std::string text;
  if (const auto started = lab::started_at(layout.name))
    text += "started " + status::ago(std::time(nullptr) - *started);
  if (const passwd* user = getpwuid(lab::outer_user())) text += fmt::format(" by {}", user->pw_name);
  const std::filesystem::path file = lab::load_cluster_file(layout.name);
  if (!file.empty()) text += fmt::format(", cluster file {}", file.native());
  return text;
}

std::string lab_as_text(const lab::LabLayout& layout) {
  report::Table table{
      .title = fmt::format("Lab '{}': {}, {}, {}, management {}", layout.name, layout.hardware,
                           spec::to_string(layout.topology),
                           layout.rail_rate ? "rails of " + yoke::to_string(*layout.rail_rate) : "rails unshaped",
                           yoke::to_string(layout.management_rate)),
      .columns = {{.header = "node"},
                  {.header = "power"},
                  {.header = "address"},
                  {.header = "memory", .align = report::TextAlign::kRight},
                  {.header = "rails", .fit = report::ColumnFit::kShrinks}}};
  if (layout.plain)
    table.title = fmt::format("Lab '{}': plain processes, ssh at port {}", layout.name, layout.ssh_port);
  for (const NodeStatus& status : inspect(layout)) {
    std::string rails;
    for (const lab::LabInterface& interface : status.node->interfaces) {
      if (!interface.address) continue;
      rails += fmt::format("{}{} {}", rails.empty() ? "" : ", ", cabled_rail_name(*status.node, interface),
                           layout.bare ? "without address" : yoke::to_string(interface.address->address));
    }
    const std::string memory = status.memory_used ? fmt::format("{} of {}", yoke::to_string(*status.memory_used),
                                                                yoke::to_string(layout.memory))
                                                  : "-";
    table.rows.push_back(
        {status.node->name, status.on ? "on" : "off", yoke::to_string(status.node->management.address), memory, rails});
  }
  std::string text = report::render_text(table);
  text += fmt::format("It was {}.\n", origin_text(layout));
  for (const lab::ActiveFault& fault : lab::active_faults(layout.name))
    text += fmt::format("Fault: {}\n", fault_text(layout, fault));
  for (const std::string& what : lab::load_missing(layout.name)) text += fmt::format("Missing here: {}\n", what);
  return text;
}

// Other labs start and end while this one looks: a lab that is not whole yet, or has gone since, is left out.
template <class Show>
auto show_if_running(const std::string& name, const Show& show) -> std::optional<decltype(show(lab::LabLayout{}))> {
  try {
    return show(lab::load_layout(name));
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kNotFound && lab::started_at(name)) throw;
    return std::nullopt;
  }
}

int run_status(Session& session, const std::optional<std::string>& name) {
  if (name) lab::load_layout(*name);  // throws where it is not running
  Document labs = Document::list();
  std::string text;
  for (const std::string& lab : name ? std::vector{*name} : lab::list_labs()) {
    if (session.json) {
      if (auto shown = show_if_running(lab, lab_as_json)) labs.items.push_back(*std::move(shown));
    } else if (const auto shown = show_if_running(lab, lab_as_text)) {
      text += (text.empty() ? "" : "\n") + *shown;
    }
  }
  if (text.empty()) text = "There is no lab. Next: yoke lab up\n";
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

// yoke lab fault: makes a fault, or clears all.

namespace {

struct FaultOptions {
  std::optional<std::string> name;
  std::string fault;
  std::optional<std::string> node;
  std::string rail = "B";
};

std::string list_text() {
  report::Table table{.columns = {{.header = "fault"}, {.header = "what", .fit = report::ColumnFit::kShrinks}}};
  for (const lab::FaultRow& row : lab::fault_table())
    table.rows.push_back({std::string(row.name), std::string(row.summary)});
  table.rows.push_back({"clear", "ends all faults and restores what they changed"});
  return report::render_text(table);
}

int run_fault(Session& session, const FaultOptions& options) {
  if (options.fault.empty()) {
    if (session.json) {
      Document faults = Document::list();
      for (const lab::FaultRow& row : lab::fault_table()) {
        faults.items.push_back(Document::map({{"name", Document::string(std::string(row.name))},
                                              {"summary", Document::string(std::string(row.summary))}}));
      }
      session.print_json(Document::map({{"faults", std::move(faults)}}));
    } else {
      session.print(list_text());
    }
    return kExitOk;
  }
  const std::string lab = lab_meant(session, options.name);
  const lab::LabLayout layout = lab::load_layout(lab);
  if (options.fault == "clear") {
    const std::size_t cleared = lab::clear_faults(layout);
    if (session.json) {
      session.print_json(Document::map({{"cleared", Document::number(static_cast<std::int64_t>(cleared))}}));
    } else {
      session.print(fmt::format("{} fault{} cleared.\n", cleared, cleared == 1 ? "" : "s"));
    }
    return kExitOk;
  }
  if (!options.node) {
    std::vector<std::string> names;
    for (const lab::LabNode& one : layout.nodes) names.push_back(one.name);
    throw Error(ErrorCode::kUsage, fmt::format("{}: on which node?", options.fault),
                fmt::format("--node {}", fmt::join(names, " or ")));
  }
  const lab::LabNode& node = lab::find_lab_node(layout, *options.node);
  lab::apply_fault(layout, options.fault, node, options.rail);
  if (session.json) {
    session.print_json(
        Document::map({{"fault", Document::string(options.fault)}, {"node", Document::string(node.name)}}));
  } else {
    session.print(options.fault == "power-on"
                      ? fmt::format("{} is on again.\n", node.name)
                      : fmt::format("{} on {}; 'yoke lab fault clear' ends it.\n", options.fault, node.name));
  }
  return kExitOk;
}

}  // namespace

CommandRow lab_fault_command() {
  return {.name = "fault",
          .summary = "make a fault in a node, or clear all",
          .description =
              "Makes one of the faults that real clusters have; alone it lists them. 'clear' ends all and "
              "restores exactly what they changed.",
          .examples = {{"yoke lab fault", "list them"},
                       {"yoke lab fault slow-rail --node 1 --rail A", "rail A of spark-1 at an eighth of its rate"},
                       {"yoke lab fault clear", "all is well again"}},
          .prepare = [](OptionTable& table) -> Action {
            auto options = std::make_shared<FaultOptions>();
            table.value("--name", "NAME", "which lab (that of the folder's cluster file)", options->name);
            std::vector<std::string> names = {"clear"};
            for (const lab::FaultRow& row : lab::fault_table()) names.emplace_back(row.name);
            table.positional("FAULT", "the fault's name, or clear", options->fault, Presence::kOptional, names);
            table.value("--node", "NODE", "where: a node's name or number", options->node);
            table.value("--rail", "RAIL", "which rail: A or B on a Spark, A to H on a server (B unless given)",
                        options->rail);
            return [options](Session& session) { return run_fault(session, *options); };
          }};
}

}  // namespace yoke::cli

// yoke lab fault: makes a fault, or clears all.
#include <fmt/format.h>

#include "yoke/base/error.h"
#include "yoke/cli/commands.h"
#include "yoke/cli/lab_head.h"
#include "yoke/lab/faults.h"
#include "yoke/lab/state.h"
#include "yoke/report/table.h"

namespace yoke {
namespace {

struct FaultOptions {
  std::optional<std::string> name;
  std::string fault;
  std::optional<std::string> node;
  std::string half = "B";
};

std::string list_text() {
  Table table{.columns = {{.header = "fault"}, {.header = "what"}}};
  for (const FaultRow& row : fault_table()) table.rows.push_back({std::string(row.name), std::string(row.summary)});
  table.rows.push_back({"clear", "ends all faults and restores what they changed"});
  return render_text(table);
}

int run_fault(Session& session, const FaultOptions& options) {
  if (options.fault.empty()) {
    session.print(list_text());
    return kExitOk;
  }
  const std::string lab = lab_meant(session, options.name);
  const LabLayout layout = load_layout(lab);
  if (options.fault == "clear") {
    const std::size_t cleared = clear_faults(layout);
    if (session.json) {
      session.print_json(Document::map({{"cleared", Document::number(static_cast<std::int64_t>(cleared))}}));
    } else {
      session.print(fmt::format("{} fault{} cleared.\n", cleared, cleared == 1 ? "" : "s"));
    }
    return kExitOk;
  }
  if (!options.node) throw Error(ErrorCode::kUsage, "which node?", "name one with --node");
  const LabNode& node = find_lab_node(layout, *options.node);
  apply_fault(layout, options.fault, node, options.half);
  if (session.json) {
    session.print_json(
        Document::map({{"fault", Document::string(options.fault)}, {"node", Document::string(node.name)}}));
  } else {
    session.print(fmt::format("{} on {}; 'yoke lab fault clear' ends it.\n", options.fault, node.name));
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
                       {"yoke lab fault slow-half --node 1 --half A", "half A of spark-1 at an eighth of its rate"},
                       {"yoke lab fault clear", "all is well again"}},
          .prepare = [](OptionTable& table) -> Action {
            auto options = std::make_shared<FaultOptions>();
            table.value("--name", "NAME", "which lab (this folder's, or the only one)", options->name);
            std::vector<std::string> names = {"clear"};
            for (const FaultRow& row : fault_table()) names.emplace_back(row.name);
            table.positional("FAULT", "the fault's name, or clear", options->fault, Presence::kOptional, names);
            table.value("--node", "NODE", "where: a node's name or number", options->node);
            table.choice("--half", "HALF", "A or B (B unless given)", {"A", "B"}, options->half);
            return [options](Session& session) { return run_fault(session, *options); };
          }};
}

}  // namespace yoke

// yoke link setup and yoke link undo: what will be done is shown, asked, done, and can be taken back.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <set>

#include "yoke/base/error.h"
#include "yoke/base/fields.h"
#include "yoke/base/progress.h"
#include "yoke/base/text.h"
#include "yoke/cli/cluster_file.h"
#include "yoke/cli/commands.h"
#include "yoke/cli/question.h"
#include "yoke/link/setup.h"
#include "yoke/terminal/typed_input.h"

namespace yoke::cli {
namespace {

struct ChangeArguments {
  bool dry_run = false;
  bool yes = false;
  bool force = false;
  bool shell = false;
};

bool agreed(const Session& session, const ChangeArguments& arguments, const std::string& question,
            std::function<void()> show_details = {}) {
  return ask(session, {.text = question,
                       .agreed = arguments.yes,
                       .unasked = "this would change the nodes, and there is no terminal to ask at",
                       .hint = "add --yes, or look first with --dry-run",
                       .show_details = std::move(show_details)});
}

void check(const ChangeArguments& arguments) {
  if (arguments.dry_run && arguments.yes) {
    throw Error(ErrorCode::kUsage, "--dry-run and --yes cannot both be given", "--dry-run changes nothing");
  }
}

std::string steps_text(const link::LinkSetup& setup) {
  std::string text;
  std::size_t number = 0;
  for (const link::PlannedStep& step : setup.steps()) {
    text += fmt::format("{}/{} {}: {}{}\n", ++number, setup.steps().size(), step.node_name, step.step.description,
                        step.satisfied ? " (already done)" : "");
    for (const std::string& command : step.commands) text += "      " + command + "\n";
  }
  for (const std::string& notice : setup.notices()) text += "Note: " + notice + "\n";
  return text;
}

// What changes, a line for each kind of step: the files in full are 129 lines on two nodes, and more than 1000 on a
// ring of four.
std::string setup_summary_text(const link::LinkSetup& setup) {
  std::vector<std::pair<std::string, std::vector<std::string>>> kinds;
  std::set<std::string> nodes;
  for (const link::PlannedStep& step : setup.steps()) {
    if (step.satisfied) continue;
    nodes.insert(step.node_name);
    const auto same =
        std::find_if(kinds.begin(), kinds.end(), [&](const auto& kind) { return kind.first == step.step.description; });
    if (same == kinds.end()) {
      kinds.push_back({step.step.description, {step.node_name}});
    } else {
      same->second.push_back(step.node_name);
    }
  }
  std::string text = fmt::format("{} change{} on {} node{}:\n", setup.to_do(), setup.to_do() == 1 ? "" : "s",
                                 nodes.size(), nodes.size() == 1 ? "" : "s");
  for (const auto& [what, where] : kinds) text += fmt::format("  - {} ({})\n", what, fmt::join(where, ", "));
  for (const std::string& notice : setup.notices()) text += "Note: " + notice + "\n";
  return text;
}

Document steps_json(const link::LinkSetup& setup, std::string_view when_to_do) {
  Document steps = Document::list();
  for (const link::PlannedStep& step : setup.steps()) {
    steps.items.push_back(
        Document::map({{"node", Document::string(step.node_name)},
                       {"kind", to_document(step.step.kind)},
                       {"description", Document::string(step.step.description)},
                       {"state", Document::string(step.satisfied ? "already" : std::string(when_to_do))},
                       {"commands", to_document(step.commands)}}));
  }
  return Document::map({{"steps", std::move(steps)}, {"notices", to_document(setup.notices())}});
}

// One password for all nodes, asked where somebody sits at a terminal.
std::unique_ptr<fleet::SudoPassword> password_of_person() {
  if (!isatty(STDIN_FILENO)) return nullptr;
  return std::make_unique<fleet::SudoPassword>([](const std::string& node) {
    return terminal::read_secret(fmt::format("Password for sudo on {} and the other nodes: ", node));
  });
}

int run_setup(Session& session, const ChangeArguments& arguments) {
  check(arguments);
  const spec::Cluster cluster = load_session_cluster(session);
  const auto password = password_of_person();
  const auto shell = arguments.shell ? link::ShellPins::kLogins : link::ShellPins::kNone;
  std::optional<link::LinkSetup> reached;
  try {
    reached.emplace(cluster, password.get(), shell);
  } catch (const Error& error) {
    // Machines from the box have no key of ours yet.
    if (error.code() != ErrorCode::kPermission || arguments.dry_run || !offer_first_contact(session, cluster)) throw;
    reached.emplace(cluster, password.get(), shell);
  }
  link::LinkSetup& setup = *reached;
  const bool nothing = setup.to_do() == 0;
  const bool asks = !nothing && !arguments.dry_run && !arguments.yes && isatty(STDIN_FILENO) != 0;
  if (!session.json) session.print(asks ? setup_summary_text(setup) : steps_text(setup));
  if (!nothing && !arguments.dry_run) {
    if (!agreed(session, arguments, fmt::format("Do these {} steps (d: show them in full)?", setup.to_do()),
                [&] { session.print(steps_text(setup)); })) {
      session.print("Nothing was changed.\n");
      return kExitOk;
    }
    Progress progress("setting up", static_cast<std::int64_t>(setup.steps().size()));
    setup.perform([&](const link::PlannedStep& step, std::size_t number) {
      progress.update(static_cast<std::int64_t>(number), step.node_name);
      if (!session.json && !step.satisfied) {
        session.print(
            fmt::format("done {}/{} {}: {}\n", number, setup.steps().size(), step.node_name, step.step.description));
      }
    });
  }
  if (session.json) {
    session.print_json(steps_json(setup, arguments.dry_run ? "to-do" : "done"));
  } else if (nothing) {
    session.print("Everything is already set up. Nothing changed.\n");
  } else if (arguments.dry_run) {
    session.print("Nothing was changed: this was a dry run.\n");
  } else {
    session.print("The network is set up. Next: yoke link test. To take it back: yoke link undo\n");
  }
  return kExitOk;
}

// One node of undo; a node that cannot be reached does not keep the others from being undone.
struct NodeUndo {
  fleet::Node* node;
  std::vector<link::UndoRecord> records;
  std::optional<Error> failure;
};

std::vector<NodeUndo> find_records(fleet::Fleet& fleet) {
  std::vector<NodeUndo> nodes;
  auto found = fleet.each("reading the journals", link::undo_records);
  for (std::size_t i = 0; i < fleet.size(); ++i) {
    NodeUndo node{.node = &fleet[i], .records = {}, .failure = {}};
    if (found[i]) {
      node.records = *std::move(found[i]);
    } else {
      node.failure = found[i].error();
    }
    nodes.push_back(std::move(node));
  }
  return nodes;
}

std::string undo_text(const std::vector<NodeUndo>& nodes) {
  std::string text;
  for (const NodeUndo& node : nodes) {
    for (const link::UndoRecord& record : node.records) {
      text += fmt::format("{}: undo {} ({}{})\n", node.node->name(), record.description, record.time,
                          record.done ? "" : ", cut short");
    }
    if (node.failure) text += fmt::format("{}: {}\n", node.node->name(), node.failure->message());
  }
  return text;
}

Document undo_json(const std::vector<NodeUndo>& nodes, std::string_view state) {
  Document list = Document::list();
  for (const NodeUndo& node : nodes) {
    Document records = Document::list();
    for (const link::UndoRecord& record : node.records) {
      records.items.push_back(Document::map({{"description", Document::string(record.description)},
                                             {"time", Document::string(record.time)},
                                             {"incomplete", Document::boolean(!record.done)}}));
    }
    list.items.push_back(Document::map({{"node", Document::string(node.node->name())},
                                        {"state", Document::string(node.failure ? "failed" : std::string(state))},
                                        {"message", Document::string(node.failure ? node.failure->message() : "")},
                                        {"records", std::move(records)}}));
  }
  return Document::map({{"nodes", std::move(list)}});
}

int run_undo(Session& session, const ChangeArguments& arguments) {
  check(arguments);
  const spec::Cluster cluster = load_session_cluster(session);
  const auto password = password_of_person();
  fleet::Fleet fleet(cluster.nodes, {.rights = agent::AgentRights::kRoot, .password = password.get()});
  std::vector<NodeUndo> nodes = find_records(fleet);
  std::size_t count = 0;
  for (const NodeUndo& node : nodes) count += node.records.size();
  if (!session.json) session.print(undo_text(nodes));
  if (count > 0 && !arguments.dry_run) {
    if (!agreed(session, arguments, fmt::format("Take back these {} steps?", count))) {
      session.print("Nothing was changed.\n");
      return kExitOk;
    }
    const link::UndoConflicts conflicts =
        arguments.force ? link::UndoConflicts::kOverwrite : link::UndoConflicts::kRefuse;
    for (NodeUndo& node : nodes) {
      if (node.failure || node.records.empty()) continue;
      const auto undone = try_to([&] { link::undo_all(*node.node, conflicts); });
      if (!undone) node.failure = undone.error();
      if (!session.json && undone)
        session.print(fmt::format("undone {}: {} steps\n", node.node->name(), node.records.size()));
    }
  }
  if (session.json) session.print_json(undo_json(nodes, arguments.dry_run ? "to-do" : "undone"));
  for (const NodeUndo& node : nodes) {
    if (!node.failure) continue;
    throw Error(node.failure->code(), fmt::format("{}: {}", node.node->name(), node.failure->message()),
                node.failure->hint());
  }
  if (!session.json) {
    session.print(count == 0          ? "There is nothing to undo.\n"
                  : arguments.dry_run ? "Nothing was changed: this was a dry run.\n"
                                      : "Undone. The nodes are back in their previous state.\n");
  }
  return kExitOk;
}

void declare(OptionTable& table, ChangeArguments& arguments) {
  table.flag("--dry-run", "show what would be done, and change nothing", arguments.dry_run);
  table.flag("--yes", "do not ask", arguments.yes);
}

}  // namespace

CommandRow link_setup_command() {
  return {
      .name = "setup",
      .summary = "write addresses, MTU, keys and pins on every node, step by step",
      .description =
          "Makes the network of the cluster file's rails: addresses with one subnet for each rail, MTU, IPv6 off on "
          "the fast interfaces, a netplan file that keeps it so, routes for a ring; ssh between all nodes (a key "
          "pair for each, only public keys travel, host keys are pinned); locked memory for RDMA; and "
          "/etc/yoke/fabric.env with the pins that engines need. Every step is shown before anything is changed, "
          "verified after it is done, and kept in a journal for 'yoke link undo'. Steps that are already done are "
          "skipped, so running it again changes nothing. If a step fails, all changes of this run are undone. Needs "
          "root on the nodes, or sudo: if sudo needs a password, yoke asks for it once, at the terminal.",
      .examples = {{"yoke link setup --dry-run", "print every step without changing anything"},
                   {"yoke link setup", "show the steps, ask, then do them"},
                   {"yoke link setup --yes --json", "for a script"}},
      .prepare = [](OptionTable& table) -> Action {
        auto arguments = std::make_shared<ChangeArguments>();
        declare(table, *arguments);
        table.flag("--shell", "also put the pins into login shells and services of users", arguments->shell);
        return [arguments](Session& session) { return run_setup(session, *arguments); };
      },
      .place = CommandPlace::kHead};
}

CommandRow link_undo_command() {
  return {
      .name = "undo",
      .summary = "undo exactly what setup did",
      .description =
          "Undoes every step in the nodes' journals, newest first: files are restored byte for byte, interfaces get "
          "back their addresses and MTU. It works after a setup that was killed, and after a reboot. A file that "
          "somebody else has changed since is left alone and named; --force restores it too. Nodes that cannot be "
          "reached are named, the others are undone.",
      .examples = {{"yoke link undo --dry-run", "print what would be undone"},
                   {"yoke link undo --yes", "do it, without asking"}},
      .prepare = [](OptionTable& table) -> Action {
        auto arguments = std::make_shared<ChangeArguments>();
        declare(table, *arguments);
        table.flag("--force", "also files that somebody else changed since", arguments->force);
        return [arguments](Session& session) { return run_undo(session, *arguments); };
      },
      .place = CommandPlace::kHead};
}

}  // namespace yoke::cli

// yoke link setup and yoke link undo: what will be done is shown, asked, done, and can be taken back.
#include <fmt/format.h>
#include <unistd.h>

#include "yoke/base/error.h"
#include "yoke/base/fields.h"
#include "yoke/base/progress.h"
#include "yoke/base/text.h"
#include "yoke/cli/cluster_file.h"
#include "yoke/cli/commands.h"
#include "yoke/cli/question.h"
#include "yoke/cli/secret_input.h"
#include "yoke/link/setup.h"

namespace yoke {
namespace {

struct ChangeArguments {
  bool dry_run = false;
  bool yes = false;
  bool force = false;
};

bool agreed(const Session& session, const ChangeArguments& arguments, const std::string& question) {
  return ask(session, {.text = question,
                       .agreed = arguments.yes,
                       .unasked = "this changes the nodes, and nobody can be asked here",
                       .hint = "--yes to do it, --dry-run to see what it would be"});
}

void check(const ChangeArguments& arguments) {
  if (arguments.dry_run && arguments.yes) {
    throw Error(ErrorCode::kUsage, "--dry-run and --yes cannot both be given", "--dry-run changes nothing");
  }
}

std::string steps_text(const LinkSetup& setup) {
  std::string text;
  std::size_t number = 0;
  for (const PlannedStep& step : setup.steps()) {
    text += fmt::format("{}/{} {}: {}{}\n", ++number, setup.steps().size(), step.node_name, step.step.says,
                        step.satisfied ? " (already done)" : "");
    for (const std::string& command : step.commands) text += "      " + command + "\n";
  }
  for (const std::string& notice : setup.notices()) text += "Note: " + notice + "\n";
  return text;
}

Document steps_json(const LinkSetup& setup, std::string_view when_to_do) {
  Document steps = Document::list();
  for (const PlannedStep& step : setup.steps()) {
    steps.items.push_back(
        Document::map({{"node", Document::string(step.node_name)},
                       {"kind", to_document(step.step.kind)},
                       {"says", Document::string(step.step.says)},
                       {"state", Document::string(step.satisfied ? "already" : std::string(when_to_do))},
                       {"commands", to_document(step.commands)}}));
  }
  return Document::map({{"steps", std::move(steps)}, {"notices", to_document(setup.notices())}});
}

// One password for all nodes, asked where somebody sits at a terminal.
std::unique_ptr<SudoPassword> password_of_person() {
  if (!isatty(STDIN_FILENO)) return nullptr;
  return std::make_unique<SudoPassword>([](const std::string& node) {
    return read_secret(fmt::format("Password for sudo on {} and the other nodes: ", node));
  });
}

int run_setup(Session& session, const ChangeArguments& arguments) {
  check(arguments);
  const Cluster cluster = load_session_cluster(session);
  const auto password = password_of_person();
  LinkSetup setup(cluster, password.get());
  if (!session.json) session.print(steps_text(setup));
  const bool nothing = setup.to_do() == 0;
  if (!nothing && !arguments.dry_run) {
    if (!agreed(session, arguments, fmt::format("Do these {} steps?", setup.to_do()))) {
      session.print("Nothing was changed.\n");
      return kExitOk;
    }
    Progress progress("setting up", static_cast<std::int64_t>(setup.steps().size()));
    setup.perform([&](const PlannedStep& step, std::size_t number) {
      progress.update(static_cast<std::int64_t>(number), step.node_name);
      if (!session.json && !step.satisfied) {
        session.print(fmt::format("done {}/{} {}: {}\n", number, setup.steps().size(), step.node_name, step.step.says));
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
  Node* node;
  std::vector<UndoRecord> records;
  std::optional<Error> failure;
};

std::vector<NodeUndo> find_records(Fleet& fleet) {
  std::vector<NodeUndo> nodes;
  auto found = fleet.each("reading the journals", undo_records);
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
    for (const UndoRecord& record : node.records) {
      text += fmt::format("{}: take back {} ({}{})\n", node.node->name(), record.says, record.time,
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
    for (const UndoRecord& record : node.records) {
      records.items.push_back(Document::map({{"says", Document::string(record.says)},
                                             {"time", Document::string(record.time)},
                                             {"cut_short", Document::boolean(!record.done)}}));
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
  const Cluster cluster = load_session_cluster(session);
  const auto password = password_of_person();
  Fleet fleet(cluster.nodes, {.rights = AgentRights::kRoot, .password = password.get()});
  std::vector<NodeUndo> nodes = find_records(fleet);
  std::size_t count = 0;
  for (const NodeUndo& node : nodes) count += node.records.size();
  if (!session.json) session.print(undo_text(nodes));
  if (count > 0 && !arguments.dry_run) {
    if (!agreed(session, arguments, fmt::format("Take back these {} steps?", count))) {
      session.print("Nothing was changed.\n");
      return kExitOk;
    }
    const UndoConflicts conflicts = arguments.force ? UndoConflicts::kTakeBack : UndoConflicts::kRefuse;
    for (NodeUndo& node : nodes) {
      if (node.failure || node.records.empty()) continue;
      const auto undone = try_to([&] { undo_all(*node.node, conflicts); });
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
          "Makes the network of the cluster file's halves: addresses with one subnet for each half, MTU, IPv6 off on "
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

}  // namespace yoke

// yoke alone and yoke up: where the user stands, and the steps from there.
#include <fmt/format.h>

#include <map>

#include "yoke/base/build_info.h"
#include "yoke/base/error.h"
#include "yoke/base/run_at_terminal.h"
#include "yoke/cli/commands.h"
#include "yoke/cli/question.h"
#include "yoke/remote/quote.h"
#include "yoke/status/status.h"

namespace yoke::cli {

namespace {

Document status_json(const status::Situation& s, const status::SetupStatus& found) {
  Document next = Document::list();
  for (const std::string& word : found.next) next.items.push_back(Document::string(word));
  Document document = Document::map(
      {{"state", Document::string(found.state)}, {"stand", Document::string(found.text)}, {"next", std::move(next)}});
  if (s.lab) {
    document.add("lab",
                 Document::map({{"name", Document::string(s.lab->name)}, {"up", Document::boolean(s.lab->is_up)}}));
  }
  if (s.cluster) {
    document.add("nodes", Document::number(static_cast<std::int64_t>(s.cluster->nodes.size())));
    document.add("rails", Document::number(static_cast<std::int64_t>(s.cluster->nodes.front().rails.size())));
  }
  if (const auto checked = s.done.find("check"); checked != s.done.end()) {
    document.add("checked", Document::map({{"exit_status", Document::number(std::int64_t{checked->second.exit_status})},
                                           {"seconds_ago", Document::number(s.now - checked->second.when)}}));
  }
  return document;
}

}  // namespace

int show_status(Session& session) {
  const status::Situation situation = status::inspect_situation(session);
  const status::SetupStatus found = status::evaluate_status(situation);
  if (session.json) {
    session.print_json(status_json(situation, found));
  } else {
    session.print(fmt::format("yoke {}: one model, several machines.\n\nYou have: {}\nNext:     {}\n",
                              build_info().version, found.text, remote::shell_join(found.next)));
  }
  return kExitOk;
}

// yoke up: from where the user stands to a model that runs over all nodes, one step at a time. Each step is the command
// that `yoke` alone would print as the next; it is shown, explained and asked about, then run with this terminal.

namespace {

struct UpArguments {
  bool yes = false;
  bool dry_run = false;
};

constexpr int kMaxSteps = 12;  // more than there are states: a guard against going round in circles

// What a step does, by the state that it ends (found.h).
std::string_view what_it_does(std::string_view state) {
  static const std::map<std::string_view, std::string_view> kTexts = {
      {"no-cluster", "It looks for the other machines and writes cluster.yaml; or, without fast ports, starts a lab."},
      {"lab-down", "It starts the lab again, as its file describes it."},
      {"head-off", "It switches the node on."},
      {"node-off", "It switches the node on."},
      {"no-answer", "It shows for each node why ssh does not get there, and what to do."},
      {"not-reached", "It logs in to each node once. Nothing is changed."},
      {"no-rails", "It finds the cables and their rails, and writes them into the file. Nothing else is changed."},
      {"one-rail", "It proposes an address for the second rail and writes it into the file."},
      {"not-set-up", "It shows each change to the network, asks, and can take all of it back with 'yoke link undo'."},
      {"setup-incomplete", "It goes on where it was interrupted."},
      {"unchecked", "It looks at all nodes and measures the link. Nothing is changed."},
      {"unmeasured", "It measures each rail alone, then all together."},
      {"fault-in-force", "It shows what the fault does."},
      {"findings", "It shows the findings again, each with its fix."},
      {"checked", "It asks the model that ships with yoke, split over all nodes."}};
  const auto found = kTexts.find(state);
  return found == kTexts.end() ? "" : found->second;
}

int run_here(const std::vector<std::string>& words) {
  std::vector<std::string> argv = words;
  argv.front() = "/proc/self/exe";
  return run_at_terminal({.argv = std::move(argv)});
}

int walk_up(Session& session, const UpArguments& arguments) {
  if (session.json)
    throw Error(ErrorCode::kUsage, "yoke up is a walk for people, not JSON", "'yoke --json' prints the next step");
  std::string state_before;
  for (int step = 1; step <= kMaxSteps; ++step) {
    const status::SetupStatus found = status::evaluate_status(status::inspect_situation(session));
    session.print(fmt::format("{}You have: {}\n", step == 1 ? "" : "\n", found.text));
    if (found.state == "ready") {
      session.print("Everything is up. Next: " + remote::shell_join(found.next) + "\n");
      return kExitOk;
    }
    if (found.state == state_before || found.next.front() != "yoke" || found.state == "other-file") {
      session.print(fmt::format("This step needs you. Next: {}\n", remote::shell_join(found.next)));
      return kExitFindings;
    }
    session.print(fmt::format("Step {}: {}\n  {}\n", step, what_it_does(found.state), remote::shell_join(found.next)));
    if (arguments.dry_run) {
      session.print("Nothing was run: this was a dry run. Later steps depend on this one.\n");
      return kExitOk;
    }
    const Question question{.text = "Run it?",
                            .agreed = arguments.yes,
                            .unasked = "yoke up asks before each step, and there is no terminal to ask at",
                            .hint = "add --yes, or run the command above"};
    if (!ask(session, question)) {
      session.print("Stopped here. 'yoke up' goes on from the same place.\n");
      return kExitOk;
    }
    std::vector<std::string> words = found.next;
    if (arguments.yes && found.state == "not-set-up") words.emplace_back("--yes");
    const int status = run_here(words);
    if (status >= 128) return status;
    state_before = found.state;
  }
  throw Error(ErrorCode::kInternal, "the steps of yoke up do not end", "please report this, with what 'yoke' prints");
}

}  // namespace

CommandRow walk_up_command() {
  return {
      .name = "up",
      .summary = "walk from new machines to a model that runs, step by step",
      .description =
          "Looks where you stand, as 'yoke' alone does, shows the next command with what it does, asks, and runs it; "
          "then the next, until a model has run over all nodes. On a machine with fast ports it discovers the others; "
          "elsewhere it starts a lab. It stops at the first step that needs you, and goes on from there the next time. "
          "docs/spark.md describes the same steps for two Sparks from the box.",
      .examples = {{"yoke up", "one question before each step"},
                   {"yoke up --dry-run", "only show the next step"},
                   {"yoke up --yes --lab try", "without questions, in a lab that is up"}},
      .prepare = [](OptionTable& table) -> Action {
        auto arguments = std::make_shared<UpArguments>();
        table.flag("--yes", "do not ask before each step", arguments->yes);
        table.flag("--dry-run", "show the next step and run nothing", arguments->dry_run);
        return [arguments](Session& session) { return walk_up(session, *arguments); };
      }};
}

}  // namespace yoke::cli

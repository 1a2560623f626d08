#include <arpa/inet.h>
#include <fmt/format.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <ctime>
#include <future>
#include <map>

#include "yoke/base/build_info.h"
#include "yoke/base/error.h"
#include "yoke/base/file_tree.h"
#include "yoke/base/run_at_terminal.h"
#include "yoke/base/socket.h"
#include "yoke/cli/cluster_file.h"
#include "yoke/cli/commands.h"
#include "yoke/cli/question.h"
#include "yoke/cli/status.h"
#include "yoke/lab/enter.h"
#include "yoke/lab/faults.h"
#include "yoke/lab/parts.h"
#include "yoke/lab/state.h"
#include "yoke/remote/quote.h"

namespace yoke::cli {

namespace fs = std::filesystem;
namespace {

constexpr Seconds kAnswerWithin{1};

std::string user_name(uid_t user) {
  const passwd* entry = getpwuid(user);
  return entry ? entry->pw_name : fmt::format("user {}", user);
}

// Another user's labs cannot be seen. The one that started a lab wrote its cluster file, so its owner is who to ask.
std::optional<std::string> other_owner(const std::optional<std::string>& file) {
  struct stat status {};
  if (!file || stat(file->c_str(), &status) != 0 || status.st_uid == geteuid()) return std::nullopt;
  return user_name(status.st_uid);
}

LabSituation inspect_lab(const std::string& name, const std::optional<std::string>& file) {
  LabSituation lab{.name = name};
  const auto layout = try_to([&] { return lab::load_layout(name); });
  if (!layout) {
    lab.other_owner = other_owner(file);
    return lab;
  }
  lab.is_up = true;
  lab.bare = layout->bare;
  for (const lab::LabNode& node : layout->nodes) {
    if (!lab::find_part(name, node.number)) lab.nodes_off.push_back(node.name);
  }
  const auto faults = try_to([&] { return lab::active_faults(name); });
  for (const lab::ActiveFault& fault : faults ? *faults : std::vector<lab::ActiveFault>{}) {
    if (fault.name.starts_with("power")) continue;  // said as a node that is off
    lab.faults.push_back(
        fmt::format("{} on {}", fault.name, layout->nodes.at(static_cast<std::size_t>(fault.node - 1)).name));
  }
  return lab;
}

// Only addresses in numbers: a name may take a resolver's time, which is longer than anybody waits here.
std::vector<std::string> find_silent(const spec::Cluster& cluster) {
  std::vector<std::pair<std::string, std::future<bool>>> asked;
  for (const spec::ClusterNode& node : cluster.nodes) {
    in_addr numbers{};
    if (inet_pton(AF_INET, node.address.c_str(), &numbers) != 1) continue;
    asked.emplace_back(fmt::format("{} ({})", node.name, node.address), std::async(std::launch::async, [&node] {
                         return try_to([&] {
                                  connect_tcp({node.address, static_cast<std::uint16_t>(node.port)}, {},
                                              Deadline::after(kAnswerWithin));
                                })
                             .has_value();
                       }));
  }
  std::vector<std::string> silent;
  for (auto& [name, answers] : asked) {
    if (!answers.get()) silent.push_back(name);
  }
  return silent;
}

bool has_fast_ports(const FileTree& machine) {
  for (const std::string& device : machine.list("/sys/class/infiniband")) {
    if (device.starts_with("mlx5") || device.starts_with("roce")) return true;
  }
  for (const std::string& name : machine.list("/sys/class/net")) {
    if (machine.read_trimmed("/sys/class/net/" + name + "/device/vendor") == "0x15b3") return true;
  }
  return false;
}

std::optional<std::string> find_other_file() {
  std::error_code ignored;
  for (const char* file : {"cluster.yml", "../cluster.yaml"}) {
    if (fs::exists(file, ignored)) return file;
  }
  return std::nullopt;
}

}  // namespace

Situation inspect_situation(const Session& session) {
  Situation s{.now = std::time(nullptr)};
  if (const auto here = lab::in_node()) s.on_node = fmt::format("{} of lab '{}'", here->node, here->lab);
  if (session.lab) {
    s.options = {"--lab", *session.lab};
    s.lab = inspect_lab(*session.lab, std::nullopt);
    if (!s.lab->is_up && !s.lab->other_owner) lab::load_layout(*session.lab);  // throws, naming the labs there are
    s.cluster = lab::lab_cluster(lab::load_layout(*session.lab));
  } else if (const auto file = find_cluster_file(session)) {
    if (session.cluster_file) s.options = {"--cluster", *session.cluster_file};
    s.file = file->native();
    s.cluster = spec::load_cluster(*file);
    if (s.cluster->lab && !s.on_node) s.lab = inspect_lab(*s.cluster->lab, s.file);
  } else {
    s.similar_file = find_other_file();
  }
  if (!s.on_node) {
    for (const std::string& name : lab::list_labs()) {
      s.running_labs.push_back({name, lab::load_cluster_file(name).parent_path().native()});
    }
  }
  s.has_fast_ports = has_fast_ports(DiskTree());
  if (s.cluster && !s.cluster->lab && !s.on_node) s.silent_nodes = find_silent(*s.cluster);
  s.done = recall_milestones(session);
  return s;
}

namespace {

Document status_json(const Situation& s, const SetupStatus& found) {
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
  const Situation situation = inspect_situation(session);
  const SetupStatus found = evaluate_status(situation);
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
    const SetupStatus found = evaluate_status(inspect_situation(session));
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

#include "yoke/status/status.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "yoke/base/error.h"

namespace yoke::status {
namespace {

using Words = std::vector<std::string>;

Words with_options(Words words, const Situation& s) {
  words.insert(words.end(), s.options.begin(), s.options.end());
  return words;
}

std::string count_text(std::size_t count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

SetupStatus without_cluster(const Situation& s) {
  if (s.on_node)
    return {"on-lab-node", fmt::format("this is {}. It has no cluster file here.", *s.on_node), {"yoke", "probe"}};
  if (s.similar_file) {
    return {"other-file",
            fmt::format("no cluster.yaml in this folder, but {}.", *s.similar_file),
            {"yoke", "--cluster", *s.similar_file}};
  }
  if (!s.running_labs.empty()) {
    std::vector<std::string> labs;
    for (const RunningLab& lab : s.running_labs) {
      labs.push_back(fmt::format("'{}'{}", lab.name, lab.folder.empty() ? "" : " (started in " + lab.folder + ")"));
    }
    return {"lab-elsewhere",
            fmt::format("no cluster file in this folder. Lab{} {} {} up.", labs.size() == 1 ? "" : "s",
                        fmt::join(labs, ", "), labs.size() == 1 ? "is" : "are"),
            {"yoke", "check", "--lab", s.running_labs.front().name}};
  }
  if (s.has_fast_ports) {
    return {"no-cluster",
            "no cluster file in this folder. This machine has fast ports.",
            {"yoke", "link", "discover", "-o", "cluster.yaml"}};
  }
  return {"no-cluster",
          "no cluster file in this folder, and no fast port on this machine. A lab is a virtual cluster to try.",
          {"yoke", "lab", "up"}};
}

// Before a cluster can be looked at its lab must be up.
std::optional<SetupStatus> lab_not_ready(const Situation& s) {
  if (!s.lab) return std::nullopt;
  const LabSituation& lab = *s.lab;
  if (lab.other_owner) {
    return SetupStatus{"lab-foreign", fmt::format("lab '{}' was started by {}.", lab.name, *lab.other_owner),
                       with_options(*lab.other_owner == "root" ? Words{"sudo", "yoke", "check"}
                                                               : Words{"sudo", "-u", *lab.other_owner, "yoke", "check"},
                                    s)};
  }
  if (!lab.is_up) {
    std::string text = fmt::format("lab '{}'{} is not running.", lab.name, s.file ? " of " + *s.file : "");
    std::vector<std::string> others;
    for (const RunningLab& other : s.running_labs) others.push_back(other.name);
    if (!others.empty()) text += fmt::format(" Running: {}.", fmt::join(others, ", "));
    Words next = {"yoke", "lab", "up", "--name", lab.name};
    if (s.file && *s.file != "cluster.yaml") next.insert(next.end(), {"--cluster-file", *s.file});
    return SetupStatus{"lab-down", text, next};
  }
  if (!lab.nodes_off.empty()) {
    const bool head = s.cluster && lab.nodes_off.front() == s.cluster->nodes.front().name;
    return SetupStatus{
        head ? "head-off" : "node-off",
        fmt::format("node{} {}{} off.", lab.nodes_off.size() == 1 ? "" : "s", fmt::join(lab.nodes_off, ", "),
                    lab.nodes_off.size() > 1 ? " are"
                    : head                   ? ", the head, is"
                                             : " is"),
        {"yoke", "lab", "fault", "power-on", "--node", lab.nodes_off.front(), "--name", lab.name}};
  }
  return std::nullopt;
}

const Milestone* find_done(const Situation& s, const char* command) {
  const auto found = s.done.find(command);
  return found == s.done.end() ? nullptr : &found->second;
}

bool is_done(const Situation& s, const char* command) {
  const Milestone* done = find_done(s, command);
  return done && done->exit_status == kExitOk;
}

std::string when(const Situation& s, const Milestone& done) { return ago(s.now - done.when); }

// What keeps the nodes from talking over their fast ports.
std::optional<SetupStatus> network_not_ready(const Situation& s) {
  const spec::Cluster& cluster = *s.cluster;
  if (!s.silent_nodes.empty()) {
    return SetupStatus{"no-answer",
                       fmt::format("{} {} not answer at the ssh port.", fmt::join(s.silent_nodes, ", "),
                                   s.silent_nodes.size() == 1 ? "does" : "do"),
                       with_options({"yoke", "cluster", "reach"}, s)};
  }
  // A rail that the file marks as unused was chosen to be so.
  const auto known = [](const spec::ClusterNode& node) { return node.rails.size() + node.unused.size(); };
  const auto fewest = std::min_element(cluster.nodes.begin(), cluster.nodes.end(),
                                       [&](const auto& a, const auto& b) { return known(a) < known(b); });
  if (fewest->rails.empty()) {
    return SetupStatus{"no-rails", "the file names no rails: commands would use the management network.",
                       with_options({"yoke", "link", "discover", "-o", s.file.value_or("cluster.yaml"), "--force"}, s)};
  }
  if (const Milestone* setup = find_done(s, "link setup"); setup && setup->exit_status != kExitOk) {
    return SetupStatus{
        "setup-incomplete",
        fmt::format("'yoke link setup' did not finish ({}). Run again it goes on; 'yoke link undo' takes back "
                    "what it did.",
                    when(s, *setup)),
        with_options({"yoke", "link", "setup"}, s)};
  }
  const bool is_new = find_done(s, "link discover") || (s.lab && s.lab->bare);
  if ((is_new || find_done(s, "link undo")) && !is_done(s, "link setup") && !is_done(s, "check")) {
    return SetupStatus{"not-set-up", "the addresses of the file are proposed, not set.",
                       with_options({"yoke", "link", "setup"}, s)};
  }
  if (known(*fewest) == 1 && cluster.hardware.value_or("").find("spark") != std::string::npos) {
    return SetupStatus{
        "one-rail", fmt::format("1 rail of {} is in the file: a Spark's port has 2.", fewest->name),
        // Without --new-addresses: it keeps the address that is there, which a netplan file may hold, and adds one.
        with_options({"yoke", "link", "discover", "-o", s.file.value_or("cluster.yaml"), "--force"}, s)};
  }
  return std::nullopt;
}

SetupStatus after_network(const Situation& s) {
  const Words check = with_options({"yoke", "check"}, s);
  if (s.lab && !s.lab->faults.empty()) {
    return {"fault-in-force",
            fmt::format("fault{} in force: {}; 'yoke lab fault clear' ends {}.", s.lab->faults.size() == 1 ? "" : "s",
                        fmt::join(s.lab->faults, ", "), s.lab->faults.size() == 1 ? "it" : "them"),
            check};
  }
  const Milestone* checked = find_done(s, "check");
  if (!checked) {
    if (!s.lab && s.done.empty()) {
      return {"not-reached", "nothing was done with it from here yet.", with_options({"yoke", "cluster", "reach"}, s)};
    }
    return {"unchecked", "it was not checked yet.", check};
  }
  // 3: clean as far as it was looked at, but nothing was measured.
  if (checked->exit_status != kExitOk && checked->exit_status != kExitUnmeasured) {
    return {"findings", fmt::format("the last check ({}) had findings.", when(s, *checked)), check};
  }
  if (checked->exit_status == kExitUnmeasured && !is_done(s, "link test")) {
    return {"unmeasured", fmt::format("checked {}, but the link was not measured.", when(s, *checked)),
            with_options({"yoke", "link", "test"}, s)};
  }
  const std::string clean = fmt::format("checked {} and clean.", when(s, *checked));
  if (!is_done(s, "run") && !is_done(s, "chat")) {
    return {"checked", clean, with_options({"yoke", "run", "-p", "Which cable joins two units?"}, s)};
  }
  return {"ready", clean + " A model ran over it.", with_options({"yoke", "chat"}, s)};
}

}  // namespace

std::string ago(std::int64_t seconds) {
  const auto count = [](std::int64_t number, std::string_view unit) {
    return fmt::format("{} {}{} ago", number, unit, number == 1 || unit == "min" || unit == "h" ? "" : "s");
  };
  if (seconds < 60) return "just now";
  if (seconds < 3600) return count(seconds / 60, "min");
  if (seconds < 86400) return count(seconds / 3600, "h");
  return count(seconds / 86400, "day");
}

SetupStatus evaluate_status(const Situation& s) {
  if (!s.cluster) return lab_not_ready(s).value_or(without_cluster(s));
  const spec::Cluster& cluster = *s.cluster;
  std::size_t rails = cluster.nodes.front().rails.size();
  std::string about =
      fmt::format("cluster '{}'{}: {}, head {}, {} each", cluster.name, s.file ? " from " + *s.file : "",
                  count_text(cluster.nodes.size(), "node"), cluster.nodes.front().name, count_text(rails, "rail"));
  if (s.lab && s.lab->is_up && !s.on_node) about += fmt::format("; lab '{}' is up", s.lab->name);
  if (s.on_node) about += fmt::format("; this is {}", *s.on_node);
  auto found = s.on_node ? std::nullopt : lab_not_ready(s);
  if (!found) found = network_not_ready(s);
  if (!found) found = after_network(s);
  found->text =
      fmt::format("{}. {}{}", about, static_cast<char>(std::toupper(found->text.front())), found->text.substr(1));
  return *found;
}

}  // namespace yoke::status

#include <arpa/inet.h>
#include <fmt/format.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <ctime>
#include <future>

#include "yoke/base/error.h"
#include "yoke/base/file_tree.h"
#include "yoke/base/socket.h"
#include "yoke/lab/enter.h"
#include "yoke/lab/faults.h"
#include "yoke/lab/parts.h"
#include "yoke/lab/state.h"
#include "yoke/status/status.h"

namespace yoke::status {

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

Situation inspect_situation(const terminal::Session& session) {
  Situation s{.now = std::time(nullptr)};
  if (const auto here = lab::in_node()) s.on_node = fmt::format("{} of lab '{}'", here->node, here->lab);
  if (session.lab) {
    s.options = {"--lab", *session.lab};
    s.lab = inspect_lab(*session.lab, std::nullopt);
    if (!s.lab->is_up && !s.lab->other_owner) lab::load_layout(*session.lab);  // throws, naming the labs there are
    s.cluster = lab::lab_cluster(lab::load_layout(*session.lab));
  } else if (const auto file = session.find_cluster_file()) {
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

}  // namespace yoke::status

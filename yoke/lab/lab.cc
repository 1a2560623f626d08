#include "yoke/lab/lab.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

#include "yoke/base/error.h"
#include "yoke/base/file_tree.h"
#include "yoke/base/interrupt.h"
#include "yoke/base/process.h"
#include "yoke/base/result.h"
#include "yoke/base/text.h"
#include "yoke/lab/cgroup.h"
#include "yoke/lab/holder.h"
#include "yoke/lab/network.h"
#include "yoke/lab/node.h"
#include "yoke/lab/parts.h"
#include "yoke/lab/plain.h"
#include "yoke/lab/plain_processes.h"
#include "yoke/lab/rights.h"
#include "yoke/lab/state.h"

namespace yoke::lab {
namespace fs = std::filesystem;
using namespace literals;
namespace {

constexpr Seconds kStartLimit{30};

void require_programs(const LabOptions& options) {
  std::vector<std::pair<const char*, const char*>> needed = {{"sshd", "openssh-server"},
                                                             {"ssh-keygen", "openssh-client"}};
  if (!options.plain) needed.insert(needed.end(), {{"ip", "iproute2"}, {"tc", "iproute2"}});
  for (const auto& [program, package] : needed) {
    if (is_installed(program)) continue;
    throw Error(ErrorCode::kNotFound, fmt::format("a lab needs {}, which is not installed", program),
                fmt::format("apt-get install {}", package));
  }
}

// What a lab could leave on this machine, undone; all of it may be missing.
void remove_everything(const std::string& name) {
  end_plain_processes(name);
  end_parts(name);
  remove_plain_traces(name);
  remove_memory_groups(name);
  // Again where a program of a starter that was killed is still writing there.
  const Deadline deadline = Deadline::after(5_s);
  std::error_code failure;
  do {
    fs::remove_all(lab_folder(name), failure);
    if (failure) real_clock().sleep(10_ms);
  } while (failure && !deadline.expired());
  if (failure) throw system_error(failure.value(), fmt::format("cannot remove {}", lab_folder(name).native()));
}

void make_folders(const LabLayout& layout) {
  make_private_folder(lab_folder(layout.name));
  for (const LabNode& node : layout.nodes) make_folder(node_folder(layout.name, node.number));
  save_layout(layout);
}

std::vector<std::string> limit_memory(const LabLayout& layout) {
  for (const LabNode& node : layout.nodes) {
    const auto group = memory_group(layout.name, node.number);
    if (!group) return {"memory limit: this machine has no cgroup that we may use for it"};
    create_memory_group(layout.name, *group, layout.memory);
  }
  return {};
}

StartingPart start_node(const LabLayout& layout, const LabNode& node, const LabLock& lock) {
  return start_part(node.name,
                    {layout.plain ? std::string(kPlainNodeWord) : "lab-node", lab_folder(layout.name).native(),
                     fmt::format("{}", node.number)},
                    node_folder(layout.name, node.number) / "log", lock);
}

void start_nodes(const LabLayout& layout, const LabLock& lock, Deadline deadline) {
  std::vector<StartingPart> nodes;
  for (const LabNode& node : layout.nodes) nodes.push_back(start_node(layout, node, lock));
  for (StartingPart& node : nodes) wait_until_ready(node, deadline);
}

std::vector<std::string> start_plain_parts(const LabLayout& layout, const LabLock& lock) {
  make_folders(layout);
  make_keys(layout);
  write_plain_files(layout);
  start_nodes(layout, lock, Deadline::after(kStartLimit));
  return missing_in_plain_labs();
}

// What the nodes found that they could not have; they differ in nothing, so one tells for all.
std::vector<std::string> reported_missing(const LabLayout& layout) {
  const auto text = DiskTree().read((node_folder(layout.name, 1) / "missing").native());
  std::vector<std::string> lines = split(text.value_or(""), '\n');
  std::erase(lines, "");
  return lines;
}

std::vector<std::string> start_parts(const LabLayout& layout, const LabLock& lock) {
  const Deadline deadline = Deadline::after(kStartLimit);
  make_folders(layout);
  StartingPart holder = start_part(
      "the lab's holder", {"lab-holder", lab_folder(layout.name).native(), fmt::format("{}", layout.nodes.size())},
      lab_folder(layout.name) / "holder.log", lock);
  make_keys(layout);
  std::vector<std::string> missing = limit_memory(layout);
  wait_until_ready(holder, deadline);
  for (std::string& what : build_network(layout)) missing.push_back(std::move(what));
  start_nodes(layout, lock, deadline);
  wait_for_links(layout, deadline);
  for (std::string& what : reported_missing(layout)) missing.push_back(std::move(what));
  return missing;
}

}  // namespace

std::optional<int> run_lab_part(const std::vector<std::string>& arguments) {
  if (arguments.size() != 3) return std::nullopt;
  const int number = std::atoi(arguments[2].c_str());
  if (arguments[0] == "lab-holder") return run_holder(fs::path(arguments[1]).filename(), number);
  if (arguments[0] == kPlainNodeWord) return run_plain_node(fs::path(arguments[1]).filename(), number);
  if (arguments[0] == "lab-node") return run_node(fs::path(arguments[1]).filename(), number);
  return std::nullopt;
}

LabStarted start_lab(const LabOptions& options) {
  LabStarted started{.layout = options.plain ? lay_out_plain_lab(options) : lay_out_lab(options)};
  require_programs(options);
  if (!options.plain) take_lab_rights();
  LabLock lock(options.name);
  if (lab_exists(options.name)) {
    throw Error(ErrorCode::kConflict, fmt::format("there is a lab '{}' already", options.name),
                fmt::format("'yoke lab down --name {}' ends it, --name gives another", options.name));
  }
  try {
    started.missing = options.plain ? start_plain_parts(started.layout, lock) : start_parts(started.layout, lock);
    save_missing(options.name, started.missing);
    throw_if_interrupted();
  } catch (...) {
    // A part that never records itself cannot be ended; without its folder it ends by itself.
    (void)try_to([&] { lock.retake(); });
    remove_everything(options.name);
    throw;
  }
  return started;
}

void stop_lab(const std::string& name) {
  if (!lab_exists(name) && !lab_lock_exists(name)) load_layout(name);  // throws, naming the labs there are
  const LabLock lock(name);
  if (!lab_exists(name)) load_layout(name);  // there was only the lock of a starter that was killed at once
  remove_everything(name);
}

namespace {

// The kernel forgets routes with their links; a machine makes its own again when it starts, no matter who wrote them
// down.
fs::path routes_file(const LabLayout& layout, const LabNode& node) {
  return lab_folder(layout.name) / fmt::format("routes-{}", node.number);
}

void keep_routes(const fs::path& file) {
  std::string kept;
  for (std::string line : split(run_or_throw({.argv = {"ip", "-4", "route"}, .timeout = 10_s}).out, '\n')) {
    if (line.find("proto kernel") != std::string::npos) continue;  // made with the address
    constexpr std::string_view kState = " linkdown";               // the other end's, not the route's
    if (const std::size_t at = line.find(kState); at != std::string::npos) line.erase(at, kState.size());
    kept += std::string(trim(line)) + "\n";
  }
  write_file_atomically(file, kept);
}

std::vector<std::string> kept_routes(const fs::path& file) {
  std::vector<std::string> routes;
  if (!fs::exists(file)) return routes;
  for (const std::string& line : split(read_file(file), '\n')) {
    if (!line.empty()) routes.push_back(line);
  }
  return routes;
}

}  // namespace

void power_off(const LabLayout& layout, const LabNode& node) {
  if (!find_part(layout.name, node.number)) {
    throw Error(ErrorCode::kConflict, fmt::format("{} is powered off already", node.name));
  }
  if (layout.plain) return end_plain_processes(layout.name, node.number);
  // The links first: a machine without power says goodbye to nobody.
  std::vector<std::string> lines = {fmt::format("link set {} down", layout.management_interface)};
  for (const LabInterface& interface : node.interfaces)
    lines.push_back(fmt::format("link set {} down", interface.name));
  in_network(open_network(layout.name, node.number), [&] {
    keep_routes(routes_file(layout, node));
    run_ip(lines);
  });
  end_parts(layout.name, node.number);
}

void power_on(const LabLayout& layout, const LabNode& node, const std::vector<std::string>& except,
              const LabLock& lock) {
  if (find_part(layout.name, node.number)) {
    throw Error(ErrorCode::kConflict, fmt::format("{} is powered on already", node.name));
  }
  std::vector<std::string> lines = {fmt::format("link set {} up", layout.management_interface)};
  for (const LabInterface& interface : node.interfaces) lines.push_back(fmt::format("link set {} up", interface.name));
  std::erase_if(lines,
                [&](const std::string& line) { return std::find(except.begin(), except.end(), line) != except.end(); });
  for (const std::string& route : kept_routes(routes_file(layout, node))) {
    const bool is_cut = std::any_of(except.begin(), except.end(), [&](const std::string& line) {
      return route.find(" dev " + split(line, ' ').at(2)) != std::string::npos;  // "link set NAME up"
    });
    if (!is_cut) lines.push_back("route append " + route);
  }
  if (!layout.plain) in_network(open_network(layout.name, node.number), [&] { run_ip(lines); });
  StartingPart part = start_node(layout, node, lock);
  wait_until_ready(part, Deadline::after(kStartLimit));
}

}  // namespace yoke::lab

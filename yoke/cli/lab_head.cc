#include "yoke/cli/lab_head.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <pwd.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "yoke/base/error.h"
#include "yoke/base/files.h"
#include "yoke/base/json.h"
#include "yoke/base/log.h"
#include "yoke/base/result.h"
#include "yoke/bench/history.h"
#include "yoke/cli/cluster_file.h"
#include "yoke/lab/enter.h"
#include "yoke/lab/parts.h"
#include "yoke/lab/rights.h"
#include "yoke/lab/state.h"

namespace yoke::cli {
namespace fs = std::filesystem;
namespace {

std::optional<std::string> lab_of(const Session& session) {
  if (session.lab) return session.lab;
  // A file that cannot be read is told by the command that needs it; one that is not there, too.
  const auto read = try_to([&] { return read_session_cluster(session); });
  if (!read && read.error().code() == ErrorCode::kNotFound) throw Error(read.error());
  const std::optional<spec::Cluster> cluster = read ? *read : std::nullopt;
  return cluster ? cluster->lab : std::nullopt;
}

// Our arguments without --lab and --cluster, whose place the node's own copy of the cluster file takes.
std::vector<std::string> arguments_there(const std::string& program, const std::vector<std::string>& arguments,
                                         const std::string& file) {
  std::vector<std::string> words = {program};
  bool skip = false;
  bool rest = false;  // after "--" nothing is ours
  for (const std::string& word : arguments) {
    if (skip) {
      skip = false;
    } else if (!rest && (word == "--lab" || word == "--cluster")) {
      skip = true;
    } else if (rest || !(word.starts_with("--lab=") || word.starts_with("--cluster="))) {
      if (word == "--" && !rest) {
        words.insert(words.end(), {"--cluster", file});
        rest = true;
      }
      words.push_back(word);
    }
  }
  if (!rest) words.insert(words.end(), {"--cluster", file});
  return words;
}

// What the program in the node reads and writes by its number there, and what goes with the last process that has it
// open.
UniqueFd in_memory(std::string_view content) {
  UniqueFd file(memfd_create("cluster.yaml", 0));  // inherited
  if (!file) throw system_error(errno, "cannot make a file in memory");
  write_all(file, content, "cluster.yaml");
  return file;
}

std::string path_of(const UniqueFd& file) { return fmt::format("/proc/self/fd/{}", file.get()); }

// What was measured in a lab is kept on this machine: the node's own history goes with the lab.
void keep_handed_over(const Session& session, const lab::LabLayout& layout, const UniqueFd& file) {
  const std::string text = read_file(path_of(file));
  if (text.empty()) return;
  const auto record = try_to([&] { return from_json<bench::RunRecord>(parse_json(text, "the record of the lab")); });
  if (!record) return session.warn({"not in the history: " + record.error().message()});
  bench::RunRecord kept = *record;
  kept.host = fmt::format("{} of lab {}", kept.host, layout.name);
  session.warn(bench::keep_record(kept));
}

}  // namespace

std::string lab_meant(const Session& session, const std::optional<std::string>& name) {
  if (name || session.lab) return name ? *name : *session.lab;
  const auto file = find_cluster_file(session);
  const std::vector<std::string> labs = lab::list_labs();
  const std::string running =
      labs.empty() ? "start one: yoke lab up" : fmt::format("name one with --name; running: {}", fmt::join(labs, ", "));
  if (!file) throw Error(ErrorCode::kNotFound, "no cluster file here names a lab", running);
  const std::optional<spec::Cluster> cluster = read_session_cluster(session);
  if (!cluster->lab) {
    throw Error(ErrorCode::kUsage, fmt::format("{} is of cluster '{}', not of a lab", file->native(), cluster->name),
                running);
  }
  // Also what a starter that was killed left behind can be taken down.
  if (!lab::lab_exists(*cluster->lab) && !lab::lab_lock_exists(*cluster->lab))
    load_lab(session, *cluster->lab);  // throws
  return *cluster->lab;
}

lab::LabLayout load_lab(const Session& session, const std::string& lab) {
  if (lab::lab_exists(lab)) return lab::load_layout(lab);
  const auto file = session.lab ? std::nullopt : find_cluster_file(session);
  if (!file) return lab::load_layout(lab);  // throws
  // Root's labs cannot be seen by others: whose the file is tells who started it.
  struct stat status {};
  const bool is_foreign = stat(file->c_str(), &status) == 0 && status.st_uid != lab::outer_user();
  if (const passwd* owner = is_foreign && !lab::lab_owner_elsewhere(lab) ? getpwuid(status.st_uid) : nullptr) {
    throw Error(ErrorCode::kNotFound,
                fmt::format("lab '{}' of {} is not one of yours, and the file belongs to {}", lab, file->native(),
                            owner->pw_name),
                status.st_uid == 0
                    ? fmt::format("if root started it, use sudo; to start your own: yoke lab up --name {}", lab)
                    : fmt::format("be that user, or start your own: yoke lab up --name {}", lab));
  }
  if (lab::lab_owner_elsewhere(lab)) return lab::load_layout(lab);  // throws, naming the owner
  const std::vector<std::string> labs = lab::list_labs();
  std::string hint = fmt::format("start it again: yoke lab up --name {}", lab);
  if (file->native() != "cluster.yaml") hint += fmt::format(" --cluster-file {}", file->native());
  if (!labs.empty()) hint += fmt::format("; running are {} (--name or --lab names one)", fmt::join(labs, ", "));
  throw Error(ErrorCode::kNotFound, fmt::format("lab '{}' of {} is not running", lab, file->native()), hint);
}

namespace {

// A file of this folder that "does not exist" there is the first trap of those who try a lab in /tmp.
void print_what_nodes_do_not_see() {
  const fs::path folder = fs::current_path();
  for (const char* own : {"/tmp", "/run", "/dev/shm"}) {
    if (folder.native() != own && !folder.native().starts_with(std::string(own) + "/")) continue;
    log(LogLevel::kWarning,
        "a lab's nodes have {0} of their own: files below it are not seen there. Work in another folder", own);
  }
}

}  // namespace

bool is_about_lab(const Session& session) { return !lab::in_node() && lab_of(session); }

std::optional<int> run_on_lab_head(const Session& session, const std::vector<std::string>& arguments) {
  if (lab::in_node()) return std::nullopt;
  const std::optional<std::string> lab = lab_of(session);
  if (!lab) return std::nullopt;
  const lab::LabLayout layout = load_lab(session, *lab);
  const lab::LabNode& head = layout.nodes.front();
  if (!lab::find_part(*lab, head.number)) {
    throw Error(ErrorCode::kUnavailable, fmt::format("the head node {} of lab '{}' is powered off", head.name, *lab),
                fmt::format("'yoke lab fault power-on --node {}' starts it", head.name));
  }
  log(LogLevel::kDebug, "this command goes on on {}, the head node of lab '{}'", head.name, *lab);
  // With --lab alone the cluster is the lab's own.
  const auto file = session.lab ? std::nullopt : find_cluster_file(session);
  const std::string content = file ? read_file(*file) : spec::print_cluster(lab::lab_cluster(layout));
  const UniqueFd copy = in_memory(content);
  // A plain node has no files of its own, and so no program in its place.
  const std::string program = layout.plain ? fs::read_symlink("/proc/self/exe").native() : "/usr/local/bin/yoke";
  const UniqueFd record = in_memory("");
  setenv(bench::kRecordHandOver, path_of(record).c_str(), 1);
  setenv(terminal::kGivenVariable, fmt::format("{}", fmt::join(session.given_options(), " ")).c_str(), 1);
  const int status = lab::run_in_node(*lab, head, arguments_there(program, arguments, path_of(copy)));
  unsetenv(bench::kRecordHandOver);
  unsetenv(terminal::kGivenVariable);
  keep_handed_over(session, layout, record);
  if (status == info(ErrorCode::kNotFound).exit_status && !layout.plain) print_what_nodes_do_not_see();
  return status;
}

}  // namespace yoke::cli
